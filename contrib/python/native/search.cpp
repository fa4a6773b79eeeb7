// SPDX-License-Identifier: MIT
#include "search.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "arrays.h"
#include "convert.h"
#include "gnnd/cpu/backend.h"
#include "gnnd/cpu/beam.h"
#include "gnnd/cpu/space.h"
#include "gnnd/detail/checks.h"
#include "gnnd/detail/run.h"
#include "gnnd/random.h"
#include "graph_arrays.h"
#include "hooks.h"

namespace gnnd::python {

namespace {

constexpr std::int64_t kPivots = 2048;  // among whom a search finds where to start
constexpr int kStarts = 8;              // the nearest of them, from which it starts
constexpr int kQueries = 16;            // whose distances to pivots are computed together
constexpr int kBlock = 128;             // pivots, or links of an object, that are compared at once

/// Searches along links for some of the queries, one after the other.
class Walk {
  public:
    Walk(const cpu::Space& space, const cpu::Space& queries, const Array& links,
         const std::vector<std::int32_t>& pivots, int width, int k)
        : space_(space),
          of_queries_(queries),
          links_(links),
          pivots_(pivots),
          block_(space, kQueries, kBlock, detail::or_heap(nullptr)),
          starts_(kQueries, cpu::Beam(0, kStarts)),
          beam_(std::size_t(width), std::size_t(std::max(width, k))) {}

    /// \param to  row i belongs to query begin + i of at most kQueries
    void run(std::int64_t begin, int count, KnnGraph& to) {
        std::int32_t rows[kQueries];
        std::iota(rows, rows + count, std::int32_t(begin));
        for (cpu::Beam& start : starts_) start.clear();
        for (std::size_t first = 0; first < pivots_.size(); first += kBlock) {
            const int columns = int(std::min<std::size_t>(kBlock, pivots_.size() - first));
            block_.compute(of_queries_, rows, count, &pivots_[first], columns);
            for (int i = 0; i < count; ++i)
                for (int j = 0; j < columns; ++j) starts_[i].add(block_.row(i)[j], pivots_[first + j]);
        }
        for (int i = 0; i < count; ++i) walk(rows[i], starts_[i], to);
    }

  private:
    void walk(std::int32_t query, const cpu::Beam& start, KnnGraph& to) {
        beam_.clear();
        seen_.clear();
        for (const cpu::Entry entry : start.entries()) {
            seen_.add(cpu::id_of(entry));
            beam_.add(cpu::key_of(entry), cpu::id_of(entry));
        }
        for (std::int32_t next; (next = beam_.next()) >= 0;) {
            const std::int32_t* row = links_.ids() + next * links_.columns;
            for (std::int64_t j = 0; j < links_.columns && row[j] >= 0;) {
                ids_.clear();
                for (; j < links_.columns && row[j] >= 0 && int(ids_.size()) < kBlock; ++j)
                    if (seen_.add(row[j])) ids_.push_back(row[j]);
                if (ids_.empty()) continue;
                block_.compute(of_queries_, &query, 1, ids_.data(), int(ids_.size()));
                for (std::size_t i = 0; i < ids_.size(); ++i) beam_.add(block_.row(0)[i], ids_[i]);
            }
        }
        const std::vector<cpu::Entry>& found = beam_.entries();
        for (std::int64_t j = 0; j < std::min<std::int64_t>(to.k(), std::int64_t(found.size())); ++j) {
            to.ids()[query * to.k() + j] = cpu::id_of(found[j]);
            to.distances()[query * to.k() + j] = space_.value_of(cpu::key_of(found[j]));
        }
    }

    const cpu::Space &space_, &of_queries_;
    const Array& links_;
    const std::vector<std::int32_t>& pivots_;
    cpu::Block block_;
    std::vector<cpu::Beam> starts_;
    cpu::Beam beam_;
    cpu::Seen seen_;
    std::vector<std::int32_t> ids_;
};

/// The same objects for every call: a share of each part of the set.
std::vector<std::int32_t> pivots_of(std::int64_t n) {
    const std::int64_t count = std::min(n, kPivots);
    std::vector<std::int32_t> pivots(count);
    Random random(1, 0);
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t begin = i * n / count, end = (i + 1) * n / count;
        pivots[i] = std::int32_t(begin + random.below(std::uint32_t(end - begin)));
    }
    return pivots;
}

/// Checked as for a build; both sets lie on the host.
BuildParams checked(const Array& x, const Array& queries, BuildParams params, const Callbacks& callbacks) {
    params.recall_at = 0;  // it says nothing here
    params.validate();
    detail::check_shape(x.vectors(), 1);
    detail::check_shape(queries.vectors(), 1);
    if (x.device >= 0 || queries.device >= 0) throw InvalidArgument("the vectors of a search lie in host memory");
    if (x.columns != queries.columns)
        throw InvalidArgument("queries of " + std::to_string(queries.columns) + " components for vectors of " +
                              std::to_string(x.columns));
    if (x.dtype != queries.dtype)
        throw InvalidArgument("queries of " + std::string(name_of(queries.dtype)) + " for vectors of " +
                              std::string(name_of(x.dtype)));
    params.device = detail::choose(params.device);
    cpu::check_vectors(x.vectors(), params.metric, params.threads, callbacks, 0);
    cpu::check_vectors(queries.vectors(), params.metric, params.threads, callbacks, 0);
    return params;
}

nb::tuple nearest_rows(const Array& x, const Array& queries, const nb::dict& given) {
    Hooks hooks{nb::none()};
    const Callbacks callbacks = hooks.callbacks();
    const BuildParams params = params_of(given);
    return to_arrays(hooks.run([&] {
        const BuildParams use = checked(x, queries, params, callbacks);
        const std::vector<std::int32_t> none(queries.rows, -1);
        return detail::nearest_of(x.vectors(), queries.vectors(), none.data(), use.k, use, callbacks,
                                  detail::or_heap(nullptr));
    }));
}

nb::tuple search_rows(const Array& x, const Array& links, const Array& queries, int width, const nb::dict& given) {
    Hooks hooks{nb::none()};
    const Callbacks callbacks = hooks.callbacks();
    const BuildParams params = params_of(given);
    if (width < 1) throw InvalidArgument("width = " + std::to_string(width) + ", allowed are 1 and more");
    return to_arrays(hooks.run([&] {
        const BuildParams use = checked(x, queries, params, callbacks);
        if (links.rows != x.rows)
            throw InvalidArgument("links of " + std::to_string(links.rows) + " objects for " + std::to_string(x.rows) +
                                  " vectors");
        detail::check_ids(links.ids(), links.rows * links.columns, -1, x.rows, "links");
        const cpu::Team team{cpu::Team::resolve(use.threads), &callbacks.interrupt};
        Resources& resources = detail::or_heap(nullptr);
        const cpu::Space space(x.vectors(), use.metric, team, resources);
        const cpu::Space of_queries(queries.vectors(), use.metric, team, resources);
        const std::vector<std::int32_t> pivots = pivots_of(x.rows);
        KnnGraph found(queries.rows, use.k, use.metric);
        std::vector<std::unique_ptr<Walk>> walks(team.threads);
        team.for_chunks(queries.rows, kQueries, [&](int thread, std::int64_t begin, std::int64_t end) {
            if (!walks[thread]) walks[thread] = std::make_unique<Walk>(space, of_queries, links, pivots, width, use.k);
            walks[thread]->run(begin, int(end - begin), found);
        });
        return found;
    }));
}

}  // namespace

void bind_search(nb::module_& module) {
    const auto x = nb::arg("x"), queries = nb::arg("queries"), params = nb::arg("params");
    module.def("nearest_rows", &nearest_rows, x, queries, params);
    module.def("search_rows", &search_rows, x, nb::arg("links"), queries, nb::arg("width"), params);
}

}  // namespace gnnd::python

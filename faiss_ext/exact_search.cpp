// SPDX-License-Identifier: MIT
#include "faiss_ext/exact_search.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/flat_search.h"
#include "faiss_ext/detail/rows.h"
#include "gnnd/builder.h"
#include "gnnd/detail/checks.h"

namespace faiss_ext {
namespace {

/// Queries and vectors of the source side by side, in the type of both or as float32, for pair_distances().
class Pairs {
  public:
    Pairs(const VectorSource& source, const gnnd::VectorView& queries)
        : source_(source), queries_(queries), same_(source.on_host().dtype == queries.dtype) {}

    void clear() {
        rows_.clear();
        count_ = 0;
    }
    /// The number of the row added.
    std::int32_t add_query(std::int64_t query) { return add(queries_, query); }
    std::int32_t add_vector(std::int64_t row) { return add(source_.on_host(), row); }

    /// \param a, b  rows added
    void distances(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b, float* out) const {
        const gnnd::DType dtype = same_ ? queries_.dtype : gnnd::DType::f32;
        gnnd::pair_distances({rows_.data(), count_, queries_.d, dtype, 0}, source_.metric(), a.data(), b.data(),
                             std::int64_t(a.size()), out);
    }

  private:
    std::int32_t add(const gnnd::VectorView& vectors, std::int64_t row) {
        const std::size_t bytes = std::size_t(queries_.d) * (same_ ? size_of(queries_.dtype) : sizeof(float));
        rows_.resize(rows_.size() + bytes);
        std::byte* out = rows_.data() + rows_.size() - bytes;
        if (same_)
            std::memcpy(out, vectors.row(row), bytes);
        else
            gnnd::copy_as_f32(vectors, row, 1, reinterpret_cast<float*>(out));
        return std::int32_t(count_++);
    }

    const VectorSource& source_;
    const gnnd::VectorView queries_;
    const bool same_;
    std::vector<std::byte> rows_;
    std::int64_t count_ = 0;
};

/// The nearest so far of one query; smaller keys are nearer.
using Row = std::vector<std::pair<float, std::int32_t>>;

void keep_nearest(Row& row, std::int64_t k) {
    const auto end = row.begin() + std::min<std::int64_t>(k, std::int64_t(row.size()));
    std::partial_sort(row.begin(), end, row.end());
    row.erase(end, row.end());
}

void check_queries(const VectorSource& queries) {
    std::vector<float> row(queries.vectors().d);
    const bool nonnegative = gnnd::visit(queries.metric(), [](auto m) { return m.nonnegative; });
    for (std::int64_t i = 0; i < queries.vectors().n; ++i) {
        gnnd::copy_as_f32(queries.vectors(), i, 1, row.data());
        bool zero = true;
        for (const float c : row) {
            if (!std::isfinite(c)) detail::fail("exact_search: query " + std::to_string(i) + " holds NaN or infinity");
            if (nonnegative && c < 0)
                detail::fail("exact_search: query " + std::to_string(i) + " holds a negative component");
            zero = zero && c == 0;
        }
        if (zero && gnnd::is_normalized(queries.metric()))
            detail::fail("exact_search: query " + std::to_string(i) + " is zero, which has no direction");
    }
}

class Search {
  public:
    Search(const VectorSource& source, const VectorSource& queries, int k, const Gpu& gpu)
        : source_(source),
          queries_(queries),
          gpu_(gpu),
          n_(source.vectors().n),
          d_(source.vectors().d),
          wanted_(std::min<std::int64_t>(k, n_)),
          similarity_(gnnd::is_similarity(source.metric())),
          graph_(queries.vectors().n, k, source.metric()) {}

    gnnd::KnnGraph run() {
        std::vector<std::int64_t> doubts(queries_.vectors().n);
        std::iota(doubts.begin(), doubts.end(), 0);
        if (const auto searched = searched_metric(source_.metric())) doubts = search_by_faiss(*searched);
        compare_all(doubts);
        return std::move(graph_);
    }

  private:
    /// \return the queries whose rows are in doubt
    std::vector<std::int64_t> search_by_faiss(faiss::MetricType metric) {
        detail::FlatSearch flat(source_, std::min<std::int64_t>(wanted_ + detail::kSpare, n_), gpu_);
        const detail::Rounding rounding(source_, metric, queries_.vectors().dtype);
        const std::int64_t total = queries_.vectors().n, step = std::min(total, flat.block());
        std::vector<std::int32_t> asked(step);
        std::vector<float> row_of_query(d_);
        std::vector<std::int64_t> doubts;
        for (std::int64_t begin = 0; begin < total; begin += step) {
            detail::check_interrupt();
            const std::int64_t count = std::min(step, total - begin);
            std::iota(asked.begin(), asked.end(), std::int32_t(begin));
            const detail::Found& found = flat.search(queries_, asked.data(), count);
            for (std::int64_t r = 0; r < count; ++r) {
                Row row = values_of(begin + r, found.ids.data() + r * found.m, found.m);
                keep_nearest(row, wanted_);
                write(begin + r, row);
                const bool all = found.m == n_ && std::int64_t(row.size()) == wanted_;
                const float* distances = graph_.distances_of(begin + r);
                detail::float_rows(queries_, begin + r, 1, row_of_query.data());
                const double bound = rounding.bound(row_of_query.data(), distances[wanted_ - 1]);
                if (!all && (std::int64_t(row.size()) < wanted_ ||
                             found.doubtful(r, graph_.ids_of(begin + r), distances, wanted_, bound, similarity_)))
                    doubts.push_back(begin + r);
            }
        }
        return doubts;
    }

    /// The distances of a query to what was found for it.
    Row values_of(std::int64_t query, const idx_t* candidates, std::int64_t count) {
        pairs_.clear();
        const std::int32_t self = pairs_.add_query(query);
        std::vector<std::int32_t> others, ids;
        for (std::int64_t j = 0; j < count; ++j) {
            if (candidates[j] < 0) continue;
            others.push_back(pairs_.add_vector(candidates[j]));
            ids.push_back(std::int32_t(candidates[j]));
        }
        std::vector<float> values(others.size());
        pairs_.distances(std::vector<std::int32_t>(others.size(), self), others, values.data());
        Row row;
        for (std::size_t j = 0; j < ids.size(); ++j) row.emplace_back(similarity_ ? -values[j] : values[j], ids[j]);
        return row;
    }

    /// Every vector with these queries, without FAISS.
    void compare_all(const std::vector<std::int64_t>& asked) {
        constexpr std::int64_t kRows = 1024, kQueries = 256;
        for (std::size_t first = 0; first < asked.size(); first += kQueries) {
            const std::size_t last = std::min(asked.size(), first + kQueries);
            std::vector<Row> rows(last - first);
            for (std::int64_t begin = 0; begin < n_; begin += kRows) {
                detail::check_interrupt();
                pairs_.clear();
                std::vector<std::int32_t> a, b, added;
                const std::int64_t end = std::min(n_, begin + kRows);
                for (std::int64_t i = begin; i < end; ++i) added.push_back(pairs_.add_vector(i));
                for (std::size_t q = first; q < last; ++q) {
                    a.insert(a.end(), added.size(), pairs_.add_query(asked[q]));
                    b.insert(b.end(), added.begin(), added.end());
                }
                std::vector<float> values(a.size());
                pairs_.distances(a, b, values.data());
                for (std::size_t q = 0; q < rows.size(); ++q) {
                    for (std::int64_t i = begin; i < end; ++i) {
                        const float value = values[q * added.size() + std::size_t(i - begin)];
                        rows[q].emplace_back(similarity_ ? -value : value, std::int32_t(i));
                    }
                    keep_nearest(rows[q], wanted_);
                }
            }
            for (std::size_t q = first; q < last; ++q) write(asked[q], rows[q - first]);
        }
    }

    /// Places without a neighbour stay as KnnGraph has them: -1, and the worst value.
    void write(std::int64_t query, const Row& row) {
        for (std::size_t j = 0; j < row.size(); ++j) {
            graph_.ids()[query * graph_.k() + std::int64_t(j)] = row[j].second;
            graph_.distances()[query * graph_.k() + std::int64_t(j)] = similarity_ ? 0 - row[j].first : row[j].first;
        }
    }

    const VectorSource& source_;
    const VectorSource& queries_;
    const Gpu gpu_;
    const std::int64_t n_, d_, wanted_;
    const bool similarity_;
    gnnd::KnnGraph graph_;
    Pairs pairs_{source_, queries_.vectors()};
};

}  // namespace

gnnd::KnnGraph exact_search(const VectorSource& source, const gnnd::VectorView& queries, int k, const Gpu& gpu) {
    return detail::with_faiss_errors([&] {
        const VectorSource asked(queries, source.metric());
        detail::check_request(source, k);
        if (queries.d != source.vectors().d)
            detail::fail("exact_search: queries have " + std::to_string(queries.d) + " components, the vectors " +
                         std::to_string(source.vectors().d));
        check_queries(asked);
        return Search(source, asked, k, gpu).run();
    });
}

}  // namespace faiss_ext

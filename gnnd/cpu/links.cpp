// SPDX-License-Identifier: MIT
// search_links() on the CPU.
#include <algorithm>
#include <optional>
#include <vector>

#include "gnnd/cpu/backend.h"
#include "gnnd/cpu/pack.h"
#include "gnnd/cpu/space.h"

namespace gnnd::cpu {
namespace {

constexpr int kComparedAtOnce = 16;  // entries: with those linked before, and with each other
constexpr std::int64_t kChunk = 256, kPruned = 16;
/// From one object in so many on their rows meet enough of the others for a look at all of them.
constexpr std::int64_t kPrunedAmong = 8;

/// Chooses the links of one object after the other, with room for a block of distances.
class Pruner {
  public:
    Pruner(const Space& space, const KnnGraphView& graph, int degree, Resources& resources)
        : space_(space),
          graph_(graph),
          degree_(degree),
          block_(space, kMaxPruned + kComparedAtOnce, kComparedAtOnce, resources) {}

    /// Writes the object's links by step 1; returns how many.
    int run(std::int64_t object, std::int32_t* links) {
        const int width = int(std::min<std::int64_t>(graph_.k, kMaxPruned));
        linked_ = 0;
        for (int first = 0; first < width && linked_ < degree_; first += kComparedAtOnce) {
            gather(object, first, std::min(first + kComparedAtOnce, width));
            choose();
        }
        std::copy_n(ids_, linked_, links);
        return linked_;
    }

  private:
    /// Places [first, last) of the row, as far as they hold somebody else, come behind those linked.
    void gather(std::int64_t object, int first, int last) {
        count_ = 0;
        for (int j = first; j < last; ++j) {
            const std::int32_t id = graph_.ids_of(object)[j];
            if (id < 0 || id == object) continue;
            const float distance = graph_.distances_of(object)[j];
            keys_[count_] = space_.similarity ? -distance : distance;
            ids_[linked_ + count_++] = id;
        }
    }

    void choose() {
        const std::int32_t* group = ids_ + linked_;
        if (linked_ == 0)
            block_.compute_triangle(group, count_, count_);
        else
            block_.compute(ids_, linked_ + count_, group, count_);
        int rows[kMaxPruned + kComparedAtOnce];  // of the block: those linked before, then those of the group
        int chosen = linked_;
        for (int l = 0; l < linked_; ++l) rows[l] = l;
        for (int c = 0; c < count_ && chosen < degree_; ++c) {
            const bool farther = std::all_of(rows, rows + chosen,
                                             [&](int l) { return block_.row(l)[c] > keys_[c] && ids_[l] != group[c]; });
            if (farther) rows[chosen++] = linked_ + c;
        }
        for (int l = linked_; l < chosen; ++l) ids_[l] = ids_[rows[l]];
        linked_ = chosen;
    }

    const Space& space_;
    const KnnGraphView& graph_;
    const int degree_;
    Block block_;
    std::int32_t ids_[kMaxPruned + kComparedAtOnce];  // those linked, then those of a group
    float keys_[kComparedAtOnce];                     // from the object to those of the group
    int linked_ = 0, count_ = 0;
};

/// One for each thread.
std::vector<Pruner> make_pruners(const Space& space, const KnnGraphView& graph, int degree, const Team& team,
                                 Resources& resources) {
    std::vector<Pruner> pruners;
    pruners.reserve(team.threads);
    for (int t = 0; t < team.threads; ++t) pruners.emplace_back(space, graph, degree, resources);
    return pruners;
}

}  // namespace

void search_links(const VectorView& vectors, const KnnGraphView& graph, const LinkParams& params, std::int32_t* links,
                  const Callbacks& callbacks, Resources& resources) {
    const Team team{Team::resolve(params.threads), &callbacks.interrupt};
    const std::int64_t n = vectors.n;
    const int degree = params.degree;
    Buffer<std::int32_t> sizes(resources, n), chosen(resources, n);
    const auto row = [&](std::int64_t i) { return links + i * degree; };
    const auto add = [&](std::int64_t from, std::int32_t to) {
        std::int32_t *begin = row(from), *end = begin + sizes[from];
        if (sizes[from] == degree || std::find(begin, end, to) != end) return;
        *end = to;
        ++sizes[from];
    };
    {
        const auto packed = PackedRows::of({&vectors, 1}, graph.metric, team, resources);
        const Space space(packed ? packed->view() : vectors, graph.metric, team, resources);
        std::vector<Pruner> pruners = make_pruners(space, graph, degree, team, resources);
        team.for_chunks(n, kChunk, [&](int thread, std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) chosen[i] = sizes[i] = pruners[thread].run(i, row(i));
        });
    }
    // One thread: who comes first counts.
    const Team alone{1, &callbacks.interrupt};
    for (int j = 0; j < std::min(degree, kMaxPruned); ++j)
        alone.for_chunks(n, 64 * kChunk, [&](int, std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i)
                if (j < chosen[i]) add(row(i)[j], std::int32_t(i));
        });
    const std::int64_t columns = params.fill ? graph.k : 0;
    team.for_chunks(n, kChunk, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            for (std::int64_t j = 0; j < columns && sizes[i] < degree; ++j)
                if (const std::int32_t id = graph.ids_of(i)[j]; id >= 0 && id != i) add(i, id);
            std::fill(row(i) + sizes[i], row(i) + degree, -1);
        }
    });
}

void prune_rows(const VectorView& vectors, const KnnGraphView& graph, const std::int32_t* objects, std::int64_t count,
                const LinkParams& params, std::int32_t* links, const Callbacks& callbacks, Resources& resources) {
    const Team team{Team::resolve(params.threads), &callbacks.interrupt};
    const bool many = count * kPrunedAmong >= vectors.n;
    const auto packed = many ? PackedRows::of({&vectors, 1}, graph.metric, team, resources) : std::nullopt;
    const Space space(packed ? packed->view() : vectors, graph.metric, team, resources);
    std::vector<Pruner> pruners = make_pruners(space, graph, params.degree, team, resources);
    team.for_chunks(count, kPruned, [&](int thread, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            std::int32_t* row = links + i * params.degree;
            std::fill(row + pruners[thread].run(objects[i], row), row + params.degree, -1);
        }
    });
}

}  // namespace gnnd::cpu

// SPDX-License-Identifier: MIT
#include "gnnd/cpu/insert.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gnnd/cpu/insertion.h"

namespace gnnd::cpu {
namespace {

/// The whole graph is copied, and changed there.
class CopyingInsertion : public Insertion {
  public:
    CopyingInsertion(const Space& space, const detail::Input& input, const BuildParams& params, const Team& team,
                     Resources& resources, Row all)
        : Insertion(space, input, params, team, resources, copy(input.graphs[0], params, team, all),
                    {all.ids + input.graphs[0].n * params.k, all.distances + input.graphs[0].n * params.k},
                    detail::links_back(input.graphs[0].n, input.vectors[1].n)),
          all_(all) {}

  private:
    static KnnGraphView copy(const KnnGraphView& given, const BuildParams& params, const Team& team, Row all) {
        std::fill_n(all.ids, given.n * params.k, -1);
        std::fill_n(all.distances, given.n * params.k, worst_value(params.metric));
        team.for_chunks(given.n, 1024, [&](int, std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i)
                for (std::int64_t j = 0, to = i * params.k; j < given.k && to < (i + 1) * params.k; ++j) {
                    const std::int32_t id = given.ids_of(i)[j];
                    if (id < 0 || id == i) continue;
                    all.ids[to] = id;
                    all.distances[to++] = given.distances_of(i)[j];
                }
        });
        return {given.n, params.k, params.metric, all.ids, all.distances};
    }
    Row changed_row(std::int64_t i) override { return {all_.ids + i * params_.k, all_.distances + i * params_.k}; }

    const Row all_;
};

/// The graph stays as it is; rows that change are copied. For one batch, which sees none of its own changes.
class RowInsertion : public Insertion {
  public:
    using Insertion::Insertion;

    /// What differs now, but for the rows of the added.
    detail::AppendedRows take() const {
        const std::int64_t k = params_.k;
        detail::AppendedRows result;
        for (std::size_t c = 0; c < objects_.size(); ++c) {
            const KnnGraphView before{1, k, params_.metric, given_.ids_of(objects_[c]),
                                      given_.distances_of(objects_[c])};
            const KnnGraphView after{1, k, params_.metric, &ids_[c * k], &distances_[c * k]};
            if (!std::equal(after.ids, after.ids + k, before.ids))
                detail::tell_row(result, objects_[c], before, after, old_);
        }
        return result;
    }

  private:
    void prepare(const std::vector<Offer>& offers) override {
        for (const Offer& offer : offers)
            if (offer.to < old_ && (objects_.empty() || objects_.back() != offer.to)) objects_.push_back(offer.to);
        ids_.resize(objects_.size() * params_.k);
        distances_.resize(objects_.size() * params_.k);
        for (std::size_t c = 0; c < objects_.size(); ++c) {
            std::copy_n(given_.ids_of(objects_[c]), params_.k, &ids_[c * params_.k]);
            std::copy_n(given_.distances_of(objects_[c]), params_.k, &distances_[c * params_.k]);
        }
    }
    Row changed_row(std::int64_t i) override {
        if (i >= old_) return added_row(i);
        const auto place = std::lower_bound(objects_.begin(), objects_.end(), std::int32_t(i)) - objects_.begin();
        return {&ids_[place * params_.k], &distances_[place * params_.k]};
    }

    std::vector<std::int32_t> objects_;  // old ones that are offered something
    std::vector<std::int32_t> ids_;      // a row for each
    std::vector<float> distances_;
};

}  // namespace

void insert(const Space& space, const detail::Input& input, const BuildParams& params, const Team& team,
            const Callbacks& callbacks, Resources& resources, BuildStats& stats, std::int32_t* ids, float* distances) {
    CopyingInsertion insertion(space, input, params, team, resources, {ids, distances});
    const std::int64_t added = input.vectors[1].n;
    for (std::int64_t begin = 0; begin < added; begin += kInsertBatch)
        insertion.insert(std::min(kInsertBatch, added - begin), stats, callbacks);
    insertion.finish(0);
}

detail::AppendedRows insert_rows(const Space& space, const detail::Input& input, const BuildParams& params,
                                 const Team& team, const Callbacks& callbacks, Resources& resources) {
    const std::int64_t added = input.vectors[1].n;
    KnnGraph rows(added, params.k, params.metric);
    BuildStats stats;
    // Measured: from so many old objects for each added one searches without links back cost no more.
    const bool links_back = added * 400 >= input.vectors[0].n;
    RowInsertion insertion(space, input, params, team, resources, input.graphs[0], {rows.ids(), rows.distances()},
                           links_back);
    insertion.insert(added, stats, callbacks);
    insertion.finish(input.vectors[0].n);
    detail::AppendedRows result = insertion.take();
    result.added = std::move(rows);
    result.stats = std::move(stats);
    return result;
}

}  // namespace gnnd::cpu

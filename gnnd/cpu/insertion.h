// SPDX-License-Identifier: MIT
#pragma once
/// \file insertion.h
/// append() by searching on the CPU, as detail/insert.h says; where rows are changed is left to derived classes.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "gnnd/cpu/beam.h"
#include "gnnd/cpu/insert.h"
#include "gnnd/detail/insert.h"
#include "gnnd/detail/report.h"
#include "gnnd/random.h"
#include "gnnd/stats.h"

namespace gnnd::cpu {

/// Chosen by measurement (benchs/NOTEBOOK.md).
inline constexpr std::int64_t kPivots = 2048;
/// Of them, the nearest that a search starts from, and those of its batch that an object is linked to.
inline constexpr int kStarts = 16, kPeers = 32;

/// An object that a row of the graph is to take in.
struct Offer {
    std::int32_t to;
    Entry entry;
    bool operator<(const Offer& other) const { return to != other.to ? to < other.to : entry < other.entry; }
};

struct alignas(64) InsertWorker {
    Block block;
    Beam beam;
    Seen seen;
    std::vector<std::int32_t> ids;
    std::vector<Offer> offers;
    std::int64_t distances = 0;
};

/// Rows of a graph, and where they are changed.
struct Row {
    std::int32_t* ids;
    float* distances;
};
struct ConstRow {
    const std::int32_t* ids;
    const float* distances;
};

class Insertion {
  public:
    /// \param given  the old objects' rows, params.k columns
    /// \param added  where those of the added ones come to lie, in order
    /// \param links_back  whether searches walk along these, too
    Insertion(const Space& space, const detail::Input& input, const BuildParams& params, const Team& team,
              Resources& resources, const KnnGraphView& given, Row added, bool links_back)
        : space_(space),
          params_(params),
          team_(team),
          resources_(resources),
          n_(input.n()),
          old_(given.n),
          given_(given),
          added_(added),
          known_(given.n) {
        std::fill_n(added.ids, (n_ - old_) * params.k, -1);
        std::fill_n(added.distances, (n_ - old_) * params.k, worst_value(params.metric));
        const int walked = links_back ? detail::kBeam : detail::kWideBeam;
        const Beam beam(std::size_t(walked), std::size_t(std::max(walked, params.k)));
        for (int t = 0; t < team.threads; ++t)
            workers_.push_back({Block(space, 1, detail::kBranches, resources), beam, {}, {}, {}, 0});
        if (links_back) link_back();
    }
    virtual ~Insertion() = default;

    /// Inserts the next `count` objects, a batch.
    void insert(std::int64_t count, BuildStats& stats, const Callbacks& callbacks) {
        const auto start = std::chrono::steady_clock::now();
        IterationStats here = insert(count);
        here.iteration = int(stats.iterations.size());
        here.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        detail::report(here, stats, callbacks);
    }
    /// Rows from `first` on that are short, since graphs had fewer columns or searches found less, get random objects.
    void finish(std::int64_t first) {
        const int wanted = int(std::min<std::int64_t>(params_.k, n_ - 1));
        team_.for_chunks(n_ - first, 256, [&](int thread, std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = first + begin; i < first + end; ++i) {
                if (row(i).ids[wanted - 1] >= 0) continue;
                const Row to = changed_row(i);
                Random random(params_.seed ^ 0xf111, std::uint64_t(i));
                while (to.ids[wanted - 1] < 0) {
                    const auto id = std::int32_t(random.below(std::uint32_t(n_)));
                    if (id == i) continue;
                    take_in(to, make_entry(keys(workers_[thread], std::int32_t(i), &id, 1)[0], id, true));
                }
            }
        });
    }

  protected:
    ConstRow row(std::int64_t i) const {
        if (i < old_) return {given_.ids_of(i), given_.distances_of(i)};
        const Row to = added_row(i);
        return {to.ids, to.distances};
    }
    Row added_row(std::int64_t i) const {
        return {added_.ids + (i - old_) * params_.k, added_.distances + (i - old_) * params_.k};
    }
    /// Told of all whose rows are going to be changed, ascending, some more than once.
    virtual void prepare(const std::vector<Offer>&) {}
    /// The row of an object, for a change.
    virtual Row changed_row(std::int64_t i) = 0;

    const Space& space_;
    const BuildParams& params_;
    const Team& team_;
    Resources& resources_;
    const std::int64_t n_, old_;  ///< so many objects in the end, and before
    const KnnGraphView given_;    ///< the rows of old objects
    const Row added_;             ///< (n - old) x k

  private:
    IterationStats insert(std::int64_t count) {
        std::vector<std::int32_t> batch(count);
        std::iota(batch.begin(), batch.end(), std::int32_t(known_));
        const std::vector<std::int32_t> pivots = draw_pivots();
        const KnnGraph starts = nearest_among(space_, team_, batch.data(), count, pivots.data(),
                                              std::int64_t(pivots.size()), kStarts, resources_);
        peers_ = nearest_among(space_, team_, batch.data(), count, batch.data(), count, kPeers, resources_);
        team_.for_chunks(count, 16, [&](int thread, std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) search(workers_[thread], i, starts);
        });
        known_ += count;
        IterationStats stats;
        stats.objects = count;
        stats.distances = count * (std::int64_t(pivots.size()) + count - 1);
        for (InsertWorker& worker : workers_) stats.distances += std::exchange(worker.distances, 0);
        deliver(stats);
        for (std::int64_t i = known_ - count; i < known_; ++i)
            for (int j = 0; j < params_.k && row(i).ids[j] >= 0; ++j) {
                stats.phi += row(i).distances[j];
                ++stats.changed;
            }
        return stats;
    }

    /// See detail::kBackLinks. Where several want a place the largest number has it, as on a GPU.
    void link_back() {
        constexpr int kPlaces = detail::kBackLinks;
        static_assert(kPlaces == 16);  // four bits of the hash
        back_links_ = Buffer<std::int32_t>(resources_, std::size_t(known_) * kPlaces);
        std::fill(back_links_.begin(), back_links_.end(), -1);
        const int last = std::min(params_.k, detail::kBranches) - 1;
        for (std::int64_t i = 0; i < known_; ++i)
            for (int j = 0; j < std::min(params_.k, detail::kLinkedColumns) && row(i).ids[j] >= 0; ++j) {
                const std::int32_t id = row(i).ids[j];
                if (space_.key_of(row(i).distances[j]) <= space_.key_of(row(id).distances[last])) continue;
                const std::uint32_t place = std::uint32_t(i) * 0x9e3779b1u >> 28;
                back_links_[std::size_t(id) * kPlaces + place] = std::int32_t(i);
            }
    }

    std::vector<std::int32_t> draw_pivots() const {
        std::vector<std::int32_t> pivots(std::min(known_, kPivots));
        Random random(params_.seed, std::uint64_t(known_));
        for (std::size_t i = 0; i < pivots.size(); ++i)
            pivots[i] = std::int32_t(detail::pivot(std::uint32_t(i), std::uint32_t(pivots.size()),
                                                   std::uint32_t(known_), std::uint32_t(random.next() >> 32)));
        return pivots;
    }

    const float* keys(InsertWorker& worker, std::int32_t object, const std::int32_t* others, int count) {
        worker.block.compute(&object, 1, others, count);
        worker.distances += count;
        return worker.block.row(0);
    }

    /// Those of the ids that were not seen yet come into the beam, and the object is offered to those that take it in.
    void look_at(InsertWorker& worker, std::int32_t object, const std::int32_t* ids, std::int64_t count) {
        worker.ids.clear();
        for (std::int64_t j = 0; j < count; ++j)
            if (ids[j] >= 0 && ids[j] != object && worker.seen.add(ids[j])) worker.ids.push_back(ids[j]);
        if (worker.ids.empty()) return;
        const float* found = keys(worker, object, worker.ids.data(), int(worker.ids.size()));
        for (std::size_t j = 0; j < worker.ids.size(); ++j) {
            const std::int32_t id = worker.ids[j];
            worker.beam.add(found[j], id);
            // The rows of the batch come to be meanwhile.
            if (id >= known_ || found[j] < space_.key_of(row(id).distances[params_.k - 1]))
                worker.offers.push_back({id, make_entry(found[j], object, true)});
        }
    }

    /// Finds the row of the i-th object of the batch.
    void search(InsertWorker& worker, std::int64_t i, const KnnGraph& starts) {
        const auto object = std::int32_t(known_ + i);
        worker.seen.clear();
        worker.beam.clear();
        look_at(worker, object, starts.ids_of(i), kStarts);
        look_at(worker, object, peers_.ids_of(i), kPeers);
        for (std::int32_t next; (next = worker.beam.next()) >= 0;) {
            if (next >= known_) {
                look_at(worker, object, peers_.ids_of(next - known_), kPeers);
                continue;
            }
            look_at(worker, object, row(next).ids, std::min(params_.k, detail::kBranches));
            const std::size_t links = std::size_t(next) * detail::kBackLinks;
            if (links < back_links_.size()) look_at(worker, object, &back_links_[links], detail::kBackLinks);
        }
        const std::vector<Entry>& found = worker.beam.entries();
        for (int j = 0; j < std::min(params_.k, int(found.size())); ++j) {
            added_row(object).ids[j] = id_of(found[j]);
            added_row(object).distances[j] = space_.value_of(key_of(found[j]));
        }
    }

    /// Puts the object into the row, unless it is there already or all in the row are nearer.
    bool take_in(Row row, Entry entry) {
        const auto [ids, distances] = row;
        if (std::find(ids, ids + params_.k, id_of(entry)) != ids + params_.k) return false;
        const auto entry_at = [&, ids = ids, distances = distances](int j) {
            return ids[j] < 0 ? kEmpty : make_entry(space_.key_of(distances[j]), ids[j], true);
        };
        int place = params_.k;
        while (place > 0 && entry < entry_at(place - 1)) --place;
        if (place == params_.k) return false;
        std::copy_backward(ids + place, ids + params_.k - 1, ids + params_.k);
        std::copy_backward(distances + place, distances + params_.k - 1, distances + params_.k);
        ids[place] = id_of(entry);
        distances[place] = space_.value_of(key_of(entry));
        return true;
    }

    /// Every row takes in the nearest of all that it is offered, whatever the order: the same on any number of threads.
    void deliver(IterationStats& stats) {
        std::vector<Offer> offers;
        for (InsertWorker& worker : workers_) {
            offers.insert(offers.end(), worker.offers.begin(), worker.offers.end());
            worker.offers.clear();
        }
        std::sort(offers.begin(), offers.end());
        prepare(offers);
        std::vector<std::size_t> firsts;
        for (std::size_t i = 0; i < offers.size(); ++i)
            if (i == 0 || offers[i].to != offers[i - 1].to) firsts.push_back(i);
        std::atomic<std::int64_t> accepted{0};
        team_.for_chunks(std::int64_t(firsts.size()), 64, [&](int, std::int64_t begin, std::int64_t end) {
            std::int64_t here = 0;
            for (std::int64_t f = begin; f < end; ++f)
                for (std::size_t i = firsts[f]; i < offers.size() && offers[i].to == offers[firsts[f]].to; ++i)
                    here += take_in(changed_row(offers[i].to), offers[i].entry);
            accepted += here;
        });
        stats.offered = std::int64_t(offers.size());
        stats.accepted = accepted;
    }

    std::int64_t known_;               ///< so many objects belong to the graph
    Buffer<std::int32_t> back_links_;  ///< kBackLinks of each old object, -1 for none
    KnnGraph peers_;                   ///< of the batch
    std::vector<InsertWorker> workers_;
};

}  // namespace gnnd::cpu

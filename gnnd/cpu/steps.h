// SPDX-License-Identifier: MIT
#pragma once
/// \file steps.h
/// The steps of GNND (the paper's Algorithm 1) on the CPU, in the paper's order. build.cpp puts them together.

#include <cstdint>
#include <vector>

#include "gnnd/builder.h"
#include "gnnd/cpu/lists.h"
#include "gnnd/cpu/parallel.h"
#include "gnnd/cpu/space.h"
#include "gnnd/detail/input.h"

namespace gnnd::cpu {

/// Counted by the steps; one per thread, added up per iteration.
struct Counters {
    std::int64_t offered = 0, accepted = 0, distances = 0;
    Counters& operator+=(const Counters& other);
};

/// Collects what a block of distances offers to its objects, so that every list is locked and touched once.
class Offers {
  public:
    /// Room for the offers to `objects` objects.
    void resize(int objects) {
        counts_.assign(objects, 0);
        entries_.resize(std::size_t(objects) * kStride);
    }

    /// Offers object v to objects[i].
    void add(Lists& lists, const std::int32_t* objects, int i, std::int32_t v, float key) {
        if (counts_[i] == 0) lists.prefetch(objects[i]);  // many at once, in flush_all(), would wait for each other
        if (counts_[i] == kRoom) flush(lists, objects, i);
        entries_[i * kStride + counts_[i]++] = make_entry(key, v, true);
    }

    /// Passes the offers to the first `count` objects on to their lists.
    void flush_all(Lists& lists, const std::int32_t* objects, int count) {
        for (int i = 0; i < count; ++i)
            if (counts_[i] != 0) flush(lists, objects, i);
    }

    Counters counters;

  private:
    /// Offers to an object, and places from those of one object to those of the next: a line of the cache more, for the
    /// first places of all objects, which are used most, would share few of its sets at a power of two.
    static constexpr int kRoom = 64, kStride = kRoom + 8;

    void flush(Lists& lists, const std::int32_t* objects, int i) {
        counters.offered += counts_[i];
        counters.accepted += lists.take(objects[i], entries_.data() + i * kStride, counts_[i]);
        counts_[i] = 0;
    }

    std::vector<int> counts_;
    std::vector<Entry> entries_;
};

/// Scratch space of one thread.
struct alignas(64) Worker {
    Block block;
    Offers offers;
    std::vector<float> bounds, nearest_keys;
    std::vector<std::int32_t> ids, hits, nearest;
};

/// All steps work on it.
struct State {
    const Space& space;
    const BuildParams& params;
    Choices choices;
    detail::Pairs pairs;
    Team team;
    Resources& resources;
    Lists lists;
    std::vector<Worker> workers;  ///< one per thread

    /// An order of the objects in which neighbours in space are mostly near each other; work in it shares cache lines.
    Buffer<std::int32_t> order;

    /// Gives every worker a block of that size, and room for offers to its rows and columns.
    void size_blocks(int max_rows, int max_columns);
    /// The sum over all workers, which start from zero again.
    Counters take_counters();
};

/// Step 1, the paper's: p neighbours for every object, picked as the init says (init.h). Where two graphs are merged:
/// from the other set, and as many as the lists have room for.
void init_neighbors(State& state);

/// Fills places that are free in the lists with random objects, up to `count` in each: where the lists are full of
/// near-equal objects nothing else leads out.
void add_random(State& state, int count, std::uint64_t round);

/// Step 1, the other way: random-projection trees; all pairs within a leaf are offered to each other.
void init_from_trees(State& state);
/// Largest leaf; leaves hold between half of it and all of it.
inline constexpr int kLeaf = 64;
/// Trees that are grown at the same time, which bounds their memory and keeps threads busy near the roots, and bytes of
/// an object in each.
inline constexpr int kTreesAtOnce = 4, kTreeBytes = 8;

/// Step 1 of refine(): the graph's entries.
void init_from_graph(State& state, const KnnGraphView& graph);

/// Before step 1 of merge(): the columns of the graphs that stay in the lists, as OLD entries.
void load_graphs(State& state, const detail::Input& input);

/// The NEW and OLD samples of all objects: at most 2p ids each, of which those of the object's own list come first.
class Samples {
  public:
    Samples(std::int64_t n, int p, Resources& resources);
    /// Memory that they take.
    static std::size_t bytes(std::int64_t n, int p) {
        return std::size_t(n) * (4 * std::size_t(p) * sizeof(std::int32_t) + sizeof(Counts));
    }
    int capacity() const { return 2 * p_; }
    const std::int32_t* new_of(std::int64_t i) const { return ids_.data() + i * 4 * p_; }
    const std::int32_t* old_of(std::int64_t i) const { return new_of(i) + 2 * p_; }
    int new_count(std::int64_t i) const { return counts_[i].new_all; }
    int old_count(std::int64_t i) const { return counts_[i].old_all; }

    /// Asks the processor to bring those of object i near.
    void prefetch(std::int64_t i) const {
        __builtin_prefetch(&counts_[i]);
        for (int j = 0; j < 4 * p_; j += 64 / int(sizeof(std::int32_t))) __builtin_prefetch(new_of(i) + j);
    }

    /// Step 2, ParallelSample: the first p NEW and the first p OLD entries of every list; the NEW ones become OLD in
    /// the list. Then every object u that took v as a sample is appended to v's samples of the same kind, up to 2p.
    /// If there are more the round alone, not threads, decides which are taken.
    void draw(State& state, int round);

  private:
    struct Counts {
        std::uint16_t new_own, old_own, new_all, old_all;
    };
    void draw_own(State& state, std::int64_t i);
    void append_reverse(const Team& team, std::int64_t start);

    std::int64_t n_;
    int p_;
    Buffer<std::int32_t> ids_;
    Buffer<Counts> counts_;
};

/// Steps 3 and 4: compares the NEW samples of every object with each other and with its OLD samples, and updates the
/// lists of both sides with what came out, as BuildParams::update says.
void cross_match(State& state, const Samples& samples);

/// Instead of steps 1 to 4, or after them: offers all objects to each other, every pair once, but for tiles of which no
/// pair counts (State::pairs). Lists that are full already save work, since few objects are nearer than their last
/// entry. Floats are compared by codes first, where these pay (codes.h): the lists are the same.
void compare_all(State& state);
/// Rows and columns of the blocks that it compares: two of them, and their keys, fit the cache of a core.
inline constexpr int kTile = 128;
/// Pairs that are computed at a time where codes have chosen them.
inline constexpr int kPairsAtOnce = 64;

/// After an iteration: sums up phi(G) over the first k entries and how many are NEW, and sets the next round's bounds.
IterationStats review(State& state);

/// After the last iteration of merge(): the columns that load_graphs() has left out.
void take_back(State& state, const detail::Input& input);

/// Step 5: the first k entries of every list as a graph, n x k each. Lists that sampling left short are filled with
/// random objects.
void finish(State& state, std::int32_t* ids, float* distances);

}  // namespace gnnd::cpu

// SPDX-License-Identifier: MIT
#pragma once
/// \file schedule.h
/// The order of builds and pair merges, and the worker of each.

#include <vector>

namespace gnnd::shards {

/// Most shards of one set: so that the record of who was merged with whom stays small.
inline constexpr int kMaxShards = 1024;
inline constexpr int kMaxWorkers = 64;

struct Task {
    enum class Kind {
        build,  ///< the own graph of shard `first`; `second` is the same
        merge   ///< GGM of the pair
    };
    Kind kind;
    int first, second;

    bool uses(int shard) const { return first == shard || second == shard; }
    friend bool operator==(const Task&, const Task&) = default;
};

/// Every shard is built once, before its first merge, and every pair merged once. Within a round no two workers use the
/// same shard; a round starts when all workers are through with the one before.
struct Schedule {
    /// [round][worker]: tasks in order. Each merge shares a shard with the merge before it in the same list, so that
    /// one of two need be read.
    std::vector<std::vector<std::vector<Task>>> rounds;

    std::vector<Task> tasks() const;  ///< all of them
};

/// One worker goes through all pairs in one round, back and forth. Of more, each has in every round some shards to
/// itself. Shards that are few are put into two groups per worker, which play a round-robin tournament: in every round
/// a worker merges the cross pairs of two groups, in the first also those within them. Until they are few, about half
/// of them play such a tournament first and are then merged with all others, one half of the half after the other,
/// which finishes them: so that lists can be written from half the way on, and not all at the end.
///
/// \throws InvalidArgument for shards outside of 1 to kMaxShards, workers outside of 1 to kMaxWorkers
Schedule make_schedule(int shards, int workers);

/// The same with the builds alone, each by the worker who would do it.
Schedule make_builds(int shards, int workers);
/// These merges alone, and before the first of a shard its build. One worker does them in the order of make_schedule().
/// Of more, each takes in a round merges that hang together, as many as the others, and those between two workers'
/// shards are left for the next round: near pairs lie side by side, where a tournament would give them to one worker.
/// Merges share a shard with the one before where they happen to.
/// \param merges  of pairs of shards, each once
Schedule make_merges(int shards, int workers, const std::vector<Task>& merges);

}  // namespace gnnd::shards

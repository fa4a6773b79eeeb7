// SPDX-License-Identifier: MIT
#pragma once
/// \file near.h
/// The plan `near`: which pairs of shards are merged, and when it is enough.

#include <functional>

#include "gnnd/shards/borders.h"
#include "gnnd/shards/recall_sample.h"
#include "gnnd/shards/runner.h"

namespace gnnd::shards {

/// Of the merges that are left the first ones that are expected to bring the graph to a recall.
/// \param left    merges, the most promising first; what is chosen is taken away. Not empty
/// \param truth   true neighbours of a sample of objects
/// \param within  of these, how many are in one shard or in two that are merged; what is chosen is added
/// \param recall  of the graph as it is
/// \param target  the recall
/// \return at least a few, so that there are not many batches, and not many more than are needed
std::vector<Task> choose_merges(std::vector<Task>& left, const PairCounts& truth, std::int64_t& within, double recall,
                                double target);

/// Of what may be missing in the end a quarter may be in each shard's own graph, and a quarter in all of a shard's
/// merges together: each brings but a few neighbours, and what is missing adds up. The rest is in pairs that are never
/// merged.
float recall_of_builds(float target);
/// \param merges  that are to come, of so many shards
float recall_of_merges(float target, std::size_t merges, int shards);

/// The recall that a sample must show before merges end. One that looks after every batch, and ends at the first that
/// shows enough, ends sooner where chance is in its favour: the whole would have less than was asked for.
/// \param recall  as the sample shows it
/// \param target  that was asked for
/// \return one standard error more, but no more than a quarter of what may be missing: a small sample cannot tell more
double recall_to_end_at(const RecallEstimate& recall, double target);

/// The next batch of merges.
/// \param manifest  of the recall that was asked for, and of shards that may be smaller than k
/// \param borders   an estimate of what shards share
/// \param truth     true neighbours of a sample of objects
/// \param merged    what was merged so far
/// \param recall    of the graph as it is, measured on the same sample
/// \return none where the graph has the recall and its rows are full, or all are merged
std::vector<Task> next_merges(const Manifest& manifest, const PairCounts& borders, const PairCounts& truth,
                              const std::vector<Task>& merged, const RecallEstimate& recall);

/// Builds the shards and merges, batch after batch, those that share the most neighbours, until the graph has the
/// recall that params ask for, or all are merged. \param borders  an estimate of what shards share \param measure  the
/// recall of the graph that is in the folder \return the recall in the end
RecallEstimate merge_near(Runner& runner, Store& store, const PairCounts& borders, int workers,
                          const std::function<RecallEstimate()>& measure);

}  // namespace gnnd::shards

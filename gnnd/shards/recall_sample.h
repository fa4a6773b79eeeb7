// SPDX-License-Identifier: MIT
#pragma once
/// \file recall_sample.h
/// The recall of a graph in shards as a whole, from a sample of its objects. Their true neighbours come shard by shard:
/// the sample's vectors stay in memory and are compared with those of a shard while a task has these anyway. What the
/// graph has of them is taken from lists whenever these are written. So nothing is read for it but the sample, unless
/// an earlier run has done all of a shard's work.

#include <cstdint>
#include <mutex>
#include <vector>

#include "gnnd/graph.h"
#include "gnnd/io/graph_file.h"
#include "gnnd/io/vector_reader.h"
#include "gnnd/shards/borders.h"
#include "gnnd/shards/manifest.h"
#include "gnnd/stats.h"

namespace gnnd::shards {

/// All member functions may be called from several threads, for different shards.
class RecallSample {
  public:
    /// Reads the vectors of so many objects, or of all if there are fewer.
    RecallSample(const io::VectorReader& base, const Manifest& manifest, std::int64_t objects, int threads);

    /// Host memory that it takes, and that its comparison with a shard takes beside the vectors.
    static std::uint64_t bytes(const Manifest& manifest, std::int64_t objects);

    VectorView vectors() const { return {vectors_.data(), count(), base_.d, base_.dtype, 0}; }
    /// Neighbours that count.
    int at() const { return at_; }
    /// Of each object its number in the shard; -1 for those of others.
    std::vector<std::int32_t> numbers_in(int shard) const;

    bool compared_with(int shard) const { return compared_[std::size_t(shard)] != 0; }
    /// \param nearest  the objects' nearest in the shard, whose ids are its own; at() columns
    /// \param seconds  that it took to find them
    void take_nearest(int shard, const KnnGraphView& nearest, double seconds);

    bool has_lists_of(int shard) const { return listed_[std::size_t(shard)] != 0; }
    /// \param lists  of the shard; what was taken of them before is forgotten
    template <class Id>
    void take_lists(int shard, const GraphView<Id>& lists);
    void read_lists(int shard, const io::GraphFile& lists);

    double seconds() const;  ///< that comparisons took, of all threads together
    /// Once it was compared with all shards and has their lists.
    RecallEstimate estimate() const;
    /// The objects and their true neighbours. Once it was compared with all shards.
    PairCounts borders() const;

  private:
    /// A row of at() entries for each object, ids over the whole set.
    struct Rows {
        std::vector<std::int64_t> ids;
        std::vector<float> distances;
    };
    Rows no_rows() const;
    WideGraphView view_of(const Rows& rows) const;
    std::int64_t count() const { return std::int64_t(objects_.size()); }
    template <class Take>
    void for_objects_of(int shard, const Take& take) const;
    template <class Id>
    void take_list(std::int64_t place, const Id* ids, const float* distances);

    const Manifest manifest_;
    const BaseRecord& base_ = manifest_.base;
    const int at_, threads_;
    std::vector<std::int64_t> objects_;  ///< ascending
    std::vector<std::byte> vectors_;
    std::vector<char> compared_, listed_;  ///< of each shard
    Rows lists_;                           ///< the first columns of the objects' lists
    mutable std::mutex mutex_;             ///< of what follows
    Rows truth_;                           ///< the nearest in all shards that the sample was compared with
    double seconds_ = 0;
};

}  // namespace gnnd::shards

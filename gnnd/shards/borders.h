// SPDX-License-Identifier: MIT
#pragma once
/// \file borders.h
/// Numbers of neighbour pairs that each two shards share.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gnnd/builder.h"
#include "gnnd/io/vector_file.h"
#include "gnnd/shards/manifest.h"
#include "gnnd/shards/schedule.h"

namespace gnnd::shards {

/// Pairs of neighbours, counted by the shards in which both objects are.
class PairCounts {
  public:
    explicit PairCounts(int shards) : shards_(shards), counts_(std::size_t(shards) * std::size_t(shards)) {}
    /// \param counts  as counts() gave them \throws InvalidArgument for others than shards x shards
    PairCounts(int shards, std::vector<std::int64_t> counts);

    void add(int a, int b) {
        ++counts_[std::size_t(std::min(a, b)) * std::size_t(shards_) + std::size_t(std::max(a, b))];
    }
    std::int64_t of(int a, int b) const {
        return counts_[std::size_t(std::min(a, b)) * std::size_t(shards_) + std::size_t(std::max(a, b))];
    }
    int shards() const { return shards_; }
    const std::vector<std::int64_t>& counts() const { return counts_; }
    std::int64_t inside() const;  ///< pairs in one shard
    std::int64_t sum() const;     ///< all pairs
    /// All merges, those of pairs that share the most first; of equal ones the first shards first.
    std::vector<Task> ranked() const;

  private:
    int shards_;
    std::vector<std::int64_t> counts_;
};

/// Estimates the borders of shards from the graph of a sample. The sample is another one than the recall's, so that
/// what is merged for the one does not flatter the other.
/// \param vectors  in the order of the shards
/// \param params   as for the shards' graphs; the device must have room for that of the sample
PairCounts find_borders(const io::VectorReader& vectors, const Manifest& manifest, const BuildParams& params,
                        const Callbacks& callbacks);

/// The same from the vectors of a sample.
/// \param sample  in host memory
/// \param shards  of each of its objects, below `count`
PairCounts count_borders(const VectorView& sample, const std::vector<std::int32_t>& shards, int count,
                         const BuildParams& params, const Callbacks& callbacks);

/// The numbers of the objects in that sample, ascending.
std::vector<std::int64_t> border_sample(const Manifest& manifest, const BuildParams& params);

/// Objects in that sample: at most those of a merge, but for small shards.
std::int64_t border_objects(const Manifest& manifest);

}  // namespace gnnd::shards

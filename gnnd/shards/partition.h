// SPDX-License-Identifier: MIT
#pragma once
/// \file partition.h
/// A coarse partition of the space, by which a base is ordered.

#include <cstdint>
#include <vector>

#include "gnnd/metric.h"
#include "gnnd/vectors.h"

namespace gnnd::cpu {
struct Team;  // not included: who does may have to be compiled with OpenMP
}

namespace gnnd::shards {

/// Balanced hierarchical 2-means: a binary tree, each node of which halves what a sample has in it by a plane across
/// the line between two means. Its leaves, from left to right, are the cells: they hold about as much each, and those
/// whose numbers are near are near in space.
class Partition {
  public:
    /// \param sample  in host memory
    /// \param metric  where it normalises, vectors are normalised
    /// \param levels  of the tree, 0 to 16
    /// \param team    its interrupt ends the call
    Partition(const VectorView& sample, Metric metric, int levels, std::uint64_t seed, const cpu::Team& team);
    /// One that was made before. \param planes  of its inner nodes, for vectors of d components
    Partition(std::int64_t d, Metric metric, std::vector<float> planes);

    int cells() const { return 1 << levels_; }
    /// Of the inner nodes, the root first, level by level: d components of a plane's normal, and its threshold.
    const std::vector<float>& planes() const { return planes_; }
    /// The cell of each vector. \param cells  vectors.n of them
    void find(const VectorView& vectors, std::uint16_t* cells, const cpu::Team& team) const;

  private:
    struct Ranked {
        float value;
        std::int32_t id;
    };
    float* normal(int node) { return planes_.data() + std::size_t(node) * std::size_t(d_ + 1); }
    const float* normal(int node) const { return planes_.data() + std::size_t(node) * std::size_t(d_ + 1); }
    float& threshold(int node) { return normal(node)[d_]; }
    float threshold(int node) const { return normal(node)[d_]; }
    void split(const VectorView& sample, int node, Ranked* objects, std::int64_t count, std::int64_t half,
               std::uint64_t seed, std::vector<float>& row);
    void read_row(const VectorView& vectors, std::int64_t i, float* row) const;
    void rank(const VectorView& sample, int node, Ranked* objects, std::int64_t count, std::int64_t half,
              std::vector<float>& row) const;

    const std::int64_t d_;
    const int levels_;
    const bool normalized_;
    std::vector<float> planes_;
};

}  // namespace gnnd::shards

// SPDX-License-Identifier: MIT
#pragma once
/// \file space.h
/// Vectors under a metric, and one thread's scratch space for blocks of distances. Distances appear as keys: smaller is
/// nearer for every metric (similarities are negated).

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gnnd/cpu/kernels.h"
#include "gnnd/cpu/parallel.h"
#include "gnnd/resources.h"
#include "gnnd/vectors.h"

namespace gnnd::cpu {

struct Space {
    VectorView vectors;
    Metric metric;
    Kernels kernels;
    Buffer<float> inverse_norms;  ///< n, for normalized metrics only

    /// Picks the kernels for this processor.
    Space(const VectorView& vectors, Metric metric, const Team& team, Resources& resources);

    /// The metric's value of a key, and the other way. No key is a negative zero, which a graph may bring.
    float value_of(float key) const { return similarity ? 0 - key : key; }
    float key_of(float value) const { return similarity ? 0 - value : value + 0; }
    bool similarity;

    /// Asks the processor to bring row i near, as far as a slice of it reaches.
    void prefetch(std::int64_t i) const {
        const auto* row = static_cast<const std::byte*>(vectors.data) + i * vectors.row_bytes();
        const auto bytes = std::min(vectors.row_bytes(), std::int64_t(kSlice));
        for (std::int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at);
    }
};

/// Keys of all pairs of two small sets of objects.
class Block {
  public:
    Block() = default;
    Block(const Space& space, int max_rows, int max_columns, Resources& resources);
    /// Memory that it takes.
    static std::size_t bytes(int max_rows, int max_columns, bool normalized);

    /// Keys of objects rows[i] and columns[j]; see row().
    void compute(const std::int32_t* rows, int row_count, const std::int32_t* columns, int column_count);
    /// The same for rows of another space, of the same metric, dtype and d.
    void compute(const Space& of_rows, const std::int32_t* rows, int row_count, const std::int32_t* columns,
                 int column_count);

    /// Keys among `columns`, whose first row_count objects are the rows; only those with j > i are defined.
    void compute_triangle(const std::int32_t* columns, int row_count, int column_count);

    const float* row(int i) const { return keys_.data() + std::size_t(i) * stride_; }
    float* row(int i) { return keys_.data() + std::size_t(i) * stride_; }

  private:
    void run(const Space& of_rows, const std::int32_t* rows, int row_count, const std::int32_t* columns,
             int column_count, bool triangular);

    const Space* space_ = nullptr;
    int stride_ = 0;
    Buffer<std::byte> row_tile_, column_tile_, panels_;
    Buffer<float> keys_, row_scales_, column_scales_;
};

/// Keys of chosen pairs, the same ones as a Block's. For spaces whose kernels have pairs().
class PairBlock {
  public:
    PairBlock() = default;
    PairBlock(const Space& space, int max_pairs, Resources& resources);
    /// Memory that it takes.
    static std::size_t bytes(int max_pairs);

    /// Keys of objects a[p] and b[p].
    void compute(const std::int32_t* a, const std::int32_t* b, int count);
    const float* keys() const { return keys_.data(); }

  private:
    const Space* space_ = nullptr;
    Buffer<std::byte> tile_, a_panels_, b_panels_;
    Buffer<float> keys_;
};

}  // namespace gnnd::cpu

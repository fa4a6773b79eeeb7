// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file vectors.h
/// A non-owning view of n vectors of d components.

#include <cstddef>
#include <cstdint>

#include "gnnd/dtype.h"

namespace gnnd {

/// Largest number of objects in one graph: ids are 32-bit, and one bit marks NEW entries.
inline constexpr std::int64_t kMaxObjects = (std::int64_t(1) << 31) - 1;
/// Largest number of objects in a graph in shards, whose ids are 64-bit where they have to be; each shard is a graph,
/// and so are two that are merged: of 1,024 shards each has less than 2^30.
inline constexpr std::int64_t kMaxShardedObjects = (std::int64_t(1) << 40) - 1024;
/// Largest dimension that files and builders accept.
inline constexpr std::int64_t kMaxDim = 1 << 20;

/// n rows of d components in host memory, or where a function allows it on the device that it computes on; the memory
/// belongs to somebody else and outlives the view.
/// Rows need no alignment beyond that of their element type.
struct VectorView {
    const void* data = nullptr;  ///< the first row
    std::int64_t n = 0;          ///< rows
    std::int64_t d = 0;          ///< components of a row
    DType dtype = DType::f32;    ///< of the components
    std::int64_t stride = 0;     ///< bytes from one row to the next; 0 stands for d * size_of(dtype)

    /// Bytes from one row to the next.
    std::int64_t row_bytes() const { return stride != 0 ? stride : d * std::int64_t(size_of(dtype)); }
    /// Row i, d components.
    const std::byte* row(std::int64_t i) const { return static_cast<const std::byte*>(data) + i * row_bytes(); }
};

/// Copies rows [begin, begin + count) of vectors in host memory to out, row-major count x d, converted to float32,
/// which is exact. \throws InvalidArgument for rows outside of the view, and for components that are not of vectors
void copy_as_f32(const VectorView& vectors, std::int64_t begin, std::int64_t count, float* out);

}  // namespace gnnd

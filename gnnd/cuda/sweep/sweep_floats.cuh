// SPDX-License-Identifier: MIT
#pragma once
/// \file sweep_floats.cuh
/// The same in float32, component by component as the metric says: for metrics without a product, and where float16
/// cannot tell neighbours apart. A thread has 8 x 8 pairs of a tile.

#include "gnnd/cuda/device/raw.cuh"
#include "gnnd/cuda/sweep/sweep_launch.h"

namespace gnnd::cuda {

inline constexpr int kFloatThreads = 256;

/// A row in its own type, read as float32: which type it is, all threads ask alike, and 64 pairs share the answer.
/// visit() of dtype.h throws, which no kernel can: its cases are spelled out here.
struct AnyRow {
    const std::byte* data;
    DType dtype;
    float factor;

    __device__ float operator[](int c) const {
        switch (dtype) {
#define GNND_DTYPE(name, number, type) \
    case DType::name:                  \
        return float(reinterpret_cast<const DeviceComponent<type>*>(data)[c]) * factor;
            GNND_VECTOR_DTYPES(GNND_DTYPE)
#undef GNND_DTYPE
            case DType::i32:  // of ids, not of vectors
                break;
        }
        return 0;
    }
};

/// \param factors  n
template <class M, bool Both>
__global__ void __launch_bounds__(kFloatThreads, 2)
    sweep_floats_kernel(SweepArgs args, RawVectors vectors, const float* factors, u32 per_block) {
    constexpr int kDepth = 16, kEach = 8, kSide = kFloatRows / kEach, kPitch = kFloatRows + 4;
    __shared__ float tile[2][kDepth][kPitch];  // rows, columns: component by component
    const TileWalk<Both, kFloatRows, kFloatRows> walk(args, per_block);
    const int x = threadIdx.x % kSide, y = threadIdx.x / kSide;  // of its columns and rows the first; every kSide-th
    const u32 first_row = walk.panel * kFloatRows;

    // Each thread brings half of the components of one row and of one column.
    const int loads = threadIdx.x / 2, from = threadIdx.x % 2 * (kDepth / 2);
    const auto row_at = [&](u32 place, u32 count, const u32* ids) {
        const u32 object = place >= count ? 0 : ids != nullptr ? ids[place] : place;
        return AnyRow{vectors.data + std::int64_t(object) * vectors.stride, vectors.dtype,
                      factors != nullptr ? factors[object] : 1.0f};
    };
    const AnyRow row = row_at(first_row + loads, args.rows, args.row_ids);

    for (u32 i = 0; i < walk.count; ++i) {
        const u32 first_column = walk.first_column(i);
        const AnyRow column = row_at(first_column + loads, args.columns, nullptr);
        float sums[kEach][kEach] = {};
        for (int c = 0; c < int(vectors.d); c += kDepth) {
#pragma unroll
            for (int j = from; j < from + kDepth / 2; ++j) {
                const bool real = c + j < int(vectors.d);
                tile[0][j][loads] = real ? row[c + j] : 0.0f;
                tile[1][j][loads] = real ? column[c + j] : 0.0f;
            }
            __syncthreads();
#pragma unroll 4
            for (int j = 0; j < kDepth; ++j) {
                float a[kEach], b[kEach];
#pragma unroll
                for (int r = 0; r < kEach; ++r) {
                    a[r] = tile[0][j][y + r * kSide];
                    b[r] = tile[1][j][x + r * kSide];
                }
#pragma unroll
                for (int r = 0; r < kEach; ++r)
#pragma unroll
                    for (int s = 0; s < kEach; ++s) sums[r][s] = M::accumulate(sums[r][s], a[r], b[s]);
            }
            __syncthreads();
        }
        const bool diagonal = walk.diagonal(i);
#pragma unroll
        for (int r = 0; r < kEach; ++r) {
            const u32 here = first_row + y + r * kSide;
            const float least = -__uint_as_float(args.of_rows[here].limit);
            const u32 id = Both ? here : here < args.rows ? args.row_ids[here] : 0;
#pragma unroll
            for (int s = 0; s < kEach; ++s) {
                const u32 there = first_column + x + s * kSide;
                const float sum = M::similarity ? sums[r][s] : -sums[r][s];
                if (diagonal ? there <= here : there == id) continue;
                if (there >= args.columns || here >= args.rows) continue;
                if (sum > least) put_hit(args.hits, here, there);
                if (Both && sum > -__uint_as_float(args.of_columns[there].limit)) put_hit(args.hits, there, here);
            }
        }
    }
}

}  // namespace gnnd::cuda

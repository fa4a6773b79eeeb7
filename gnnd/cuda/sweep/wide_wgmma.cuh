// SPDX-License-Identifier: MIT
#pragma once
/// \file wide_wgmma.cuh
/// The matrix instruction of device/wgmma.cuh for 64 rows and kPanelColumns others, so that four warps share what they
/// read.

#include "gnnd/cuda/device/wgmma.cuh"
#include "gnnd/cuda/sweep/sweep_args.h"

#if GNND_HAS_WGMMA

namespace gnnd::cuda {

static_assert(kPanelColumns == 128);

// clang-format off
/// 64 sums a thread, of the kind "r" (int) or "f" (float).
#define GNND_WIDE_WGMMA(shape, kind, more) \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %66, 0;\n wgmma.mma_async.sync.aligned." shape " " \
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
                 "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, " \
                 "%42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, " \
                 "%62, %63}, " \
                 "%64, %65, p" more ";}\n" \
                 : "+" kind(c[0][0]), "+" kind(c[0][1]), "+" kind(c[0][2]), "+" kind(c[0][3]), "+" kind(c[1][0]), \
                   "+" kind(c[1][1]), "+" kind(c[1][2]), "+" kind(c[1][3]), "+" kind(c[2][0]), "+" kind(c[2][1]), \
                   "+" kind(c[2][2]), "+" kind(c[2][3]), "+" kind(c[3][0]), "+" kind(c[3][1]), "+" kind(c[3][2]), \
                   "+" kind(c[3][3]), "+" kind(c[4][0]), "+" kind(c[4][1]), "+" kind(c[4][2]), "+" kind(c[4][3]), \
                   "+" kind(c[5][0]), "+" kind(c[5][1]), "+" kind(c[5][2]), "+" kind(c[5][3]), "+" kind(c[6][0]), \
                   "+" kind(c[6][1]), "+" kind(c[6][2]), "+" kind(c[6][3]), "+" kind(c[7][0]), "+" kind(c[7][1]), \
                   "+" kind(c[7][2]), "+" kind(c[7][3]), "+" kind(c[8][0]), "+" kind(c[8][1]), "+" kind(c[8][2]), \
                   "+" kind(c[8][3]), "+" kind(c[9][0]), "+" kind(c[9][1]), "+" kind(c[9][2]), "+" kind(c[9][3]), \
                   "+" kind(c[10][0]), "+" kind(c[10][1]), "+" kind(c[10][2]), "+" kind(c[10][3]), \
                   "+" kind(c[11][0]), "+" kind(c[11][1]), "+" kind(c[11][2]), "+" kind(c[11][3]), \
                   "+" kind(c[12][0]), "+" kind(c[12][1]), "+" kind(c[12][2]), "+" kind(c[12][3]), \
                   "+" kind(c[13][0]), "+" kind(c[13][1]), "+" kind(c[13][2]), "+" kind(c[13][3]), \
                   "+" kind(c[14][0]), "+" kind(c[14][1]), "+" kind(c[14][2]), "+" kind(c[14][3]), \
                   "+" kind(c[15][0]), "+" kind(c[15][1]), "+" kind(c[15][2]), "+" kind(c[15][3]) \
                 : "l"(a), "l"(b), "r"(add))
// clang-format on

/// Adds one step (32 bytes) of the products; with add = 0 it overwrites. It is under way until wait_products().
template <PackedType C, class Sum>
__device__ __forceinline__ void wide_instruction(Sum (&c)[kPanelColumns / kTileColumns][4], u64 a, u64 b, int add) {
    if constexpr (C == PackedType::u8)
        GNND_WIDE_WGMMA("m64n128k32.s32.u8.u8", "r", "");
    else if constexpr (C == PackedType::i8)
        GNND_WIDE_WGMMA("m64n128k32.s32.s8.s8", "r", "");
    else {
        static_assert(C == PackedType::f16);
        GNND_WIDE_WGMMA("m64n128k16.f32.f16.f16", "f", ", 1, 1, 0, 0");
    }
}

#undef GNND_WIDE_WGMMA

/// Starts the products of a tile of kTileBytes: 64 rows with kPanelColumns others.
template <PackedType C, class Sum>
__device__ __forceinline__ void start_products(Sum (&c)[kPanelColumns / kTileColumns][4], const std::uint8_t* rows,
                                               const std::uint8_t* columns, bool add) {
    const u64 a = rows_descriptor(rows), b = rows_descriptor(columns);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int step = 0; step < kTileBytes / kStep; ++step)  // all of them: behind a row's end the tile holds zeros
        wide_instruction<C>(c, a + step * (kStep >> 4), b + step * (kStep >> 4), add || step > 0);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits until at most Pending tiles' products are under way.
template <int Pending>
__device__ __forceinline__ void wait_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

}  // namespace gnnd::cuda

#endif  // GNND_HAS_WGMMA

// SPDX-License-Identifier: MIT
#pragma once
/// \file wgmma.cuh
/// Hopper's matrix instruction for four warps at once: 64 rows times 32, 64 or 128 others, both read from shared memory
/// by the tensor cores themselves, where the older instruction needs every warp to load all columns. Sums lie in the
/// registers as with the older one (tile.cuh): each warp has 16 of the 64 rows.

#include "gnnd/cuda/device/tile.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define GNND_HAS_WGMMA 1
#else
#define GNND_HAS_WGMMA 0
#endif

namespace gnnd::cuda {

/// Rows of a group of warps.
inline constexpr int kGroupRows = 64;

#if GNND_HAS_WGMMA

/// The place of 64 rows of a tile, as the instruction wants it: 128-byte rows, chunks permuted within 8 rows as
/// chunk_offset() does, groups of 8 rows 1024 bytes apart. The address is a multiple of 1024 but for the step inside
/// the row.
__device__ inline u64 rows_descriptor(const std::uint8_t* rows) {
    constexpr u64 kSwizzle128 = u64(1) << 62, kGroupStride = u64(1024 >> 4) << 32;
    return kSwizzle128 | kGroupStride | u64(1) << 16 | (u64(__cvta_generic_to_shared(rows)) & 0x3ffff) >> 4;
}

// clang-format off
/// \param kind  of the sums: "r" (int) or "f" (float)
#define GNND_TILE(kind, t) "+" kind(c[t][0]), "+" kind(c[t][1]), "+" kind(c[t][2]), "+" kind(c[t][3])
#define GNND_TILES(kind, t) GNND_TILE(kind, t), GNND_TILE(kind, t + 1), GNND_TILE(kind, t + 2), GNND_TILE(kind, t + 3)
#define GNND_SUMS_32 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define GNND_SUMS_64 GNND_SUMS_32 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define GNND_SUMS_128 GNND_SUMS_64 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
                      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
/// The operands are the numbers of a, b and add, which follow the sums.
#define GNND_WGMMA(columns, shape, registers, operand_a, operand_b, operand_add, more, ...) \
    asm volatile("{.reg .pred p; setp.ne.b32 p, " operand_add ", 0;\n wgmma.mma_async.sync.aligned.m64n" columns shape \
                 " {" registers "}, " operand_a ", " operand_b ", p" more ";}\n" \
                 : __VA_ARGS__ : "l"(a), "l"(b), "r"(add))
#define GNND_INSTRUCTION(shape, kind, more) \
    if constexpr (Tiles == 4) \
        GNND_WGMMA("32", shape, GNND_SUMS_32, "%16", "%17", "%18", more, GNND_TILES(kind, 0)); \
    else if constexpr (Tiles == 8) \
        GNND_WGMMA("64", shape, GNND_SUMS_64, "%32", "%33", "%34", more, GNND_TILES(kind, 0), GNND_TILES(kind, 4)); \
    else \
        GNND_WGMMA("128", shape, GNND_SUMS_128, "%64", "%65", "%66", more, GNND_TILES(kind, 0), GNND_TILES(kind, 4), \
                   GNND_TILES(kind, 8), GNND_TILES(kind, 12))
// clang-format on

/// Adds one step (32 bytes) of the products; with add = 0 it overwrites. It is under way until wait_products().
template <PackedType C, int Tiles, class Sum>
__device__ __forceinline__ void group_instruction(Sum (&c)[Tiles][4], u64 a, u64 b, int add) {
    static_assert(Tiles == 4 || Tiles == 8 || Tiles == 16);
    if constexpr (C == PackedType::u8) {
        GNND_INSTRUCTION("k32.s32.u8.u8", "r", "");
    } else if constexpr (C == PackedType::i8) {
        GNND_INSTRUCTION("k32.s32.s8.s8", "r", "");
    } else {
        static_assert(C == PackedType::f16);
        GNND_INSTRUCTION("k16.f32.f16.f16", "f", ", 1, 1, 0, 0");
    }
}

#undef GNND_INSTRUCTION
#undef GNND_WGMMA
#undef GNND_SUMS_128
#undef GNND_SUMS_64
#undef GNND_SUMS_32
#undef GNND_TILES
#undef GNND_TILE

/// Starts the products of a tile of kTileBytes: 64 rows with Tiles * 8 others, by the four warps of a group together;
/// `rows` and `columns` point to the first of each in shared memory. Needs publish_rows() and a barrier before.
template <PackedType C, int Tiles, class Sum>
__device__ __forceinline__ void start_products(Sum (&sum)[Tiles][4], const std::uint8_t* rows,
                                               const std::uint8_t* columns, bool add) {
    const u64 a = rows_descriptor(rows), b = rows_descriptor(columns);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int step = 0; step < kTileBytes / kStep; ++step)  // all of them: behind a row's end the tile holds zeros
        group_instruction<C>(sum, a + step * (kStep >> 4), b + step * (kStep >> 4), add || step > 0);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits until at most Pending tiles' products are under way.
template <int Pending>
__device__ __forceinline__ void wait_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

#endif  // GNND_HAS_WGMMA

/// Adds to, or with add = false sets, the sums of this warp's 16 rows with Tiles * 8 others. The warps of a group
/// (four, or fewer where a tile has fewer rows: kWarps) take 16 rows each from tile row `first` on; the others start at
/// tile row `column`, and `tiles` says how many eights of them count. All warps of the group call it together.
template <class Arithmetic, int kWarps, int Tiles>
__device__ void multiply_group(typename Arithmetic::Sum (&sum)[Tiles][4], const std::uint8_t* tile, int first,
                               int column, int steps, int tiles, bool add) {
#if GNND_HAS_WGMMA
    if constexpr (Arithmetic::kTensor && kWarps * kTileRows == kGroupRows) {
        start_products<Arithmetic::packed>(sum, tile + first * kTileBytes, tile + column * kTileBytes, add);
        wait_products<0>();
        return;
    }
#endif
    if (!add)
#pragma unroll
        for (int i = 0; i < Tiles * 4; ++i) sum[i / 4][i % 4] = 0;
    typename Arithmetic::Rows rows;
    Arithmetic::load(rows, tile, first + threadIdx.x / kWarp % kWarps * kTileRows, steps);
#pragma unroll
    for (int t = 0; t < Tiles; ++t)
        if (t < tiles) Arithmetic::multiply(sum[t], rows, tile, column + t * kTileColumns, steps);
}

/// To be called between the arrival of this thread's rows and the barrier before multiply_group().
__device__ inline void publish_rows() {
#if GNND_HAS_WGMMA
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

}  // namespace gnnd::cuda

// SPDX-License-Identifier: MIT
#pragma once
/// \file pipeline.cuh
/// Tiles of rows that one thread of a block orders and Hopper's copy engine brings, while the others compute: stages of
/// shared memory, each with a barrier that says it is full and one that says it is read.

#include <cuda.h>

#include "gnnd/cuda/device/wgmma.cuh"

#if GNND_HAS_WGMMA

namespace gnnd::cuda {

__device__ inline u32 shared_address(const void* pointer) {
    return u32(__cvta_generic_to_shared(pointer));
}

/// An mbarrier in shared memory. Phases take turns, and waiters say which of the two they wait for.
struct PhaseBarrier {
    u64 state;

    __device__ void init(int arrivals) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(this)), "r"(arrivals) : "memory");
    }
    __device__ void arrive() {
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(this)) : "memory");
    }
    /// Arrives, and holds the phase until so many bytes have come.
    /// At the barrier that has the same place in another block of the cluster.
    __device__ void arrive_at(u32 block) {
        asm volatile(
            "{.reg .b32 there;\n"
            "mapa.shared::cluster.u32 there, %0, %1;\n"
            "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];}\n" ::"r"(shared_address(this)),
            "r"(block)
            : "memory");
    }
    __device__ void arrive_expecting(int bytes) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(this)), "r"(bytes)
                     : "memory");
    }
    __device__ void wait(u32 phase) {
        asm volatile(
            "{.reg .pred done;\n"
            "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
            "@!done bra again;}\n" ::"r"(shared_address(this)),
            "r"(phase & 1)
            : "memory");
    }
};

/// Starts copying kTileBytes of 128 rows, from byte `column` of the row `row` on; what lies outside becomes zero.
__device__ inline void copy_rows(std::uint8_t* to, const CUtensorMap& from, int column, int row, PhaseBarrier& full) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
        "[%4];" ::"r"(shared_address(to)),
        "l"(&from), "r"(column), "r"(row), "r"(shared_address(&full))
        : "memory");
}

/// The same into all blocks of a cluster that the bits of `blocks` name, each to the same place and barrier.
__device__ inline void copy_rows_to(std::uint16_t blocks, std::uint8_t* to, const CUtensorMap& from, int column,
                                    int row, PhaseBarrier& full) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
        "[%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(to)),
        "l"(&from), "r"(column), "r"(row), "r"(shared_address(&full)), "h"(blocks)
        : "memory");
}

/// Waits until all threads of the cluster that have not ended are here.
__device__ inline void sync_cluster() {
    asm volatile(
        "barrier.cluster.arrive.release;\n"
        "barrier.cluster.wait.acquire;\n" ::
            : "memory");
}

/// Starts copying whole 16 bytes.
__device__ inline void copy_bytes(void* to, const void* from, int bytes, PhaseBarrier& full) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(&full))
                 : "memory");
}

/// The order of stages, for who fills them and who reads them.
struct StageCursor {
    int stages, stage = 0;
    u32 phase = 0;

    __device__ void advance() {
        if (++stage == stages) {
            stage = 0;
            phase ^= 1;
        }
    }
};

}  // namespace gnnd::cuda

#endif  // GNND_HAS_WGMMA

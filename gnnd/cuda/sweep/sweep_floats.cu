// SPDX-License-Identifier: MIT
#include <algorithm>

#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/cuda/sweep/sweep_floats.cuh"

namespace gnnd::cuda {

void sweep_floats(Metric metric, const SweepArgs& args, const RawVectors& vectors, const float* factors,
                  cudaStream_t stream) {
    if (args.begin >= args.end || args.rows == 0) return;
    const u32 width = args.end - args.begin, per_block = std::max(16u, least_per_block(width));
    const dim3 blocks(panels_of(args.rows, kFloatRows), (width + per_block - 1) / per_block);
    visit(metric, [&]<class M>(M) {
        if (args.row_ids == nullptr)
            sweep_floats_kernel<M, true><<<blocks, kFloatThreads, 0, stream>>>(args, vectors, factors, per_block);
        else
            sweep_floats_kernel<M, false><<<blocks, kFloatThreads, 0, stream>>>(args, vectors, factors, per_block);
        GNND_LAUNCHED("sweep_floats_kernel");
    });
}

}  // namespace gnnd::cuda

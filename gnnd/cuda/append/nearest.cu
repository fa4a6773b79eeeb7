// All pairs of two ranges of objects, for every kind of cells and metric.
#include "gnnd/cuda/append/insert.h"
#include "gnnd/cuda/append/nearest.cuh"
#include "gnnd/cuda/device/launch.cuh"

namespace gnnd::cuda {

void find_nearest(const Points& points, Cell cell, Metric metric, const Ranges& ranges, const u32* objects, int take,
                  u32* nearest, cudaStream_t stream) {
    const auto start = [&]<class E>(E) {
        const dim3 blocks(blocks_for(ranges.rows, kBlockRows), blocks_for(ranges.columns, kGroup));
        nearest_kernel<E><<<blocks, 2 * kBlockRows, 0, stream>>>(points, ranges, objects, take, nearest);
        GNND_LAUNCHED("nearest_kernel");
    };
    if (metric == Metric::L1)
        start(ScalarEngine<Cell::f16, metrics::L1>());
    else if (metric == Metric::Linf)
        start(ScalarEngine<Cell::f16, metrics::Linf>());
    else if (metric == Metric::ChiSquare)
        start(ScalarEngine<Cell::f16, metrics::ChiSquare>());
    else if (cell == Cell::u8)
        start(TensorEngine<Cell::u8>());
    else if (cell == Cell::i8)
        start(TensorEngine<Cell::i8>());
    else
        start(TensorEngine<Cell::f16>());
}

}  // namespace gnnd::cuda

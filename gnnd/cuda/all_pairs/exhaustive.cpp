// SPDX-License-Identifier: MIT
#include "gnnd/cuda/all_pairs/exhaustive.h"

#include <numeric>
#include <vector>

#include "gnnd/cpu/backend.h"
#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/memory/memory.h"

namespace gnnd::cuda {

KnnGraph compare_on_host(const detail::Input& input, const std::int32_t* queries, std::int64_t count,
                         const BuildParams& params, const Callbacks& callbacks, Resources& resources) {
    const std::size_t row = std::size_t(input.d()) * size_of(input.dtype());
    std::vector<std::byte> copy(row * std::size_t(input.n()));
    std::byte* to = copy.data();
    for (const VectorView& set : input.vectors) {
        if (set.n != 0) cuda::copy_to_host(set, to);
        to += row * std::size_t(set.n);
    }
    const VectorView here{copy.data(), input.n(), input.d(), input.dtype(), 0};
    cpu::check_vectors(here, params.metric, params.threads, callbacks, input.first);
    return cpu::exact_neighbors(here, queries, count, params.k, params.metric, params.threads, callbacks, resources);
}

void run_exhaustively(const detail::Input& input, const BuildParams& params, const Callbacks& callbacks,
                      Resources& resources, std::int32_t* ids, float* distances) {
    const OwnedStream stream(resources);
    GNND_CUDA(cudaStreamSynchronize(stream));  // what the caller's stream still writes
    std::vector<std::int32_t> all(input.n());
    std::iota(all.begin(), all.end(), 0);
    const KnnGraph graph = compare_on_host(input, all.data(), input.n(), params, callbacks, resources);
    const std::size_t bytes = std::size_t(input.n()) * params.k * 4;
    GNND_CUDA(cudaMemcpyAsync(ids, graph.ids(), bytes, cudaMemcpyDefault, stream));
    GNND_CUDA(cudaMemcpyAsync(distances, graph.distances(), bytes, cudaMemcpyDefault, stream));
    GNND_CUDA(cudaStreamSynchronize(stream));
}

}  // namespace gnnd::cuda

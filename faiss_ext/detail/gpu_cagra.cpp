// SPDX-License-Identifier: MIT
// CAGRA on a GPU, where FAISS was built with cuVS.
#include <faiss/gpu/GpuIndexCagra.h>

#include <memory>

#include "faiss_ext/adapters.h"
#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/gpu.h"

namespace faiss_ext {

bool faiss_has_cagra() {
    return true;
}

std::shared_ptr<faiss::Index> to_gpu_cagra(const VectorSource& source, const gnnd::KnnGraphView& graph,
                                           const HnswCagraParams& params) {
    return detail::with_faiss_errors([&] {
        detail::check_gpu(params.gpu, "to_gpu_cagra");
        const std::shared_ptr<faiss::IndexHNSWCagra> host = to_hnsw_cagra(source, graph, params);
        faiss::gpu::GpuIndexCagraConfig config;
        config.device = params.gpu.device;
        auto made =
            std::make_unique<faiss::gpu::GpuIndexCagra>(params.gpu.resources, int(host->d), host->metric_type, config);
        made->verbose = params.verbose;
        made->copyFrom(host.get());
        // FAISS goes on using the vectors of what it has copied from.
        return std::shared_ptr<faiss::Index>(made.release(), [host](faiss::Index* index) { delete index; });
    });
}

}  // namespace faiss_ext

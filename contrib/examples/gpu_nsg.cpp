// SPDX-License-Identifier: MIT
// From vectors on a GPU to a graph index that plain FAISS searches and stores.
#include <faiss/gpu/GpuIndexFlat.h>
#include <faiss/gpu/StandardGpuResources.h>
#include <faiss/index_io.h>
#include <faiss/utils/random.h>

#include <cstdio>
#include <vector>

#include "faiss_ext/adapters.h"
#include "faiss_ext/evaluate.h"
#include "faiss_ext/graph_builder.h"

int main() {
    const int n = 100000, d = 64;
    std::vector<float> x(n * d);
    faiss::float_rand(x.data(), x.size(), 1234);
    faiss::gpu::StandardGpuResources resources;
    faiss::gpu::GpuIndexFlatL2 flat(&resources, d);
    flat.add(n, x.data());

    faiss_ext::VectorSource source(&flat);             // where they are: nothing is copied
    faiss_ext::GnndGraphBuilder builder(&resources);   // FAISS's memory and streams
    gnnd::KnnGraph graph = builder.build(source, 64);  // ids() and distances(), n x 64
    faiss_ext::Gpu gpu{&resources, 0};
    std::printf("Recall@10 of the graph %.4f\n", faiss_ext::recall(source, graph, 10, 10000, 1, gpu).value);

    auto nsg = faiss_ext::to_nsg(source, graph, {.R = 32, .search_L = 128, .gpu = gpu});
    std::vector<float> distances(10);
    std::vector<faiss_ext::idx_t> labels(10);
    nsg->search(1, x.data(), 10, distances.data(), labels.data());
    std::printf("Nearest to vector 0: %d at %.3f\n", int(labels[0]), distances[0]);
    faiss::write_index(nsg.get(), "gpu_nsg.faiss");
}

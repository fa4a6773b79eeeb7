// SPDX-License-Identifier: MIT
// From a FAISS index to a graph index that plain FAISS searches and stores.
#include <faiss/IndexFlat.h>
#include <faiss/index_io.h>
#include <faiss/utils/random.h>

#include <cstdio>
#include <vector>

#include "faiss_ext/adapters.h"
#include "faiss_ext/evaluate.h"
#include "faiss_ext/graph_builder.h"

int main() {
    const int n = 20000, d = 16;
    std::vector<float> x(n * d);
    faiss::float_rand(x.data(), x.size(), 1234);

    faiss::IndexFlatL2 flat(d);  // or any index that holds vectors
    flat.add(n, x.data());

    faiss_ext::VectorSource source(&flat);             // no copy for IndexFlat
    faiss_ext::GnndGraphBuilder builder;               // or make_graph_builder("exact"), "ivfpq", "nndescent"
    gnnd::KnnGraph graph = builder.build(source, 32);  // ids() and distances(), n x 32
    double recall = faiss_ext::recall(source, graph, 10).value;

    auto index = faiss_ext::to_nsg(source, graph);  // a faiss::IndexNSGFlat
    std::vector<float> distances(10);
    std::vector<faiss_ext::idx_t> labels(10);
    index->search(1, x.data(), 10, distances.data(), labels.data());
    std::printf("Recall@10 of the graph %.4f, nearest to vector 0: %d\n", recall, int(labels[0]));
    faiss::write_index(index.get(), "nsg.faiss");
}

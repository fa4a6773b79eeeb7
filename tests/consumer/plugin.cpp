// SPDX-License-Identifier: MIT
// Builds the graph of the vectors in a FAISS index and compares it with FAISS's exact search.
#include <faiss/IndexFlat.h>
#include <faiss_ext/adapters.h>
#include <faiss_ext/evaluate.h>
#include <faiss_ext/graph_builder.h>

#include <cstdio>
#include <random>
#include <vector>

int main() {
    constexpr int kN = 2000, kDim = 8, kNeighbors = 10;
    std::mt19937 generator(1);
    std::uniform_real_distribution<float> uniform;
    std::vector<float> vectors(kN * kDim);
    for (float& value : vectors) value = uniform(generator);
    faiss::IndexFlatL2 index(kDim);
    index.add(kN, vectors.data());

    const faiss_ext::VectorSource source(&index);
    const gnnd::KnnGraph graph = faiss_ext::GnndGraphBuilder().build(source, kNeighbors);
    const double recall = faiss_ext::recall(source, graph, kNeighbors).value;
    std::printf("Recall@%d %.4f\n", kNeighbors, recall);
    return recall > 0.9 && faiss_ext::to_hnsw(source, graph)->ntotal == kN ? 0 : 1;
}

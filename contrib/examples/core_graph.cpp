// SPDX-License-Identifier: MIT
// From an array to a k-NN graph in a file, without FAISS.
#include <cstdio>
#include <random>
#include <vector>

#include "gnnd/builder.h"
#include "gnnd/io/graph_file.h"

int main() {
    const int n = 20000, d = 16;
    std::vector<float> x(n * d);
    std::mt19937 random(1234);
    for (float& value : x) value = float(random()) / float(random.max());

    gnnd::BuildParams params;
    params.k = 32;
    params.metric = gnnd::Metric::Cosine;
    gnnd::BuildResult result = gnnd::build({x.data(), n, d, gnnd::DType::f32}, params);

    std::printf("%s after %d iterations\n", gnnd::name_of(result.stats.stop).data(),
                int(result.stats.iterations.size()) - 1);
    std::printf("nearest to vector 0: %d at %.4f\n", result.graph.ids_of(0)[0], result.graph.distances_of(0)[0]);
    gnnd::io::write_graph("core_graph.gnnd", result.graph, gnnd::DType::f32);
}

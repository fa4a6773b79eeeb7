// SPDX-License-Identifier: MIT
// before.cpp with GNND: the header and the line that makes the index have changed.
#include <faiss/Index.h>
#include <faiss/utils/random.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "faiss_ext/index_factory.h"

int main() {
    const int n = 6000, d = 16, k = 5;
    std::vector<float> x(n * d), distances(n * k);
    faiss::float_rand(x.data(), x.size(), 1234);

    const std::unique_ptr<faiss::Index> index = faiss_ext::index_factory(d, "GNND64,HNSW16");
    std::vector<decltype(index->ntotal)> labels(n * k);
    index->add(n, x.data());
    index->search(n, x.data(), k, distances.data(), labels.data());

    int found = 0;
    for (int i = 0; i < n; ++i) found += labels[i * k] == i;
    std::printf("%d of %d vectors find themselves\n", found, n);
    return found > 0.98 * n ? 0 : 1;
}

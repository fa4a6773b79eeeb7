// SPDX-License-Identifier: MIT
// An index of FAISS by its class, with one line changed: before.cpp and after.cpp do it by description.
#include <faiss/utils/random.h>

#include <cstdio>
#include <vector>

#include "faiss_ext/gnnd_index.h"

int main() {
    const int n = 6000, d = 16, k = 5;
    std::vector<float> x(n * d), distances(n * k);
    std::vector<faiss_ext::idx_t> labels(n * k);
    faiss::float_rand(x.data(), x.size(), 1234);

    // faiss::IndexNSGFlat index(d, 32);
    faiss_ext::IndexNSGGnnd index(d, 32);      // or IndexHNSWGnnd in place of IndexHNSWFlat
    index.add(5000, x.data());                 // builds the graph with GNND
    index.add(n - 5000, x.data() + 5000 * d);  // grows it, where FAISS's NSG throws
    index.nsg.search_L = 64;
    index.search(n, x.data(), k, distances.data(), labels.data());

    int found = 0;
    for (int i = 0; i < n; ++i) found += labels[i * k] == i;
    std::printf("%d of %d vectors find themselves\n", found, n);
    return found > 0.99 * n ? 0 : 1;
}

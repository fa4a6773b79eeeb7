// SPDX-License-Identifier: MIT
// Two indexes with ids of their own, as segments of a larger one, become one by GGM.
#include <faiss/utils/random.h>

#include <cstdio>
#include <memory>
#include <numeric>
#include <vector>

#include "faiss_ext/index_factory.h"
#include "faiss_ext/index_operations.h"

int main() {
    const int n = 3000, d = 16;
    std::vector<float> x(2 * n * d), distances(2 * n);
    faiss::float_rand(x.data(), x.size(), 1234);
    std::vector<faiss_ext::idx_t> ids(2 * n), labels(2 * n);
    std::iota(ids.begin(), ids.end(), 1000000);

    const std::unique_ptr<faiss::Index> first = faiss_ext::index_factory(d, "IDMap2,GNND64,HNSW16"),
                                        second = faiss_ext::index_factory(d, "IDMap2,GNND64,HNSW16");
    first->add_with_ids(n, x.data(), ids.data());
    second->add_with_ids(n, x.data() + n * d, ids.data() + n);
    const std::unique_ptr<faiss::Index> both = faiss_ext::merge_indexes(*first, *second);  // which stay as they are
    faiss_ext::ParameterSpace().set_index_parameter(both.get(), "efSearch", 64);
    both->search(2 * n, x.data(), 1, distances.data(), labels.data());

    int found = 0;
    for (int i = 0; i < 2 * n; ++i) found += labels[i] == ids[i];
    std::printf("%d of %d vectors find themselves\n", found, 2 * n);
    return found > 0.99 * 2 * n ? 0 : 1;
}

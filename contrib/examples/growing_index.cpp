// SPDX-License-Identifier: MIT
// An index that grows as vectors arrive, loses some, is written, read and grows again.
#include <faiss/impl/IDSelector.h>
#include <faiss/index_io.h>
#include <faiss/utils/random.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "faiss_ext/index_factory.h"
#include "faiss_ext/index_operations.h"

namespace {

/// The share of vectors that find themselves under their number.
double found(const faiss::Index& index, const std::vector<float>& x, faiss_ext::idx_t first) {
    std::vector<float> distances(index.ntotal);
    std::vector<faiss_ext::idx_t> labels(index.ntotal);
    index.search(index.ntotal, x.data() + first * index.d, 1, distances.data(), labels.data());
    faiss_ext::idx_t right = 0;
    for (faiss_ext::idx_t i = 0; i < index.ntotal; ++i) right += labels[i] == i;
    return double(right) / double(index.ntotal);
}

}  // namespace

int main() {
    const int n = 6000, d = 16, step = 100;
    std::vector<float> x(n * d);
    faiss::float_rand(x.data(), x.size(), 1234);
    const faiss_ext::ParameterSpace space;

    std::unique_ptr<faiss::Index> index = faiss_ext::index_factory(d, "GNND64,NSG32");
    index->add(n / 2, x.data());  // builds the graph
    for (int i = n / 2; i < n - step; i += step) index->add(step, x.data() + i * d);
    space.set_index_parameter(index.get(), "search_L", 64);
    const double grown = found(*index, x, 0);

    index->remove_ids(faiss::IDSelectorRange(0, 1000));      // those behind them move up, as in FAISS's IndexFlat
    faiss::write_index(index.get(), "growing_index.faiss");  // as an IndexNSGFlat: any FAISS reads it
    index = faiss_ext::with_gnnd(std::unique_ptr<faiss::Index>(faiss::read_index("growing_index.faiss")));
    index->add(step, x.data() + (n - step) * d);  // makes a graph of the links, once
    const double again = found(*index, x, 1000);

    std::printf("%.1f%% and then %.1f%% of the vectors find themselves\n", 100 * grown, 100 * again);
    return index->ntotal == n - 1000 && grown > 0.99 && again > 0.99 ? 0 : 1;
}

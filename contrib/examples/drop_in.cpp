// SPDX-License-Identifier: MIT
// A program that uses FAISS's graph indexes, with one line changed; and what it can do then.
#include <faiss/impl/IDSelector.h>
#include <faiss/index_io.h>
#include <faiss/utils/random.h>

#include <cstdio>
#include <memory>
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
    faiss::write_index(&index, "drop_in.faiss");  // as an IndexNSGFlat: any FAISS reads it

    // Which can be told to grow again.
    std::unique_ptr<faiss::Index> read(faiss::read_index("drop_in.faiss"));
    faiss_ext::IndexNSGGnnd more(std::move(dynamic_cast<faiss::IndexNSGFlat&>(*read)));
    more.merge_from(index);                         // all objects of the other by GGM, which leaves that one empty
    more.remove_ids(faiss::IDSelectorRange(0, n));  // what came first, so that numbers are as before
    std::vector<faiss_ext::idx_t> again(n * k);
    more.nsg.search_L = 64;
    more.search(n, x.data(), k, distances.data(), again.data());

    int found = 0, same = 0;
    for (int i = 0; i < n; ++i) {
        found += labels[i * k] == i;
        same += again[i * k] == i;
    }
    std::printf("of %d vectors that are there %d and then %d find themselves\n", n, found, same);
    return found > 0.99 * n && same > 0.99 * n ? 0 : 1;
}

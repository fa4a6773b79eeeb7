// SPDX-License-Identifier: MIT
// The tree under the links of a search graph (faiss_ext/detail/link_tree.h).
#include "faiss_ext/detail/link_tree.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <vector>

#include "gnnd/random.h"

namespace gnnd::test {
namespace {

TEST(LinkTree, AnyNumberOfThreadsFollowsInOneOrder) {
    constexpr int kObjects = 60000, kDegree = 6, kEntry = 77;
    const int before = omp_get_max_threads();
    faiss_ext::detail::LinkTree tree;
    tree.degree = kDegree;
    tree.entry = kEntry;
    gnnd::Random random(1, 1);
    for (int i = 0; i < kObjects * kDegree; ++i) tree.links.push_back(std::int32_t(random.below(kObjects)));
    for (int i = 0; i < kObjects; i += 3) tree.links[i * kDegree + 2] = -1;  // shorter rows
    std::vector<std::int32_t> parents(kObjects, -1), order{kEntry};
    parents[kEntry] = kEntry;
    for (std::size_t at = 0; at < order.size(); ++at)
        for (int j = 0; j < kDegree; ++j) {
            const std::int32_t link = tree.links[order[at] * kDegree + j];
            if (link < 0) break;
            if (parents[link] >= 0) continue;
            parents[link] = order[at];
            order.push_back(link);
        }
    ASSERT_GT(order.size(), 50000u);
    faiss::IndexFlatL2 storage(1);
    const std::vector<float> x(kObjects, 1);
    storage.add(kObjects, x.data());
    for (const int threads : {1, 4, 7}) {
        omp_set_num_threads(threads);
        tree.parents.assign(kObjects, -1);
        faiss_ext::detail::LinkRows rows(tree);
        faiss_ext::detail::TreeGrowth(storage, rows).follow(kEntry);
        EXPECT_EQ(tree.parents, parents) << threads;
    }
    omp_set_num_threads(before);
}

}  // namespace
}  // namespace gnnd::test

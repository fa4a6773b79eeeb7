// SPDX-License-Identifier: MIT
// The tree under the links of a search graph (gnnd/detail/link_tree.h).
#include "gnnd/detail/link_tree.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <vector>

#include "gnnd/random.h"

namespace gnnd::test {
namespace {

class EqualObjects final : public detail::ObjectDistances {
  public:
    float between(std::int32_t /*a*/, std::int32_t /*b*/) override { return 0; }
};

TEST(LinkTree, AnyNumberOfThreadsFollowsInOneOrder) {
    constexpr int kObjects = 60000, kDegree = 6, kEntry = 77;
    const int before = omp_get_max_threads();
    std::vector<std::int32_t> links;
    gnnd::Random random(1, 1);
    for (int i = 0; i < kObjects * kDegree; ++i) links.push_back(std::int32_t(random.below(kObjects)));
    for (int i = 0; i < kObjects; i += 3) links[i * kDegree + 2] = -1;  // shorter rows
    std::vector<std::int32_t> parents(kObjects, -1), order{kEntry};
    parents[kEntry] = kEntry;
    for (std::size_t at = 0; at < order.size(); ++at)
        for (int j = 0; j < kDegree; ++j) {
            const std::int32_t link = links[order[at] * kDegree + j];
            if (link < 0) break;
            if (parents[link] >= 0) continue;
            parents[link] = order[at];
            order.push_back(link);
        }
    ASSERT_GT(order.size(), 50000u);
    EqualObjects distances;
    for (const int threads : {1, 4, 7}) {
        omp_set_num_threads(threads);
        std::vector<std::int32_t> found(kObjects, -1);
        detail::LinkRows rows(links.data(), kDegree, kEntry, found);
        detail::TreeGrowth(distances, rows).follow(kEntry);
        EXPECT_EQ(found, parents) << threads;
    }
    omp_set_num_threads(before);
}

}  // namespace
}  // namespace gnnd::test

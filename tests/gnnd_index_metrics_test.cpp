// SPDX-License-Identifier: MIT
// Merges and removals of IndexNSGGnnd and IndexHNSWGnnd under every metric, and searches by many threads.
#include <faiss/impl/DistanceComputer.h>
#include <faiss/impl/IDSelector.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <tuple>

#include "faiss_ext/detail/link_tree.h"
#include "faiss_ext/index_operations.h"
#include "tests/gnnd_indexes.h"

namespace {

using gnnd::test::add_rows;
using gnnd::test::AnyGnndIndex;
using gnnd::test::expect_as_good;
using gnnd::test::expect_whole;
using gnnd::test::GnndKind;
using gnnd::test::kGnndKinds;
using gnnd::test::random_rows;
using gnnd::test::search_index;
using gnnd::test::search_recall;

constexpr int kComponentsOfAll = 12;

class EveryMetric : public testing::TestWithParam<std::tuple<GnndKind, faiss::MetricType>> {
  protected:
    AnyGnndIndex make() const {
        const auto& [kind, metric] = GetParam();
        return kind.make(kComponentsOfAll, metric);
    }
    faiss::IndexFlat flat_{kComponentsOfAll, std::get<1>(GetParam())};
    const std::vector<float> queries_ = random_rows(500, kComponentsOfAll, false, 9);
};

INSTANTIATE_TEST_SUITE_P(All, EveryMetric,
                         testing::Combine(testing::ValuesIn(kGnndKinds),
                                          testing::Values(faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT,
                                                          faiss::METRIC_L1, faiss::METRIC_Linf)),
                         [](const auto& info) {
                             const gnnd::Metric metric = faiss_ext::to_gnnd_metric(std::get<1>(info.param));
                             return std::string(std::get<0>(info.param).name) + '_' + std::string(name_of(metric));
                         });

TEST(StorageDistances, AreFaisssUnderEveryMetric) {
    for (const int d : {1, 12, 128, 300})
        for (const auto metric :
             {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT, faiss::METRIC_L1, faiss::METRIC_Linf}) {
            SCOPED_TRACE(testing::Message() << d << ", metric " << int(metric));
            faiss::IndexFlat flat(d, metric);
            flat.add(50, random_rows(50, d, false, 3).data());
            faiss_ext::detail::StorageDistances distances(flat);
            const std::unique_ptr<faiss::DistanceComputer> computer(flat.get_distance_computer());
            const float sign = metric == faiss::METRIC_INNER_PRODUCT ? -1.0F : 1.0F;
            std::vector<std::int32_t> all(50);
            std::iota(all.begin(), all.end(), 0);
            std::vector<float> keys(50 + decltype(distances)::kSpareKeys);
            for (std::int32_t i = 0; i < 50; ++i) {
                distances.between_all(i, all.data(), 50, keys.data());
                for (std::int32_t j = 0; j < 50; ++j) {
                    EXPECT_NEAR(keys[j], sign * computer->symmetric_dis(i, j), 1e-5F * float(d + 1)) << i << ' ' << j;
                    EXPECT_EQ(keys[j], distances.between(i, j)) << i << ' ' << j;
                }
            }
        }
}

/// What searches of one build find more than those of a merge, for each beam; of sets that are far from each other in
/// part, and of queries that belong to neither.
std::vector<double> lost_by_merge(const AnyGnndIndex& one, const AnyGnndIndex& other, const AnyGnndIndex& built,
                                  const std::vector<int>& beams, unsigned draw) {
    faiss::IndexFlat flat(kComponentsOfAll, built.index->metric_type);
    // Of so few vectors all pairs would be compared, and a merge be a build.
    for (const AnyGnndIndex* made : {&one, &other, &built}) made->builder->params.iterations = 8;
    add_rows(*one.index, flat, random_rows(2000, kComponentsOfAll, false, 10 * draw + 1));
    add_rows(*other.index, flat, random_rows(1500, kComponentsOfAll, false, 10 * draw + 2));
    built.index->add(flat.ntotal, flat.get_xb());
    const std::unique_ptr<faiss::Index> both = faiss_ext::merge_indexes(*one.index, *other.index);
    EXPECT_EQ(both->metric_type, flat.metric_type);
    one.index->merge_from(*other.index);
    EXPECT_NE(one.builder->stats.stop, gnnd::StopReason::exact);
    expect_whole(one, flat);
    const std::vector<float> queries = random_rows(500, kComponentsOfAll, false, 10 * draw + 9);
    std::vector<double> lost;
    for (const int beam : beams) {
        one.set_beam(beam);
        built.set_beam(beam);
        lost.push_back(search_recall(*built.index, flat, queries, 10) - search_recall(*one.index, flat, queries, 10));
    }
    const bool nsg = dynamic_cast<const faiss::IndexNSG*>(&*both) != nullptr;
    faiss_ext::ParameterSpace().set_index_parameter(&*both, nsg ? "search_L" : "efSearch", beams.back());
    EXPECT_EQ(search_index(*both, queries, 10), search_index(*one.index, queries, 10));
    return lost;
}

TEST_P(EveryMetric, MergesAsGoodAsOneBuild) {
    constexpr unsigned kDraws = 4;
    const std::vector<int> beams{16, 32, 64};
    std::vector<double> lost(beams.size());
    for (unsigned draw = 0; draw < kDraws; ++draw) {
        const std::vector<double> here = lost_by_merge(make(), make(), make(), beams, draw);
        for (std::size_t b = 0; b < beams.size(); ++b) {
            lost[b] += here[b] / kDraws;
            // Builds of two seeds differ by 0.007: the end of a narrow search is left to chance.
            EXPECT_LE(here[b], 0.01) << "beam " << beams[b] << ", draw " << draw;
        }
    }
    for (std::size_t b = 0; b < beams.size(); ++b) EXPECT_LE(lost[b], 0.003) << "beam " << beams[b];
}

TEST_P(EveryMetric, LosesThreeOfTenAndGetsAsMany) {
    const AnyGnndIndex made = make(), built = make();
    add_rows(*made.index, flat_, random_rows(3000, kComponentsOfAll, false, 1));
    std::vector<faiss_ext::idx_t> removed;
    for (int i = 0; i < 3000; ++i)
        if (i % 10 < 3) removed.push_back(i);
    const faiss::IDSelectorBatch selector(removed.size(), removed.data());
    EXPECT_EQ(made.index->remove_ids(selector), 900U);
    flat_.remove_ids(selector);
    expect_whole(made, flat_);
    for (int part = 0; part < 9; ++part)
        add_rows(*made.index, flat_, random_rows(100, kComponentsOfAll, false, 20 + part));
    ASSERT_EQ(flat_.ntotal, 3000);
    expect_whole(made, flat_, 0.98);
    built.index->add(flat_.ntotal, flat_.get_xb());
    expect_as_good(made, built, flat_, queries_, 0.01);
}

class VariedLengths : public testing::TestWithParam<GnndKind> {};
INSTANTIATE_TEST_SUITE_P(All, VariedLengths, testing::ValuesIn(kGnndKinds), testing::PrintToStringParamName());

/// Under inner products all neighbours are long then, and most objects nobody's.
TEST_P(VariedLengths, FindAtLeastWhatAnIndexOfFaissFinds) {
    constexpr int kObjects = 5000, kComponents = 16;
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> rows(kObjects * kComponents), queries(500 * kComponents);
    for (float& component : queries) component = normal(random);
    for (int i = 0; i < kObjects; ++i) {
        const float length = std::exp(normal(random));
        for (int c = 0; c < kComponents; ++c) rows[i * kComponents + c] = length * normal(random);
    }
    faiss::IndexFlatIP flat(kComponents);
    faiss::IndexHNSWFlat by_faiss(kComponents, 16, faiss::METRIC_INNER_PRODUCT);
    const AnyGnndIndex made = GetParam().make(kComponents, faiss::METRIC_INNER_PRODUCT);
    add_rows(*made.index, flat, rows);
    {
        const gnnd::test::OneFaissThread in_one_order;  // threads link in any, and then searches find more or less
        by_faiss.add(kObjects, rows.data());
    }
    expect_whole(made, flat);
    for (const int beam : {16, 32, 64}) {
        made.set_beam(beam);
        by_faiss.hnsw.efSearch = beam;
        EXPECT_GE(search_recall(*made.index, flat, queries, 10), search_recall(by_faiss, flat, queries, 10))
            << "beam " << beam;
    }
}

class Threads : public testing::TestWithParam<GnndKind> {};
INSTANTIATE_TEST_SUITE_P(All, Threads, testing::ValuesIn(kGnndKinds), testing::PrintToStringParamName());

TEST_P(Threads, SearchTogetherAndFindTheSame) {
    // The index of 40 is searched by comparing all, that of 3,000 along its links.
    for (const int count : {40, 3000}) {
        const AnyGnndIndex made = GetParam().make(kComponentsOfAll, faiss::METRIC_L2);
        made.index->add(count, random_rows(count, kComponentsOfAll).data());
        made.set_beam(32);
        constexpr int kThreads = 8;
        std::vector<std::vector<float>> queries;
        std::vector<gnnd::test::SearchResult> alone, together(kThreads);
        for (int i = 0; i < kThreads; ++i) {
            queries.push_back(random_rows(200, kComponentsOfAll, false, 30 + i));
            alone.push_back(search_index(*made.index, queries[i], 10));
        }
        std::vector<std::thread> threads;
        for (int i = 0; i < kThreads; ++i)
            threads.emplace_back([&, i] {
                for (int round = 0; round < 3; ++round) together[i] = search_index(*made.index, queries[i], 10);
            });
        for (std::thread& thread : threads) thread.join();
        EXPECT_EQ(together, alone) << count << " objects";
    }
}

}  // namespace

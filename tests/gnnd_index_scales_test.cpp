// SPDX-License-Identifier: MIT
// Indexes of sets whose k-NN graph leads nowhere far: narrow searches find about what they find elsewhere.
#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "benchs/hard.h"
#include "tests/gnnd_indexes.h"

namespace {

using gnnd::test::add_rows;
using gnnd::test::AnyGnndIndex;
using gnnd::test::expect_as_good;
using gnnd::test::GnndKind;
using gnnd::test::kGnndKinds;
using gnnd::test::reachable;
using gnnd::test::search_recall;

using Rows = std::vector<float>;

/// Each of n / times vectors so many times, with noise.
gnnd::benchs::HardSet repeated(std::string name, int times, float noise) {
    return {std::move(name), 16, [=](std::int64_t n, std::int64_t d, std::mt19937& random) -> gnnd::benchs::NextRow {
                std::normal_distribution<float> normal;
                Rows all(std::size_t(n / times * d));
                for (float& x : all) x = normal(random);
                return [=, &random, i = std::int64_t(0)](float* row) mutable {
                    const float* from = &all[std::size_t(i++ % (n / times) * d)];
                    for (std::int64_t c = 0; c < d; ++c) row[c] = from[c] + noise * normal(random);
                };
            }};
}

/// A set, and the Recall@10 that beams of 16 and 64 have at least. By links of search_links() alone an HNSW has less at
/// one of them, down to 0.45 and 0.66.
struct ScalesCase {
    gnnd::benchs::HardSet set;
    double narrow, wide;
    friend std::ostream& operator<<(std::ostream& out, const ScalesCase& c) { return out << c.set.name; }

    /// n rows and queries behind them, in any order.
    Rows rows(std::int64_t n) const {
        std::mt19937 random(5);
        const auto next = set.start(n, set.d, random);
        std::vector<Rows> each(std::size_t(n), Rows(std::size_t(set.d)));
        for (Rows& row : each) next(row.data());
        std::shuffle(each.begin(), each.end(), random);
        Rows all;
        for (const Rows& row : each) all.insert(all.end(), row.begin(), row.end());
        return all;
    }
};

const ScalesCase kCases[] = {{gnnd::benchs::hard_set("plane"), 0.995, 0.995},
                             {gnnd::benchs::hard_set("walk"), 0.995, 0.995},
                             {gnnd::benchs::hard_set("copies"), 0.91, 0.99},
                             {repeated("twice", 2, 0), 0.978, 0.9965},
                             {repeated("seven_times", 7, 0), 0.95, 0.995},
                             {repeated("often", 100, 0), 0.93, 0.99},
                             // An NSG's random starts lead into wrong groups, where its beam is wide.
                             {repeated("tight_groups", 50, 0.001f), 0.995, 0.98}};

class IndexOfScales : public testing::TestWithParam<std::tuple<GnndKind, ScalesCase>> {
  protected:
    static constexpr std::int64_t kRows = 6000, kQueries = 500;

    void SetUp() override {
        const Rows all = given_.rows(kRows + kQueries);
        rows_.assign(all.begin(), all.begin() + kRows * given_.set.d);
        queries_.assign(all.begin() + kRows * given_.set.d, all.end());
    }
    AnyGnndIndex make() const { return kind_.make(int(given_.set.d), faiss::METRIC_L2); }
    Rows part(std::int64_t begin, std::int64_t end) const {
        return {rows_.begin() + begin * given_.set.d, rows_.begin() + end * given_.set.d};
    }

    const GnndKind& kind_ = std::get<0>(GetParam());
    const ScalesCase& given_ = std::get<1>(GetParam());
    Rows rows_, queries_;
};

INSTANTIATE_TEST_SUITE_P(All, IndexOfScales, testing::Combine(testing::ValuesIn(kGnndKinds), testing::ValuesIn(kCases)),
                         [](const auto& info) {
                             return std::string(std::get<0>(info.param).name) + "_" + std::get<1>(info.param).set.name;
                         });

TEST_P(IndexOfScales, AreFoundByNarrowSearches) {
    const AnyGnndIndex made = make();
    faiss::IndexFlatL2 flat(int(given_.set.d));
    add_rows(*made.index, flat, rows_);
    EXPECT_EQ(reachable(*made.index), std::size_t(kRows));
    made.set_beam(16);
    EXPECT_GE(search_recall(*made.index, flat, queries_, 10), given_.narrow);
    made.set_beam(64);
    EXPECT_GE(search_recall(*made.index, flat, queries_, 10), given_.wide);
}

TEST_P(IndexOfScales, GrowAsGoodAsOneBuild) {
    const AnyGnndIndex built = make(), grown = make();
    faiss::IndexFlatL2 flat(int(given_.set.d)), again(int(given_.set.d));
    add_rows(*built.index, flat, rows_);
    for (std::int64_t begin = 0, end = kRows * 4 / 5; begin < kRows; begin = end, end = std::min(end + 150, kRows))
        add_rows(*grown.index, again, part(begin, end));
    EXPECT_EQ(reachable(*grown.index), std::size_t(kRows));
    expect_as_good(grown, built, flat, queries_, 0.03);
}

/// Clusters that no k-NN graph connects: a search comes down into one of them, and finds the others if it is wide.
TEST(HnswOfClusters, WideSearchesFindAllWhereverTheyBegin) {
    constexpr int d = 8, kSize = 100;
    for (const int clusters : {2, 3, 7}) {
        std::mt19937 random(clusters);
        std::normal_distribution<float> normal;
        Rows rows;
        for (int i = 0; i < clusters * kSize; ++i)
            for (int c = 0; c < d; ++c) rows.push_back(0.01f * normal(random) + (c == i / kSize ? 100.0f : 0.0f));
        faiss_ext::IndexHNSWGnnd index(d, 8);
        const std::int64_t n = clusters * kSize, first = n * 9 / 10;
        index.add(first, rows.data());
        index.add(n - first, rows.data() + first * d);
        ASSERT_GT(index.hnsw.max_level, 0);
        index.hnsw.efSearch = int(n);
        const gnnd::test::SearchResult found = gnnd::test::search_index(index, rows, n);
        EXPECT_EQ(std::count(found.ids.begin(), found.ids.end(), -1), 0) << clusters;
    }
}

/// FAISS lets its users say how many levels there are, and how many links on each.
TEST(HnswOfTables, HasLevelsWhereTheTableHas) {
    constexpr int d = 8;
    const Rows rows = gnnd::test::random_rows(3000, d, false, 1);
    const auto top = [&](const auto& change) {
        faiss_ext::IndexHNSWGnnd index(d, 8);
        change(index.hnsw);
        index.add(2800, rows.data());
        index.add(200, rows.data() + 2800 * d);
        EXPECT_NO_THROW(faiss_ext::check_index(index));
        return index.hnsw.max_level;
    };
    EXPECT_EQ(top([](faiss::HNSW&) {}), 3);
    EXPECT_EQ(top([](faiss::HNSW& hnsw) { hnsw.set_nb_neighbors(0, 24); }), 3);
    EXPECT_EQ(top([](faiss::HNSW& hnsw) { hnsw.set_nb_neighbors(2, 4); }), 0);
    EXPECT_EQ(top([](faiss::HNSW& hnsw) { hnsw.set_nb_neighbors(1, 0); }), 0);
    EXPECT_EQ(top([](faiss::HNSW& hnsw) { hnsw.cum_nneighbor_per_level.resize(5); }), 3);
    for (const int levels : {1, 2, 3})  // one more than there are degrees
        EXPECT_EQ(top([&](faiss::HNSW& hnsw) { hnsw.cum_nneighbor_per_level.resize(levels + 1); }), 0);
}

class HnswOfScales : public testing::TestWithParam<ScalesCase> {};
INSTANTIATE_TEST_SUITE_P(All, HnswOfScales, testing::ValuesIn(kCases), testing::PrintToStringParamName());

/// By the narrowest beam, which is over before it would have walked far.
TEST_P(HnswOfScales, FindsNoLessThanFaisss) {
    constexpr std::int64_t kRows = 6000, kQueries = 500;
    const int d = int(GetParam().set.d);
    Rows rows = GetParam().rows(kRows + kQueries);
    const Rows queries(rows.begin() + kRows * d, rows.end());
    rows.resize(std::size_t(kRows * d));
    faiss_ext::IndexHNSWGnnd made(d, 16);
    faiss::IndexHNSWFlat by_faiss(d, 16);
    faiss::IndexFlatL2 flat(d);
    add_rows(made, flat, rows);
    {
        const gnnd::test::OneFaissThread in_one_order;  // threads link in any
        by_faiss.add(kRows, rows.data());
    }
    made.hnsw.efSearch = by_faiss.hnsw.efSearch = 10;
    EXPECT_GE(search_recall(made, flat, queries, 10), search_recall(by_faiss, flat, queries, 10));
}

}  // namespace

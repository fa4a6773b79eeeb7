// SPDX-License-Identifier: MIT
// IndexNSGGnnd and IndexHNSWGnnd: what FAISS's own do, and what these do not.
#include "faiss_ext/gnnd_index.h"

#include <faiss/IndexIDMap.h>
#include <faiss/impl/IDSelector.h>
#include <faiss/index_io.h>

#include <numeric>
#include <random>
#include <typeinfo>

#include "faiss_ext/check_index.h"
#include "faiss_ext/evaluate.h"
#include "tests/gnnd_indexes.h"
#include "tests/temp_dir.h"

namespace {

using gnnd::Metric;
using gnnd::test::add_rows;
using gnnd::test::AnyGnndIndex;
using gnnd::test::expect_as_good;
using gnnd::test::expect_faiss_error;
using gnnd::test::expect_whole;
using gnnd::test::GnndKind;
using gnnd::test::index_links;
using gnnd::test::kGnndKinds;
using gnnd::test::random_rows;
using gnnd::test::reachable;
using gnnd::test::sample_rows;
using gnnd::test::search_index;
using gnnd::test::search_recall;
using gnnd::test::SearchResult;
using gnnd::test::sized;

class GnndIndexTest : public testing::TestWithParam<GnndKind> {};
INSTANTIATE_TEST_SUITE_P(All, GnndIndexTest, testing::ValuesIn(kGnndKinds), testing::PrintToStringParamName());

TEST_P(GnndIndexTest, IsFaissIndexAndWrittenAsOne) {
    const std::int64_t n = sized(9000);
    const std::vector<float> rows = sample_rows(0, n), queries = sample_rows(19000, 1000);
    faiss::IndexFlatL2 flat(128);
    flat.add(n, rows.data());
    const AnyGnndIndex made = GetParam().make(128, faiss::METRIC_L2);
    EXPECT_TRUE(made.index->is_trained);
    made.index->train(n, rows.data());
    made.index->add(n, rows.data());
    expect_whole(made, flat);
    made.set_beam(64);
    EXPECT_GE(search_recall(*made.index, flat, queries, 10), 0.95);
    EXPECT_GE(made.builder->stats.recall.value, 0.99);

    std::vector<float> row(128);
    made.index->reconstruct(17, row.data());
    EXPECT_EQ(row, std::vector(rows.begin() + 17 * 128, rows.begin() + 18 * 128));

    const gnnd::test::TempDir dir;
    faiss::write_index(made.index.get(), dir.file("index").c_str());
    const std::unique_ptr<faiss::Index> read(faiss::read_index(dir.file("index").c_str()));
    EXPECT_EQ(typeid(*read), GetParam().faiss_type);
    const SearchResult before = search_index(*made.index, queries, 10);
    EXPECT_EQ(search_index(*read, queries, 10), before);

    const AnyGnndIndex copy = GetParam().copy(made);
    made.index->reset();
    EXPECT_EQ(made.index->ntotal, 0);
    EXPECT_EQ(made.graph().n(), 0);
    EXPECT_EQ(search_index(*made.index, queries, 1).ids, std::vector<faiss_ext::idx_t>(1000, -1));
    EXPECT_EQ(search_index(*copy.index, queries, 10), before);
    expect_whole(copy, flat);
}

TEST_P(GnndIndexTest, GrowsAsGoodAsOneBuild) {
    const std::vector<float> queries = sample_rows(19000, 1000);
    const std::int64_t n = sized(6000), first = n / 2;
    faiss::IndexFlatL2 flat(128);
    const AnyGnndIndex grown = GetParam().make(128, faiss::METRIC_L2), built = GetParam().make(128, faiss::METRIC_L2);
    // One after the other: the first, many little ones, one that is merged, and the rest.
    for (std::int64_t begin = 0, count = first; begin < n; begin += count) {
        count = begin == 0 ? first : begin < n * 5 / 6 ? 100 : begin < n * 11 / 12 ? n / 8 : 50;
        count = std::min(count, n - begin);
        const std::vector<float> rows = sample_rows(begin, count);
        add_rows(*grown.index, flat, rows);
        ASSERT_EQ(reachable(*grown.index), std::size_t(begin + count));
        // Rows that were added last are found at once.
        grown.set_beam(64);
        EXPECT_GE(search_recall(*grown.index, flat, rows, 1), 0.99) << begin;
    }
    expect_whole(grown, flat);
    const std::vector<float> rows = sample_rows(0, n);
    built.index->add(n, rows.data());
    expect_as_good(grown, built, flat, queries, 0.005);
}

TEST_P(GnndIndexTest, TakesTheMetricsOfFaiss) {
    const std::vector<float> rows = random_rows(3000, 12), more = random_rows(60, 12, false, 2),
                             queries = random_rows(100, 12, false, 3);
    for (const faiss::MetricType metric :
         {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT, faiss::METRIC_L1, faiss::METRIC_Linf}) {
        SCOPED_TRACE(int(metric));
        faiss::IndexFlat flat(12, metric);
        const AnyGnndIndex made = GetParam().make(12, metric);
        add_rows(*made.index, flat, rows);
        add_rows(*made.index, flat, more);
        expect_whole(made, flat);
        made.set_beam(64);
        EXPECT_GE(search_recall(*made.index, flat, queries, 10), 0.9);
    }
}

TEST_P(GnndIndexTest, SmallSetsAreSearchedExactly) {
    const std::vector<float> rows = random_rows(90, 5);
    faiss::IndexFlatL2 flat(5);
    const AnyGnndIndex made = GetParam().make(5, faiss::METRIC_L2);
    made.index->add(0, nullptr);
    for (int i = 0; i < 90; ++i) {
        add_rows(*made.index, flat, {rows.begin() + i * 5, rows.begin() + (i + 1) * 5});
        expect_whole(made, flat);
        made.set_beam(100);
        EXPECT_EQ(search_index(*made.index, rows, 100).ids, search_index(flat, rows, 100).ids) << i;
    }
}

// As happens with clusters that arrive one after the other, and where all are equal.
TEST_P(GnndIndexTest, ReachesWhatLiesApart) {
    constexpr int d = 8;
    faiss::IndexFlatL2 flat(d);
    const AnyGnndIndex made = GetParam().make(d, faiss::METRIC_L2), built = GetParam().make(d, faiss::METRIC_L2);
    std::vector<float> all;
    for (int cluster = 0; cluster < 12; ++cluster) {
        std::vector<float> rows = random_rows(cluster == 0 ? 4000 : 110, d, false, 1 + cluster);
        for (float& x : rows) x = cluster == 11 ? 7 : x + 1000 * float(cluster);
        add_rows(*made.index, flat, rows);
        all.insert(all.end(), rows.begin(), rows.end());
        ASSERT_EQ(reachable(*made.index), std::size_t(flat.ntotal)) << "cluster " << cluster;
    }
    expect_whole(made, flat);
    built.index->add(flat.ntotal, all.data());
    made.set_beam(64);
    built.set_beam(64);
    EXPECT_GE(search_recall(*made.index, flat, all, 1), search_recall(*built.index, flat, all, 1) - 0.005);
}

/// Little adds copy neither vectors nor links that were there before.
TEST_P(GnndIndexTest, LittleAddsFindRoom) {
    constexpr int d = 8, kStep = 50;
    const AnyGnndIndex made = GetParam().make(d, faiss::METRIC_L2);
    const auto add = [&](std::int64_t n) { made.index->add(n, random_rows(n, d, false, made.index->ntotal).data()); };
    const auto storage = [&] {
        const auto* nsg = dynamic_cast<const faiss::IndexNSG*>(&*made.index);
        const auto* rows = nsg != nullptr ? nsg->storage : dynamic_cast<const faiss::IndexHNSW&>(*made.index).storage;
        return static_cast<const void*>(dynamic_cast<const faiss::IndexFlat&>(*rows).get_xb());
    };
    const auto links = [&] {
        const auto* nsg = dynamic_cast<const faiss::IndexNSG*>(&*made.index);
        return static_cast<const void*>(nsg != nullptr
                                            ? nsg->nsg.final_graph->data
                                            : dynamic_cast<const faiss::IndexHNSW&>(*made.index).hnsw.neighbors.data());
    };
    add(2000);
    const void *const storage_at = storage(), *const links_at = links();
    for (int i = 0; i < 9; ++i) {
        add(kStep);
        ASSERT_EQ(storage(), storage_at) << made.index->ntotal << " objects";
        ASSERT_EQ(links(), links_at) << made.index->ntotal << " objects";
    }
    EXPECT_EQ(reachable(*made.index), std::size_t(made.index->ntotal));
}

/// FAISS's default, in few steps: what is added far away, a dense part, and what comes in order.
TEST_P(GnndIndexTest, NarrowSearchesFindWhatWasAdded) {
    constexpr int d = 8;
    const auto spread = [](std::int64_t n, float scale, float from, std::uint64_t seed) {
        std::vector<float> rows = random_rows(n, d, false, seed);
        for (float& x : rows) x = from + scale * x;
        return rows;
    };
    const std::vector<std::vector<float>> added{spread(600, 1, 100, 2), spread(600, 0.01f, 0.3f, 3),
                                                spread(300, 1, -40, 4), spread(300, 1, 60, 5)};
    const AnyGnndIndex made = GetParam().make(d, faiss::METRIC_L2);
    faiss::IndexFlatL2 flat(d);
    add_rows(*made.index, flat, spread(4000, 1, 0, 1));
    for (const std::vector<float>& rows : added) add_rows(*made.index, flat, rows);
    made.set_beam(16);
    for (const std::vector<float>& rows : added)
        EXPECT_GE(search_recall(*made.index, flat, rows, 1), 0.9) << "those from " << rows[0];
    EXPECT_EQ(reachable(*made.index), std::size_t(flat.ntotal));
}

/// Whose neighbours are mostly at the border of the others, so that a search that ends there is near them, and is not.
TEST_P(GnndIndexTest, NarrowSearchesFindAFewFarAway) {
    constexpr int d = 32;
    constexpr std::int64_t kRows = 4000, kQueries = 200;
    const auto normal_rows = [](std::int64_t n, float from, std::uint64_t seed) {
        std::mt19937_64 random(seed);
        std::normal_distribution<float> normal(from);
        std::vector<float> rows(std::size_t(n * d));
        for (float& x : rows) x = normal(random);
        return rows;
    };
    for (const bool together : {false, true})
        for (const std::int64_t few : {1, 7}) {
            std::int64_t found_far = 0;
            for (const std::uint64_t seed : {1, 2, 3, 4}) {
                SCOPED_TRACE(testing::Message() << few << " rows, together " << together << ", draw " << seed);
                std::vector<float> rows = normal_rows(kRows, 0, 10 * seed);
                const std::vector<float> far = normal_rows(few, 100, 10 * seed + 1);
                rows.insert(rows.end(), far.begin(), far.end());
                const AnyGnndIndex made = GetParam().make(d, faiss::METRIC_L2);
                made.index->add(together ? kRows + few : kRows, rows.data());
                if (!together) made.index->add(few, far.data());
                made.set_beam(16);
                const auto found = search_index(*made.index, normal_rows(kQueries, 100, 10 * seed + 2), 1).ids;
                const auto here = std::count_if(found.begin(), found.end(), [&](auto id) { return id >= kRows; });
                EXPECT_GE(here, kQueries / 2);
                found_far += here;
            }
            EXPECT_GE(found_far, 4 * kQueries * 9 / 10) << few << " rows, together " << together;
        }
}

TEST_P(GnndIndexTest, GoesOnWithIndexesOfFaiss) {
    const std::int64_t n = sized(2000);
    const std::vector<float> rows = sample_rows(0, n), more = sample_rows(n, 100), queries = sample_rows(19000, 500);
    faiss::IndexFlatL2 flat(128);
    flat.add(n, rows.data());
    std::unique_ptr<faiss::Index> by_faiss = GetParam().by_faiss(128, faiss::METRIC_L2);
    by_faiss->add(n, rows.data());
    const AnyGnndIndex made = GetParam().continued(std::move(by_faiss));
    EXPECT_EQ(made.index->ntotal, n);
    made.set_beam(64);
    EXPECT_GE(search_recall(*made.index, flat, queries, 10), 0.9);
    add_rows(*made.index, flat, more);
    expect_whole(made, flat);
    EXPECT_GE(search_recall(*made.index, flat, queries, 10), 0.95);
}

TEST_P(GnndIndexTest, RemovesAndAddsAgain) {
    const std::int64_t n = sized(4000);
    const std::vector<float> rows = sample_rows(0, n), queries = sample_rows(19000, 500);
    const AnyGnndIndex made = GetParam().make(128, faiss::METRIC_L2);
    made.index->add(n, rows.data());
    std::vector<faiss_ext::idx_t> removed;
    for (std::int64_t i = 0; i < n; ++i)
        if (i % 10 < 3) removed.push_back(i);
    const faiss::IDSelectorBatch selector(removed.size(), removed.data());
    EXPECT_EQ(made.index->remove_ids(selector), removed.size());
    faiss::IndexFlatL2 flat(128);
    flat.add(n, rows.data());
    flat.remove_ids(selector);
    expect_whole(made, flat);
    made.set_beam(64);
    const double less = search_recall(*made.index, flat, queries, 10);
    for (std::size_t i = 0; i < removed.size(); i += 100)
        add_rows(*made.index, flat, sample_rows(n + std::int64_t(i), 100));
    expect_whole(made, flat);
    EXPECT_GE(less, 0.95);
    const AnyGnndIndex built = GetParam().make(128, faiss::METRIC_L2);
    built.index->add(flat.ntotal, flat.get_xb());
    for (const int beam : {16, 64}) {
        made.set_beam(beam);
        built.set_beam(beam);
        EXPECT_GE(search_recall(*made.index, flat, queries, 10), search_recall(*built.index, flat, queries, 10) - 0.005)
            << "beam " << beam;
    }

    EXPECT_EQ(made.index->remove_ids(faiss::IDSelectorRange(flat.ntotal, flat.ntotal + 5)), 0);
    EXPECT_EQ(made.index->remove_ids(faiss::IDSelectorRange(1, flat.ntotal)), flat.ntotal - 1);
    EXPECT_EQ(search_index(*made.index, queries, 2).ids[0], 0);
    EXPECT_EQ(made.index->remove_ids(faiss::IDSelectorRange(0, 1)), 1);
    EXPECT_EQ(made.index->ntotal, 0);
    made.index->add(n, rows.data());
    EXPECT_EQ(reachable(*made.index), std::size_t(n));
}

TEST_P(GnndIndexTest, TakesInAnother) {
    const std::int64_t n = sized(2000);
    const std::vector<float> queries = sample_rows(19000, 500);
    faiss::IndexFlatL2 flat(128);
    const AnyGnndIndex made = GetParam().make(128, faiss::METRIC_L2), other = GetParam().make(128, faiss::METRIC_L2);
    made.index->merge_from(*other.index);
    EXPECT_EQ(made.index->ntotal, 0);
    add_rows(*other.index, flat, sample_rows(0, n));
    made.index->merge_from(*other.index);  // into an empty one
    EXPECT_EQ(other.index->ntotal, 0);
    expect_whole(made, flat);
    const std::vector<float> more = sample_rows(n, n / 2);
    flat.add(n / 2, more.data());
    const std::unique_ptr<faiss::Index> by_faiss = GetParam().by_faiss(128, faiss::METRIC_L2);
    by_faiss->add(n / 2, more.data());
    made.index->merge_from(*by_faiss);
    expect_whole(made, flat);
    made.set_beam(64);
    EXPECT_GE(search_recall(*made.index, flat, queries, 10), 0.95);

    const AnyGnndIndex wider = GetParam().make(129, faiss::METRIC_L2),
                       ip = GetParam().make(128, faiss::METRIC_INNER_PRODUCT);
    expect_faiss_error("129", [&] { made.index->merge_from(*wider.index); });
    expect_faiss_error("two metrics", [&] { made.index->merge_from(*ip.index); });
    expect_faiss_error("of its kind", [&] { made.index->merge_from(*made.index); });
    expect_faiss_error("of its kind", [&] { made.index->merge_from(flat); });
    expect_faiss_error("add_id", [&] { made.index->merge_from(*other.index, 5); });
}

TEST_P(GnndIndexTest, KeepsIdsInAnIdMap) {
    const std::vector<float> rows = random_rows(600, 6);
    const AnyGnndIndex made = GetParam().make(6, faiss::METRIC_L2);
    faiss::IndexIDMap2 map(made.index.get());
    std::vector<faiss_ext::idx_t> ids(600);
    std::iota(ids.begin(), ids.end(), 1000);
    map.add_with_ids(500, rows.data(), ids.data());
    map.add_with_ids(100, rows.data() + 500 * 6, ids.data() + 500);
    made.set_beam(64);
    EXPECT_EQ(search_index(map, rows, 1).ids, ids);
    EXPECT_EQ(map.remove_ids(faiss::IDSelectorRange(1000, 1200)), 200);
    EXPECT_EQ(search_index(map, {rows.begin() + 200 * 6, rows.end()}, 1).ids,
              std::vector(ids.begin() + 200, ids.end()));
    std::vector<float> row(6);
    map.reconstruct(1250, row.data());
    EXPECT_EQ(row, std::vector(rows.begin() + 250 * 6, rows.begin() + 251 * 6));
}

TEST(GnndIndex, RefusesWhatItCannotLink) {
    using faiss_ext::IndexHNSWGnnd;
    using faiss_ext::IndexNSGGnnd;
    expect_faiss_error("R = 0", [] { IndexNSGGnnd(8, 0); });
    expect_faiss_error("R = 5000", [] { IndexNSGGnnd(8, 5000); });
    expect_faiss_error("M = 1", [] { IndexHNSWGnnd(8, 1); });
    expect_faiss_error("d = 0", [] { IndexNSGGnnd(0, 32); });
    expect_faiss_error("no counterpart", [] { IndexHNSWGnnd(8, 16, faiss::METRIC_Canberra); });
    faiss::IndexNSGFlat by_faiss(8, 16, faiss::METRIC_Canberra);
    expect_faiss_error("no counterpart", [&] { IndexNSGGnnd(std::move(by_faiss)); });
    EXPECT_NE(by_faiss.storage, nullptr);
    const std::vector<float> rows = random_rows(40, 8);
    IndexNSGGnnd index(8, 16);
    index.GK = 0;
    expect_faiss_error("k = 0", [&] { index.add(40, rows.data()); });
    expect_faiss_error("-2 bytes", [&] { index.keep_on_gpu(-2); });
    index.GK = 8;
    index.add(40, rows.data());
    EXPECT_EQ(index.graph().k(), 8);
    expect_faiss_error("k = -1", [&] { index.search(1, rows.data(), -1, nullptr, nullptr); });
}

}  // namespace

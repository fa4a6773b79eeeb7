// SPDX-License-Identifier: MIT
// append() by searching on the CPU: the invariants, recall against one build, which method is taken, what it reports.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gnnd/cpu/insert.h"
#include "gnnd/detail/append_rows.h"
#include "gnnd/error.h"
#include "gnnd/io/vector_file.h"
#include "gnnd/random.h"
#include "tests/append_cases.h"
#include "tests/cpu.h"
#include "tests/io_conditions.h"
#include "tests/paths.h"

namespace gnnd {
namespace {

using test::cpu_params;
using test::message_of;
using test::random_vectors;
using test::Vectors;

/// The share of the nearest ten that the rows of some objects hold.
double exact_recall(const VectorView& vectors, const KnnGraph& graph, std::int64_t first, std::int64_t count) {
    std::vector<std::int32_t> objects(count);
    std::iota(objects.begin(), objects.end(), std::int32_t(first));
    const KnnGraph truth = exact_neighbors(vectors, objects.data(), count, 10, graph.metric());
    std::int64_t hits = 0;
    for (std::int64_t i = 0; i < count; ++i)
        for (int j = 0; j < 10; ++j) hits += graph.distances_of(first + i)[j] <= truth.distances_of(i)[9];
    return double(hits) / double(10 * count);
}

TEST(Append, SearchKeepsTheInvariants) {
    for (const test::MergeCase& c : test::merge_cases()) {
        SCOPED_TRACE(c);
        test::expect_good_search(c, cpu_params(c.k, c.metric));
    }
}

TEST(Append, SearchIsAsGoodAsOneBuild) {
    const io::VectorFile sample(test::kSampleFile);
    const VectorView rows = test::rows_of(sample.view(), 0, test::sized(sample.n()));
    for (const std::int64_t count : {200, 950}) {  // one in 20, more than are searched for by default
        SCOPED_TRACE(count);
        test::expect_search_as_good_as_one_build(rows, test::sized(count), cpu_params(32));
    }
}

TEST(Append, SearchOfOneAmongManyIsAsGood) {
    const io::VectorFile sample(test::kSampleFile);
    const VectorView rows = test::rows_of(sample.view(), 0, test::sized(sample.n()));
    test::expect_search_as_good_as_one_build(rows, test::sized(19), cpu_params(32));  // too few for links back
}

TEST(Append, SearchFindsANewCluster) {
    for (const std::int64_t count : {20, 100, 1500})
        test::expect_search_as_good_as_one_build(test::with_far_cluster(6000, count, 12), count, cpu_params(16));
}

TEST(Append, SearchIsTheSameOnAnyNumberOfThreads) {
    const Vectors vectors = random_vectors(5000, 12, DType::u8);
    BuildParams params = cpu_params(16);
    params.threads = 1;
    const KnnGraph expected = test::search_last(vectors, 1300, params).graph;
    for (const int threads : {2, 5}) {
        params.threads = threads;
        EXPECT_TRUE(test::same_graph(test::search_last(vectors, 1300, params).graph, expected)) << threads;
    }
}

/// As what is added is compared with itself: of a block of some objects with the same ones all pairs are wanted.
TEST(Append, NearestAmongThemselvesAreThoseAmongOthers) {
    constexpr int kCount = 100, kNearest = 32;
    const Vectors vectors = random_vectors(300, 8, DType::f32);
    HeapResources heap;
    const cpu::Team team{2, nullptr};
    const cpu::Space space(vectors, Metric::L2, team, heap);
    std::vector<std::int32_t> batch(kCount);
    std::iota(batch.begin(), batch.end(), 200);
    const std::vector<std::int32_t> others = batch;
    const auto nearest = [&](const std::vector<std::int32_t>& among) {
        return cpu::nearest_among(space, team, batch.data(), kCount, among.data(), kCount, kNearest, heap);
    };
    EXPECT_TRUE(test::same_graph(nearest(batch), nearest(others)));
}

TEST(Append, RowsThatChangeAreThoseOfTheWhole) {
    BuildParams params = cpu_params(16);
    params.recall = 0;
    for (const std::int64_t added : {20, 400}) {  // without links back in the rows, and with
        SCOPED_TRACE(added);
        const Vectors vectors = random_vectors(6000 + (added == 20 ? 9000 : 0), 8, DType::f32);
        VectorView old = vectors, rest = vectors;
        rest.n = added;
        old.n -= added;
        rest.data = vectors.view().row(old.n);
        const KnnGraph graph = build(old, params).graph;
        const KnnGraph whole = append(old, graph, rest, params, {}, nullptr, AppendMethod::search).graph;
        detail::AppendedRows changed = detail::append_rows(vectors, graph, params, {});
        EXPECT_EQ(changed.stats.stop, StopReason::searched);
        ASSERT_EQ(changed.added.n(), added);
        KnnGraph grown = graph;
        grown.resize(vectors.view().n);
        for (std::size_t c = 0; c < changed.objects.size(); ++c) {
            const std::int64_t to = changed.objects[c];
            for (std::int64_t e = changed.begin_of(c); e < changed.ends[c]; ++e)
                ASSERT_GE(changed.entries[e].id, old.n) << "of object " << to << " more is told than what is new";
            changed.put_in(c, grown.ids() + to * 16, grown.distances() + to * 16, 16);
            EXPECT_FALSE(std::equal(grown.ids_of(to), grown.ids_of(to) + 16, graph.ids_of(to)))
                << "object " << to << " has not changed";
        }
        std::copy_n(changed.added.ids(), added * 16, grown.ids() + old.n * 16);
        std::copy_n(changed.added.distances(), added * 16, grown.distances() + old.n * 16);
        EXPECT_NO_THROW(check_structure(grown));
        if (added == 400) {
            EXPECT_TRUE(test::same_graph(grown, whole));
        }
        EXPECT_GE(exact_recall(vectors, grown, old.n, added), exact_recall(vectors, whole, old.n, added) - 0.002);
    }
}

TEST(Append, ARowsEntriesGoInAndOut) {
    constexpr int kCount = 9;
    constexpr std::int32_t kOld = 100;  // objects from this one on were added
    Random random(1, 2);
    for (int round = 0; round < 2000; ++round) {
        KnnGraph before(1, kCount, Metric::L2), after = before;
        // Some added objects among the old ones, whose last ones leave; or all in another order.
        const auto fresh = random.below(kCount + 1);
        const bool reordered = round % 7 == 0;
        int told_entries = 0, kept = 0;
        for (int j = 0; j < kCount; ++j) {
            before.ids()[j] = j;
            before.distances()[j] = float(j);
        }
        for (int j = 0; j < kCount; ++j) {
            const bool is_fresh = random.below(kCount) < fresh;
            told_entries += is_fresh ? 1 : 0;
            after.ids()[j] = is_fresh ? kOld + j : reordered ? kCount - 1 - kept : kept;
            after.distances()[j] = is_fresh ? 0.5F : float(after.ids()[j]);
            kept += is_fresh ? 0 : 1;
        }
        if (reordered && kept > 0) told_entries = kCount;
        detail::AppendedRows told;
        detail::tell_row(told, 3, before, before, kOld);
        detail::tell_row(told, 5, before, after, kOld);
        ASSERT_EQ(told.objects, (std::vector<std::int32_t>{3, 5}));
        ASSERT_EQ(told.ends, (std::vector<std::int64_t>{0, told_entries}));
        KnnGraph row = before;
        for (int again = 0; again < 2; ++again) {
            told.put_in(1, row.ids(), row.distances(), kCount);
            ASSERT_TRUE(test::same_graph(row, after)) << "round " << round;
            told.take_out(1, row.ids(), row.distances(), kCount);
            ASSERT_TRUE(test::same_graph(row, before)) << "round " << round;
        }
    }
}

TEST(Append, TakesDuplicates) {
    Vectors vectors(3000, 4, DType::u8);
    for (int i = 0; i < 3000; ++i)
        for (int c = 0; c < 4; ++c) vectors.set(i, c, float(i % 7));
    test::expect_valid_graph(test::search_last(vectors, 1000, cpu_params(10)).graph, vectors);
}

TEST(Append, ChoosesByShareAndK) {
    const Vectors vectors = random_vectors(4200, 6, DType::f32);
    const VectorView old = test::rows_of(vectors, 0, 4000);
    const KnnGraph graph = build(old, cpu_params(16)).graph;
    const auto stop = [&](std::int64_t count, int k, AppendMethod method) {
        return append(old, graph, test::rows_of(vectors, 4000, count), cpu_params(k), {}, nullptr, method).stats.stop;
    };
    EXPECT_EQ(stop(120, 16, AppendMethod::automatic), StopReason::searched);
    EXPECT_NE(stop(120, 17, AppendMethod::automatic), StopReason::searched) << "rows would be filled at random";
    EXPECT_NE(stop(120, 16, AppendMethod::merge), StopReason::searched);
    EXPECT_NE(append(test::rows_of(old, 0, 3999), test::graph_of(test::rows_of(old, 0, 3999), cpu_params(16), 16),
                     test::rows_of(vectors, 3999, 120), cpu_params(16))
                  .stats.stop,
              StopReason::searched);
    for (const AppendMethod method : {AppendMethod::automatic, AppendMethod::merge, AppendMethod::search})
        EXPECT_EQ(parse_append_method(name_of(method)), method);
}

TEST(Append, HoldsWhatWasAddedUnmeasured) {
    test::expect_unmeasured_are_held_to_the_recall(cpu_params(32));
}

TEST(Append, LosesLittleUnmeasured) {
    const io::VectorFile sample(test::kSampleFile);
    test::expect_unmeasured_appends_lose_little(test::rows_of(sample.view(), 0, 12000), cpu_params(32));
}

TEST(Append, IntoTheCallersArrays) {
    const Vectors vectors = random_vectors(4000, 6, DType::f32);
    const VectorView old = test::rows_of(vectors, 0, 3000), added = test::rows_of(vectors, 3000, 1000);
    const KnnGraph graph = build(old, cpu_params(12)).graph;
    for (const AppendMethod method : {AppendMethod::merge, AppendMethod::search}) {
        KnnGraph into(4000, 12, Metric::L2);
        append_into(old, graph, added, cpu_params(12), into.ids(), into.distances(), {}, nullptr, method);
        EXPECT_TRUE(test::same_graph(append(old, graph, added, cpu_params(12), {}, nullptr, method).graph, into));
    }
}

TEST(Append, SearchReportsEveryBatch) {
    const Vectors vectors = random_vectors(5000, 12, DType::u8);
    std::int64_t objects = 0;
    int records = 0;
    Callbacks callbacks;
    callbacks.progress = [&](const IterationStats& batch) {
        EXPECT_EQ(batch.iteration, records++);
        EXPECT_GE(batch.changed, batch.objects * 16);
        EXPECT_GT(batch.offered, 0);
        EXPECT_LE(batch.accepted, batch.offered);
        EXPECT_GT(batch.distances, 0);
        EXPECT_GT(batch.phi, 0);
        objects += batch.objects;
    };
    const BuildStats stats = test::search_last(vectors, 1500, cpu_params(16), 0, callbacks).stats;
    EXPECT_EQ(objects, 1500);
    EXPECT_EQ(stats.stop, StopReason::searched);
    EXPECT_GT(stats.peak_work_bytes, 0);
}

TEST(Append, SearchEndsWhenAskedAndRefusesWhatIsBad) {
    Vectors vectors = random_vectors(4000, 6, DType::f32);
    const VectorView old = test::rows_of(vectors, 0, 3000), added = test::rows_of(vectors, 3000, 1000);
    const KnnGraph graph = build(old, cpu_params(8)).graph;
    const auto search = [&](const Callbacks& callbacks) {
        append(old, graph, added, cpu_params(8), callbacks, nullptr, AppendMethod::search);
    };
    Callbacks callbacks;
    callbacks.interrupt = [] { return true; };
    EXPECT_THROW(search(callbacks), Interrupted);
    vectors.set(3017, 3, NAN);
    EXPECT_EQ(message_of<InvalidArgument>([&] { search({}); }), "append: of the added vectors: vector 17 holds NaN");
    for (const std::int64_t unmeasured : {-1, 3000})
        EXPECT_EQ(message_of<InvalidArgument>(
                      [&] { append(old, graph, added, cpu_params(8), {}, nullptr, AppendMethod::search, unmeasured); }),
                  "append: unmeasured is " + std::to_string(unmeasured) + ", allowed are 0 to 2999");
}

}  // namespace
}  // namespace gnnd

// SPDX-License-Identifier: MIT
// build() on a GPU: the invariants over all kinds of input and of updates, and recall against the CPU backend. Without
// a GPU all of it is skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "gnnd/builder.h"
#include "gnnd/error.h"
#include "gnnd/io/vector_file.h"
#include "tests/gpu.h"
#include "tests/invariants.h"
#include "tests/own_stream.h"
#include "tests/paths.h"

namespace gnnd {
namespace {

using test::converging;
using test::expect_valid_graph;
using test::gpu_params;
using test::random_vectors;
using test::Vectors;
using test::vectors_for;

struct Case {
    Metric metric;
    DType dtype;
    friend std::ostream& operator<<(std::ostream& out, const Case& c) {
        return out << name_of(c.metric) << '_' << name_of(c.dtype);
    }
};

/// A way by which candidates reach the lists.
struct Variant {
    const char* name;
    Update update;
    Locks locks;
    bool deterministic;
    friend std::ostream& operator<<(std::ostream& out, const Variant& v) { return out << v.name; }
    BuildParams apply(BuildParams params) const {
        params.update = update;
        params.locks = locks;
        params.deterministic = deterministic;
        return params;
    }
};

constexpr Variant kAuto{"auto", Update::automatic, Locks::segment, false};
constexpr Variant kVariants[] = {
    kAuto,
    {"segment_locks", Update::selective, Locks::segment, false},
    {"list_locks", Update::selective, Locks::list, false},
    {"all_pairs", Update::all, Locks::segment, false},
};
constexpr Variant kDeterministic[] = {
    {"auto_deterministic", Update::automatic, Locks::segment, true},
    {"list_locks_deterministic", Update::selective, Locks::list, true},
    {"all_pairs_deterministic", Update::all, Locks::segment, true},
};

std::vector<Variant> all_variants() {
    std::vector<Variant> variants(std::begin(kVariants), std::end(kVariants));
    variants.insert(variants.end(), std::begin(kDeterministic), std::end(kDeterministic));
    return variants;
}

std::vector<Case> all_cases() {
    std::vector<Case> cases;
    for (Metric metric : test::kMetrics)
        for (DType dtype : test::kDTypes) cases.push_back({metric, dtype});
    return cases;
}

class CudaInvariantsTest : public testing::TestWithParam<Case> {
  protected:
    void SetUp() override { SKIP_WITHOUT_GPU(); }
    void run(std::int64_t n, std::int64_t d, int k, Init init = Init::projection, int samples = 0,
             const Variant& variant = kAuto) {
        SCOPED_TRACE(testing::Message() << "n " << n << ", d " << d << ", k " << k << ", p " << samples << ", "
                                        << variant);
        const Case c = GetParam();
        const Vectors vectors = vectors_for(c.metric, n, d, c.dtype);
        BuildParams params = variant.apply(gpu_params(k, c.metric));
        params.iterations = 3;
        params.init = init;
        params.samples = samples;
        const BuildResult result = build(vectors, params);
        expect_valid_graph(result.graph, vectors);
        EXPECT_EQ(result.stats.device.name(), "cuda:0");
    }
};

TEST_P(CudaInvariantsTest, HoldWhereAllPairsAreCompared) {
    for (std::int64_t n : {2, 33, 1000}) run(n, 31, 10);
}
TEST_P(CudaInvariantsTest, HoldForAnyDimension) {
    for (std::int64_t d : {1, 3, 31, 64, 127, 128, 129, 257, 960}) run(2100, d, 10);
}
TEST_P(CudaInvariantsTest, HoldForAnyK) {
    for (int k : {1, 10, 32, 33, 64, 100, 1024}) run(2100, 31, k);
}
TEST_P(CudaInvariantsTest, HoldForAnySamplesAndInit) {
    for (Init init : kInits)
        for (int samples : {1, 5, 16, 17, 32, 40, 64}) run(2100, 31, 64, init, samples);
}
TEST_P(CudaInvariantsTest, HoldForAnyUpdate) {
    for (const Variant& variant : all_variants()) {
        if (!test::has_update(variant.update)) continue;
        run(1500, 31, 64, Init::random, 16, variant);
        run(1500, 129, 100, Init::random, 32, variant);
        run(1500, 257, 70, Init::projection, 64, variant);
        run(1500, 20, 10, Init::projection, 0, variant);
    }
}
TEST_P(CudaInvariantsTest, HoldForManyObjects) {
    run(100'003, 3, 10);
}

INSTANTIATE_TEST_SUITE_P(All, CudaInvariantsTest, testing::ValuesIn(all_cases()), testing::PrintToStringParamName());

TEST(Cuda, LongRows) {
    SKIP_WITHOUT_GPU();
    for (DType dtype : {DType::f32, DType::u8, DType::i8}) {
        const Vectors vectors = random_vectors(1200, 16384, dtype);
        expect_valid_graph(build(vectors, gpu_params(10)).graph, vectors);
    }
}

/// Found once, for many tests ask. Of more objects than elsewhere: of 400 the recall of one build and the next differ
/// by 0.002.
const test::Truth& truth_of_sample(Metric metric) {
    static std::map<Metric, test::Truth> truths;
    const auto found = truths.find(metric);
    if (found != truths.end()) return found->second;
    const io::VectorFile file(test::kSampleFile);
    std::vector<std::int32_t> objects;
    for (std::int32_t i = 0; i < file.view().n; i += 10) objects.push_back(i);
    return truths.emplace(metric, test::Truth(file.view(), metric, objects)).first->second;
}

TEST(Cuda, RecallIsThatOfTheCpu) {
    SKIP_WITHOUT_GPU();
    const io::VectorFile file(test::kSampleFile);
    std::vector<float> floats(20000 * 128);
    copy_as_f32(file.view(), 0, 20000, floats.data());
    const VectorView as_floats{floats.data(), 20000, 128, DType::f32, 0};
    for (Metric metric : test::kMetrics) {
        const test::Truth& truth = truth_of_sample(metric);
        for (int k : {10, 32, 64}) {
            BuildParams params = converging(gpu_params(k, metric));
            params.device = {Device::Kind::cpu, 0};
            const double cpu = truth.recall_of(build(file.view(), params).graph);
            for (Init init : kInits)
                for (const VectorView& view : {file.view(), as_floats}) {
                    params = converging(gpu_params(k, metric));
                    params.init = init;
                    const BuildResult result = build(view, params);
                    EXPECT_GE(truth.recall_of(result.graph), cpu - 0.005)
                        << name_of(metric) << ' ' << k << ' ' << name_of(init) << ' ' << name_of(view.dtype);
                    EXPECT_EQ(result.stats.stop, StopReason::converged);
                }
        }
    }
}

class CudaVariantTest : public testing::TestWithParam<Variant> {
  protected:
    void SetUp() override {
        SKIP_WITHOUT_GPU();
        SKIP_WITHOUT_UPDATE(GetParam().update);
    }
};
INSTANTIATE_TEST_SUITE_P(All, CudaVariantTest, testing::ValuesIn(all_variants()), testing::PrintToStringParamName());

TEST_P(CudaVariantTest, RecallIsThatOfTheCpu) {
    const io::VectorFile file(test::kSampleFile);
    for (Metric metric : {Metric::L2, Metric::Cosine, Metric::L1}) {
        const test::Truth& truth = truth_of_sample(metric);
        for (int k : {32, 64})
            for (Init init : kInits) {
                // The same update there, as far as there is one.
                BuildParams params = converging(gpu_params(k, metric));
                params.init = init;
                params.update = GetParam().deterministic ? Update::selective : GetParam().update;
                params.samples = 32;
                params.device = {Device::Kind::cpu, 0};
                const double cpu = truth.recall_of(build(file.view(), params).graph);
                params.device = {Device::Kind::cuda, 0};
                const BuildResult result = build(file.view(), GetParam().apply(params));
                // Other trees alone change it by 0.001 (l1, k = 32: 0.9890 where the CPU has 0.9945).
                EXPECT_GE(truth.recall_of(result.graph), cpu - 0.0075)
                    << name_of(metric) << ' ' << k << ' ' << name_of(init);
                EXPECT_EQ(result.stats.stop, StopReason::converged);
            }
    }
}

/// k of 1024: 32 segments, lists longer than a warp; and the longest merges of every pair.
TEST_P(CudaVariantTest, LongLists) {
    for (const auto& [metric, dtype] : {std::pair{Metric::L2, DType::u8}, std::pair{Metric::Linf, DType::f32}}) {
        const Vectors vectors = vectors_for(metric, 2100, 40, dtype);
        BuildParams params = GetParam().apply(gpu_params(1024, metric));
        params.samples = 64;
        params.iterations = 2;
        expect_valid_graph(build(vectors, params).graph, vectors);
    }
}

TEST_P(CudaVariantTest, SameSeedSameGraph) {
    if (!GetParam().deterministic) GTEST_SKIP() << "not promised";
    const auto same = [](const KnnGraph& a, const KnnGraph& b) {
        const std::int64_t size = a.n() * a.k();
        return std::equal(a.ids(), a.ids() + size, b.ids()) &&
               std::equal(a.distances(), a.distances() + size, b.distances());
    };
    for (const auto& [metric, dtype] :
         {std::pair{Metric::L2, DType::u8}, std::pair{Metric::L2, DType::f32}, std::pair{Metric::Cosine, DType::f16},
          std::pair{Metric::InnerProduct, DType::i8}, std::pair{Metric::ChiSquare, DType::f32}})
        for (Init init : kInits) {
            const Vectors vectors = vectors_for(metric, 20000, 40, dtype);
            BuildParams params = GetParam().apply(gpu_params(40, metric));
            params.init = init;
            const KnnGraph first = build(vectors, params).graph;
            for (int i = 0; i < 3; ++i)
                EXPECT_TRUE(same(build(vectors, params).graph, first)) << name_of(metric) << ' ' << name_of(init);
            params.seed += 1;
            EXPECT_FALSE(same(build(vectors, params).graph, first)) << name_of(metric) << ' ' << name_of(init);
        }
    // From a graph: its entries come back as candidates.
    for (const auto& [metric, dtype] : {std::pair{Metric::L2, DType::u8}, std::pair{Metric::L1, DType::f32}}) {
        const Vectors vectors = vectors_for(metric, 20000, 200, dtype);
        BuildParams params = GetParam().apply(gpu_params(32, metric));
        params.iterations = 1;
        const KnnGraph start = build(vectors, params).graph;
        params.iterations = 4;
        const KnnGraph first = refine(vectors, start, params).graph;
        for (int i = 0; i < 3; ++i) EXPECT_TRUE(same(refine(vectors, start, params).graph, first)) << name_of(metric);
    }
    // Few distinct distances: ties everywhere.
    Vectors few = random_vectors(5000, 3, DType::u8);
    for (std::int64_t i = 0; i < 5000; ++i)
        for (int c = 0; c < 3; ++c) few.set(i, c, float((i * (c + 3)) % 7));
    const BuildParams params = GetParam().apply(gpu_params(40));
    const KnnGraph first = build(few, params).graph;
    EXPECT_TRUE(same(build(few, params).graph, first));
}

/// Every kernel once, small enough for compute-sanitizer's slowest tool.
TEST_P(CudaVariantTest, SmallBuildOfEachKind) {
    for (const auto& [metric, dtype] :
         {std::pair{Metric::L2, DType::u8}, std::pair{Metric::L2, DType::f32}, std::pair{Metric::Linf, DType::f32}})
        for (int samples : {16, 32, 64}) {
            const Vectors vectors = vectors_for(metric, 1030, samples == 32 ? 150 : 20, dtype);
            BuildParams params = GetParam().apply(gpu_params(20, metric));
            params.list_size = 64;
            params.samples = samples;
            params.iterations = 2;
            params.trees = 2;
            expect_valid_graph(build(vectors, params).graph, vectors);
        }
}

/// A build leaves out what a high recall asks for because of `device_memory`, not of what happens to be free.
TEST(CudaBuild, DeterministicOnesMakeDoWithLessOnlyWhereTold) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(20000, 32, DType::f32);
    BuildParams params = gpu_params(32);
    params.recall = 0.999f;
    params.iterations = 5;  // by hand, so that lists do not get longer
    params.deterministic = true;
    BuildParams limited = params;
    limited.device_memory = std::int64_t(256) << 20;
    ASSERT_EQ(plan_memory(vectors, limited).choices.samples, 64);
    while (plan_memory(vectors, limited).choices.samples == 64) limited.device_memory -= limited.device_memory / 32;
    struct Little : test::OwnStream {
        std::size_t free_device_memory() override { return free; }
        std::size_t free = 0;
    } resources;
    resources.free = std::size_t(limited.device_memory);
    EXPECT_EQ(build(vectors, limited, {}, &resources).stats.choices.samples, 32);
    EXPECT_THROW(build(vectors, params, {}, &resources), OutOfDeviceMemory);
}

}  // namespace
}  // namespace gnnd

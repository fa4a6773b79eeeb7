// SPDX-License-Identifier: MIT
// Operations on graphs on a GPU beside the CPU's. Without a GPU all of it is skipped.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <optional>
#include <type_traits>

#include "gnnd/error.h"
#include "tests/gpu.h"
#include "tests/operations.h"

namespace gnnd {
namespace {

using test::graph_with_distances;
using test::OnDevice;
using test::random_graph;

constexpr Device kCpu{Device::Kind::cpu, 0}, kGpu{Device::Kind::cuda, 0};

/// Device memory that holds what no result may hold.
class Poisoned final : public Resources {
  public:
    void* allocate(std::size_t bytes) override { return heap_.allocate(bytes); }
    void deallocate(void* pointer, std::size_t bytes) noexcept override { heap_.deallocate(pointer, bytes); }
    void* allocate_device(std::size_t bytes, Stream stream) override {
        void* const memory = heap_.allocate_device(bytes, stream);
        GNND_CUDA(cudaMemsetAsync(memory, 0xa5, bytes, stream));
        return memory;
    }
    std::size_t free_device_memory() override { return heap_.free_device_memory(); }
    void deallocate_device(void* pointer, std::size_t bytes, Stream stream) noexcept override {
        heap_.deallocate_device(pointer, bytes, stream);
    }

  private:
    HeapResources heap_;
};

class CudaOperationsTest : public testing::TestWithParam<Metric> {
  protected:
    void SetUp() override { SKIP_WITHOUT_GPU(); }
};
INSTANTIATE_TEST_SUITE_P(All, CudaOperationsTest, testing::ValuesIn(test::kMetrics),
                         [](const auto& info) { return std::string(name_of(info.param)); });

/// Memory of the GPU for a matrix.
struct RoomOnDevice {
    std::optional<OnDevice<std::int64_t>> indptr;
    std::optional<OnDevice<std::int32_t>> indices;
    std::optional<OnDevice<float>> values;
    int asked = 0;

    CsrRoom room() {
        return [this](std::int64_t n, std::int64_t entries) {
            ++asked;
            indptr.emplace(std::size_t(n) + 1);
            indices.emplace(std::size_t(entries));
            values.emplace(std::size_t(entries));
            return CsrSpan{*indptr, *indices, *values};
        };
    }
    CsrGraph read() const {
        const auto host = []<class T>(const OnDevice<T>& array) {
            const std::vector<T> copy = array.read();
            return Array<T>(copy.begin(), copy.end());
        };
        CsrGraph matrix{0, host(*indptr), host(*indices), host(*values)};
        matrix.n = std::ssize(matrix.indptr) - 1;
        return matrix;
    }
};

/// The operation on the CPU and on the GPU, as expect(on_cpu, on_gpu); a matrix once more with room for it there.
template <class Operation, class Params, class Expect>
void on_both(const Operation& operation, const KnnGraphView& graph, Params params, const Expect& expect) {
    Poisoned poisoned;
    params.device = kCpu;
    const auto on_cpu = operation(graph, params, {}, nullptr);
    params.device = kGpu;
    expect(on_cpu, operation(graph, params, {}, &poisoned));
    if constexpr (std::is_same_v<decltype(on_cpu), const CsrGraph>) {
        RoomOnDevice there;
        params.room = there.room();
        const CsrGraph returned = operation(graph, params, {}, &poisoned);
        EXPECT_EQ(returned.n, graph.n);
        EXPECT_TRUE(returned.indices.empty() && returned.entries() == 0);
        EXPECT_EQ(there.asked, 1);
        expect(on_cpu, there.read());
    }
}

void expect_equal(const CsrGraph& a, const CsrGraph& b) {
    test::expect_valid(b, a.n);
    EXPECT_EQ(a.indptr, b.indptr);
    EXPECT_EQ(a.indices, b.indices);
    EXPECT_EQ(a.values, b.values);
}

/// Weights that a search for sigma has made.
void expect_near(const CsrGraph& a, const CsrGraph& b) {
    test::expect_valid(b, a.n);
    EXPECT_EQ(a.indptr, b.indptr);
    ASSERT_EQ(a.indices, b.indices);
    for (std::size_t e = 0; e < a.values.size(); ++e) ASSERT_NEAR(a.values[e], b.values[e], 3e-5) << e;
}

void expect_groups(const Duplicates& a, const Duplicates& b) {
    EXPECT_EQ(a.labels, b.labels);
    EXPECT_EQ(a.sizes, b.sizes);
    EXPECT_EQ(a.firsts, b.firsts);
    EXPECT_EQ(a.full, b.full);
}

using OfEdges = CsrGraph (*)(const KnnGraphView&, const EdgeParams&, const Callbacks&, Resources*);
constexpr OfEdges kOfEdges[] = {neighbors_graph, symmetric_graph, mutual_graph};
constexpr Components (*kComponents)(const KnnGraphView&, const EdgeParams&, const Callbacks&,
                                    Resources*) = connected_components;
constexpr Duplicates (*kDuplicates)(const KnnGraphView&, const DuplicateParams&, const Callbacks&,
                                    Resources*) = duplicates;

void expect_cut(const KnnGraphView& graph, const EdgeParams& params) {
    for (const OfEdges operation : kOfEdges) on_both(operation, graph, params, expect_equal);
    on_both(full_rows, graph, params, [](std::int64_t a, std::int64_t b) { EXPECT_EQ(a, b); });
    on_both(kComponents, graph, params, [](const Components& a, const Components& b) {
        EXPECT_EQ(a.labels, b.labels);
        EXPECT_EQ(a.sizes, b.sizes);
    });
    if (params.radius)
        on_both(kDuplicates, graph, DuplicateParams{*params.radius, params.values, params.neighbors}, expect_groups);
}

void expect_weights(const KnnGraphView& graph, int neighbors) {
    const int columns = neighbors > 0 ? neighbors : int(graph.k);
    for (const bool self : {false, true})
        for (const float prune : {0.f, 0.2f})
            on_both(jaccard_graph, graph, JaccardParams{neighbors, self, prune}, expect_equal);
    for (FuzzyParams params : {FuzzyParams{neighbors, 1, 1, 1}, FuzzyParams{neighbors, 0, 0, 1},
                               FuzzyParams{neighbors, 1.5f, 0.5f, 0.7f}, FuzzyParams{neighbors, 3, 0.25f, 1.3f}}) {
        params.local_connectivity = std::min(params.local_connectivity, float(columns));
        on_both(fuzzy_simplicial_set, graph, params, expect_near);
    }
    for (const int min_samples : {1, (columns + 1) / 2, columns}) {
        const ReachabilityParams params{neighbors, min_samples, min_samples == 1 ? 1.f : 0.7f};
        on_both(core_distances, graph, params, [](const auto& a, const auto& b) { EXPECT_EQ(a, b); });
        on_both(mutual_reachability_graph, graph, params, expect_equal);
    }
}

/// All operations, with all entries and with some.
void expect_same(const KnnGraphView& graph) {
    SCOPED_TRACE(testing::Message() << "n " << graph.n << ", k " << graph.k);
    const float middle = graph.distances_of(graph.n / 2)[graph.k / 2];
    for (const int neighbors : {0, int(graph.k + 1) / 2}) {
        for (const GraphValues values : {GraphValues::metric, GraphValues::distance}) {
            float radius = middle;
            if (values == GraphValues::distance) true_distances(graph.metric, &middle, 1, &radius);
            expect_cut(graph, {neighbors, values, {}});
            expect_cut(graph, {neighbors, values, radius});
        }
        expect_weights(graph, neighbors);
    }
}

TEST_P(CudaOperationsTest, AreThoseOfTheCpu) {
    for (const std::int64_t n : {1, 2, 50, 1000})
        for (const int k : {1, 32, 65, 130})
            if (n * k <= 50000 && (n > 1 || k == 1))
                expect_same(n == 1 ? KnnGraph(1, k, GetParam()) : graph_with_distances(GetParam(), n, k));
}

TEST_P(CudaOperationsTest, AreThoseOfTheCpuOnWhatNobodyBuilt) {
    for (const std::int64_t n : {5, 40, 5000})
        for (const int k : {3, 20})
            for (const bool padded : {false, true}) expect_same(random_graph(GetParam(), n, k, unsigned(n), padded));
}

TEST_P(CudaOperationsTest, AreThoseOfTheCpuOnHardSets) {
    for (const test::HardSet& set : test::hard_sets()) {
        SCOPED_TRACE(set.name);
        test::Vectors vectors = test::vectors_of(set, 800, DType::f32, GetParam() == Metric::ChiSquare);
        if (GetParam() == Metric::Cosine)
            for (std::int64_t i = 0; i < 800; ++i) vectors.set(i, 0, 1);
        const KnnGraph graph = test::exact_graph(vectors, GetParam(), 20);
        expect_cut(graph, {});
        on_both(jaccard_graph, graph, JaccardParams{}, expect_equal);
        if (GetParam() != Metric::InnerProduct) expect_weights(graph, 0);  // of any length: there are no distances
    }
}

/// One that all name, whose row is as long as there are objects, and a ring through all of them.
TEST_P(CudaOperationsTest, AStarAndARing) {
    constexpr std::int64_t kObjects = 20000;
    KnnGraph star(kObjects, 1, GetParam()), ring(kObjects, 1, GetParam());
    for (std::int64_t i = 0; i < kObjects; ++i) {
        star.ids()[i] = i == 7 ? 9 : 7;
        ring.ids()[i] = std::int32_t((i + 1) % kObjects);
        star.distances()[i] = ring.distances()[i] = 0.5F;
    }
    for (const KnnGraph& graph : {star, ring}) {
        expect_cut(graph, {});
        expect_weights(graph, 0);
    }
}

TEST_P(CudaOperationsTest, EqualRowsAreOneGroup) {
    const KnnGraph graph = random_graph(GetParam(), 4000, 5, 8, true);
    Array<std::int32_t> equal(4000);
    for (std::int32_t i = 0; i < 4000; ++i) equal[std::size_t(i)] = i % 10 == 9 ? i - 6 : i;
    for (const float threshold : {-1.f, 0.f, 0.25f, 1.f}) {
        DuplicateParams params{threshold, GraphValues::metric, 0, 0, equal.data()};
        on_both(kDuplicates, graph, params, expect_groups);
        params.values = GraphValues::distance;
        on_both(kDuplicates, graph, params, expect_groups);
    }
    const OnDevice<std::int32_t> there(equal.size(), equal.data());
    EXPECT_THROW(duplicates(graph, {0, {}, 0, 0, there.get(), kGpu}), InvalidArgument);
    equal[17] = 4000;
    EXPECT_THROW(duplicates(graph, {0, {}, 0, 0, equal.data(), kGpu}), InvalidArgument);
    EXPECT_THROW(duplicates(graph, {NAN, {}, 0, 0, nullptr, kGpu}), InvalidArgument);
}

TEST_P(CudaOperationsTest, RunWhereTheGraphLies) {
    const KnnGraph graph = graph_with_distances(GetParam(), 600, 12);
    const OnDevice<std::int32_t> ids(600 * 12, graph.ids());
    const OnDevice<float> distances(600 * 12, graph.distances());
    const CsrGraph expected = symmetric_graph(graph, {0, GraphValues::distance, {}});
    for (const int places : {0, 1, 2, 3}) {  // bits: ids, distances
        KnnGraphView view = graph;
        if (places & 1) view.ids = ids;
        if (places & 2) view.distances = distances;
        expect_equal(expected, symmetric_graph(view, {0, GraphValues::distance, {}, 0, kGpu}));
        if (places & 1) expect_equal(expected, symmetric_graph(view, {0, GraphValues::distance, {}}));
        if (places != 0) {
            EXPECT_THROW(symmetric_graph(view, {0, {}, {}, 0, kCpu}), InvalidArgument);
        }
    }
    EXPECT_EQ(distances.read(), std::vector<float>(graph.distances(), graph.distances() + 600 * 12))
        << "the caller's own is not written to";
    EXPECT_THROW(symmetric_graph(graph, {0, {}, {}, 0, {Device::Kind::cuda, 4000}}), Unavailable);
    EXPECT_THROW(symmetric_graph(graph, {0, {}, {}, 0, {Device::Kind::cuda, -1}}), InvalidArgument);
}

/// What a call says when it throws InvalidArgument.
template <class F>
std::string refused(const F& f) {
    try {
        f();
    } catch (const InvalidArgument& error) {
        return error.what();
    }
    return "nothing was thrown";
}

/// The same text from both.
template <class Operation, class Params>
void expect_refused(const Operation& operation, const KnnGraphView& graph, Params params) {
    params.device = kCpu;
    const std::string text = refused([&] { operation(graph, params, {}, nullptr); });
    EXPECT_NE(text, "nothing was thrown");
    params.device = kGpu;
    EXPECT_EQ(refused([&] { operation(graph, params, {}, nullptr); }), text);
}

TEST_P(CudaOperationsTest, RefuseWhatTheCpuRefuses) {
    const KnnGraph good = random_graph(GetParam(), 5000, 40, 3, false);
    const float far = is_similarity(GetParam()) ? -100.f : 100.f;
    const std::vector<std::function<void(std::int32_t*, float*)>> faults{
        [](auto* ids, float*) { ids[3] = 5000; },        [](auto* ids, float*) { ids[0] = -2; },
        [](auto* ids, float*) { ids[39] = 4321; },       [](auto* ids, float*) { ids[2] = -1; },
        [](auto*, float* values) { values[0] = NAN; },   [](auto*, float* values) { values[39] = NAN; },
        [&](auto*, float* values) { values[33] = far; }, [](auto* ids, float*) { ids[1] = ids[36]; },
    };
    for (const auto& spoil : faults) {
        KnnGraph bad = good;
        spoil(bad.ids() + 4321 * 40, bad.distances() + 4321 * 40);
        for (const OfEdges operation : kOfEdges) expect_refused(operation, bad, EdgeParams{});
    }
    KnnGraph bad = good;
    bad.distances()[4321 * 40] = is_similarity(GetParam()) ? 1.5F : -0.5F;  // of which there is no distance
    expect_refused(symmetric_graph, bad, EdgeParams{0, GraphValues::distance, {}});
    expect_refused(core_distances, bad, ReachabilityParams{});
    expect_refused(symmetric_graph, good, EdgeParams{41, {}, {}});
    expect_refused(symmetric_graph, good, EdgeParams{0, GraphValues(2), {}});
    expect_refused(symmetric_graph, good, EdgeParams{0, {}, NAN});
    expect_refused(jaccard_graph, good, JaccardParams{0, false, 1.5F});
    expect_refused(fuzzy_simplicial_set, good, FuzzyParams{0, 41});
    expect_refused(fuzzy_simplicial_set, good, FuzzyParams{0, 1, 2});
    expect_refused(mutual_reachability_graph, good, ReachabilityParams{0, 41});
    expect_refused(mutual_reachability_graph, good, ReachabilityParams{0, 5, 0});
    KnnGraphView view = good;
    view.ids = nullptr;
    expect_refused(mutual_graph, view, EdgeParams{});
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_P(CudaOperationsTest, RoomIsWhereTheyCanReach) {
    const KnnGraph graph = random_graph(GetParam(), 2000, 9, 4, true);
    const CsrGraph expected = symmetric_graph(graph);
    // Each array for itself may lie on the host.
    for (const int places : {0, 1, 2, 4}) {
        RoomOnDevice there;
        CsrGraph here;
        const CsrRoom room = [&](std::int64_t n, std::int64_t entries) {
            CsrSpan span = there.room()(n, entries);
            here = {n, Array<std::int64_t>(n + 1), Array<std::int32_t>(entries), Array<float>(entries)};
            if (!(places & 1)) span.indptr = here.indptr.data();
            if (!(places & 2)) span.indices = here.indices.data();
            if (!(places & 4)) span.values = here.values.data();
            return span;
        };
        symmetric_graph(graph, {0, {}, {}, 0, kGpu, room});
        const CsrGraph copied = there.read();
        if (places & 1) here.indptr = copied.indptr;
        if (places & 2) here.indices = copied.indices;
        if (places & 4) here.values = copied.values;
        expect_equal(expected, here);
    }
    RoomOnDevice there;
    EXPECT_THROW(symmetric_graph(graph, {0, {}, {}, 0, kCpu, there.room()}), InvalidArgument);
    const CsrRoom none = [](std::int64_t, std::int64_t) -> CsrSpan { throw OutOfWorkMemory("no room"); };
    HeapResources heap;
    CountedResources counted(heap);
    EXPECT_THROW(symmetric_graph(graph, {0, {}, {}, 0, kGpu, none}, {}, &counted), OutOfWorkMemory);
    EXPECT_EQ(counted.held(), 0u);
    KnnGraph bad = graph;
    bad.ids()[0] = 0;
    RoomOnDevice unasked;
    EXPECT_THROW(symmetric_graph(bad, {0, {}, {}, 0, kGpu, unasked.room()}), InvalidArgument);
    EXPECT_EQ(unasked.asked, 0);
}

TEST_P(CudaOperationsTest, AreTheSameRunAfterRun) {
    const KnnGraph graph = random_graph(GetParam(), 30000, 16, 2, true);
    const CsrGraph first = fuzzy_simplicial_set(graph, {0, 1, 1, 1, 0, kGpu});
    const Components components = connected_components(graph, {0, {}, {}, 0, kGpu});
    for (int run = 0; run < 3; ++run) {
        EXPECT_TRUE(test::same(first, fuzzy_simplicial_set(graph, {0, 1, 1, 1, 0, kGpu})));
        EXPECT_EQ(connected_components(graph, {0, {}, {}, 0, kGpu}).labels, components.labels);
    }
}

TEST_P(CudaOperationsTest, TakeWhatTheySayAndGiveItBack) {
    constexpr std::int64_t kObjects = 20000, kEntries = kObjects * 32;
    const KnnGraph graph = random_graph(GetParam(), kObjects, 32, 5, false);
    HeapResources heap;
    CountedResources measured(heap);
    symmetric_graph(graph, {0, {}, {}, 0, kGpu}, {}, &measured);
    EXPECT_EQ(measured.held(), 0u);
    EXPECT_LE(measured.peak(), std::size_t(8 * kEntries + 33 * kEntries + 64 * kObjects));
    CountedResources limited(heap, measured.peak() / 2);
    EXPECT_THROW(symmetric_graph(graph, {0, {}, {}, 0, kGpu}, {}, &limited), Error);
    EXPECT_THROW(mutual_reachability_graph(graph, {0, 5, 1, 0, kGpu}, {}, &limited), Error);
    EXPECT_EQ(limited.held(), 0u);
    const Callbacks stop{{}, [] { return true; }, {}};
    for (const OfEdges operation : kOfEdges)
        EXPECT_THROW(operation(graph, {0, {}, {}, 0, kGpu}, stop, &measured), Interrupted);
    EXPECT_THROW(connected_components(graph, {0, {}, {}, 0, kGpu}, stop, &measured), Interrupted);
    EXPECT_EQ(measured.held(), 0u);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
}  // namespace gnnd

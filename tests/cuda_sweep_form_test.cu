// SPDX-License-Identifier: MIT
// Each form of numbers that a comparison of all pairs can use, against the host. Without a GPU all of it is skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <vector>

#include "benchs/hard.h"
#include "gnnd/builder.h"
#include "gnnd/cuda/memory/layout.h"
#include "gnnd/cuda/memory/piece.h"
#include "gnnd/cuda/space/codes.h"
#include "gnnd/cuda/space/projection.h"
#include "gnnd/cuda/sweep/sweep.h"
#include "gnnd/cuda/sweep/swept_set.h"
#include "tests/all_objects.h"
#include "tests/cuda_lists.h"
#include "tests/gpu.h"
#include "tests/hard_sets.h"
#include "tests/invariants.h"
#include "tests/reference.h"

namespace gnnd::cuda {
namespace {

/// The space of a set, in memory where its rows can become codes.
struct PackingSpace {
    const RawVectors raw;
    const Metric metric;
    const VectorForm halves;
    OnDevice<std::uint8_t> rows;
    OnDevice<u32> norms;
    OnDevice<float> errors, work;
    OnDevice<SpaceInfo> info{1};
    OnDevice<std::byte> projection, projecting;

    PackingSpace(const SweepSpace& from, const VectorView& vectors)
        : raw(from.raw),
          metric(from.metric),
          halves(form_of(vectors, false, metric)),
          rows(std::size_t(raw.n * halves.row_bytes)),
          norms(std::size_t(raw.n)),
          errors(std::size_t(raw.n)),
          work(std::size_t(2 * raw.d + kCodeErrorBytes / 4)),
          projection(std::size_t(projection_bytes(halves.row_bytes))),
          projecting(std::size_t(projection_work_bytes(raw.n, halves.row_bytes))) {
        prepare_space(raw, metric, halves, rows, norms, work, info, nullptr);
    }
    SweepSpace space() {
        SweepSpace space{.raw = raw,
                         .metric = metric,
                         .packed = halves.packed,
                         .rows = {rows, raw.n, halves.row_bytes},
                         .norms = norms,
                         .info = info,
                         .columns = raw.n,
                         .errors = errors};
        space.pack = [this](SweepForm wanted) -> SweptRows {
            const VectorForm form = wanted == SweepForm::codes ? code_form(raw.d) : halves;
            pack_again(raw, metric, form, rows, norms, errors, work, info, nullptr);
            if (wanted != SweepForm::projections) return {rows, raw.n, form.row_bytes};
            const Points points = points_of(raw, metric, halves, rows, norms);
            find_projection(points, 1, projection, projecting, nullptr);
            project(points, is_normalized(metric), projection, rows, norms, errors, info, projecting, nullptr);
            return {rows, raw.n, kComponents};
        };
        return space;
    }
};

/// n x d floats of few dimensions, of which codes tell the neighbours.
std::vector<float> rows_of_few_dimensions(std::int64_t n, std::int64_t d) {
    constexpr std::int64_t kFew = 6;
    std::mt19937 random(1);
    std::vector<float> few(std::size_t(n * kFew)), rows(std::size_t(n * d));
    for (float& x : few) x = std::uniform_real_distribution<float>(-1, 1)(random);
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t c = 0; c < d; ++c) rows[std::size_t(i * d + c)] = few[std::size_t(i * kFew + c % kFew)];
    return rows;
}

/// The squared distances of an object's k nearest.
std::vector<float> nearest_by_definition(const std::vector<float>& rows, std::int64_t n, std::int64_t d,
                                         std::int64_t object, int k) {
    std::vector<float> exact(std::size_t(n), 0.0F);
    for (std::int64_t other = 0; other < n; ++other)
        for (std::int64_t c = 0; c < d; ++c) {
            const float apart = rows[std::size_t(object * d + c)] - rows[std::size_t(other * d + c)];
            exact[std::size_t(other)] += apart * apart;
        }
    exact[std::size_t(object)] = INFINITY;
    std::partial_sort(exact.begin(), exact.begin() + k, exact.end());
    exact.resize(std::size_t(k));
    return exact;
}

/// The graph of a few iterations.
KnnGraph after_iterations(int iterations, const VectorView& vectors, Metric metric) {
    BuildParams params = test::converging(test::gpu_params(10, metric));
    params.iterations = iterations;
    return build(vectors, params).graph;
}

/// The lists of a graph on the device.
struct GraphOnDevice {
    std::int64_t n, k;
    Metric metric;
    OnDevice<std::int32_t> ids;
    OnDevice<float> distances, bounds;

    /// \param start  what they hold; null: poison
    GraphOnDevice(std::int64_t n_, std::int64_t k_, Metric metric_, const KnnGraph* start)
        : n(n_),
          k(k_),
          metric(metric_),
          ids(std::size_t(n * k), start != nullptr ? start->ids() : nullptr),
          distances(std::size_t(n * k), start != nullptr ? start->distances() : nullptr),
          bounds(std::size_t(n)) {}
    Lists lists() const {
        return {.ids = reinterpret_cast<u32*>(ids.get()),
                .distances = distances.get(),
                .bounds = bounds.get(),
                .length = int(k),
                .segments = 1};
    }
    KnnGraph closed(cudaStream_t stream) const {
        close_graph(metric, lists(), n, stream);
        GNND_CUDA(cudaStreamSynchronize(stream));
        KnnGraph graph(n, k, metric);
        GNND_CUDA(cudaMemcpy(graph.ids(), ids.get(), std::size_t(n * k) * 4, cudaMemcpyDeviceToHost));
        GNND_CUDA(cudaMemcpy(graph.distances(), distances.get(), std::size_t(n * k) * 4, cudaMemcpyDeviceToHost));
        return graph;
    }
};

/// The graph made exact, in the memory that is planned for it, beside which rows that are split may take some.
/// \param form   in this one; or codes first, if they do, which `ended` tells
/// \param spare  for rows that are split
/// \param codes  that are first
KnnGraph exact_in(std::optional<SweepForm> form, const VectorView& vectors, const KnnGraph& start,
                  SweepForm* ended = nullptr, std::size_t spare = std::size_t(1) << 30,
                  SweepForm codes = SweepForm::codes) {
    const std::int64_t n = start.n(), k = start.k();
    const GraphOnDevice there(n, k, start.metric(), &start);
    const Lists lists = there.lists();
    HeapResources heap;
    const OwnedStream stream(heap);
    const detail::Input input{{vectors, {}}, {}};
    const SweptSet set(input, start.metric(), heap, stream);
    GNND_CUDA(cudaStreamSynchronize(stream));
    PackingSpace packing(set.space(), vectors);
    SweepSpace space = packing.space();
    space.spare = spare;
    const OnDevice<std::byte> block(Sweep::bytes_of_all(space, int(k)));
    CountedResources beside(heap);
    Piece piece(block, Sweep::bytes_of_all(space, int(k)), true, beside);
    GNND_CUDA(cudaDeviceSynchronize());
    open_graph(start.metric(), lists, n, stream);
    {
        Sweep sweep(space, int(k), piece, stream);
        if (!form) sweep.begin_with(codes);
        sweep.make_exact(lists, form, {});
        if (form) EXPECT_EQ(int(sweep.form()), int(*form));
        if (ended != nullptr) *ended = sweep.form();
        if (sweep.bytes_of_split() == 0) EXPECT_EQ(beside.peak(), 0u);
    }
    return there.closed(stream);
}

TEST(CudaKernelSweep, IsExactInEveryForm) {
    SKIP_WITHOUT_GPU();
    // Rows of one tile, of some that stay in shared memory, and of some that do not.
    for (const std::int64_t d : {20, 100, 700})
        for (const Metric metric : {Metric::L2, Metric::InnerProduct, Metric::Cosine}) {
            const test::Vectors vectors = test::vectors_for(metric, 3000, d, DType::f32);
            const KnnGraph start = after_iterations(1, vectors, metric);
            const test::Truth truth(vectors, metric);
            for (const SweepForm form : {SweepForm::codes, SweepForm::halves, SweepForm::split, SweepForm::floats}) {
                SCOPED_TRACE(testing::Message() << name_of(metric) << ", d = " << d << ", form " << int(form));
                const KnnGraph graph = exact_in(form, vectors, start);
                test::expect_valid_graph(graph, vectors);
                EXPECT_GE(truth.recall_of(graph), 0.9995);  // float32 may take two for equally far
            }
        }
}

/// The graph from nothing, in the memory that is planned for it, beside which rows that are split may take some.
/// \return nothing where the sweep says that products do not tell the neighbours
std::optional<KnnGraph> from_nothing(const VectorView& vectors, int k, Metric metric) {
    const GraphOnDevice there(vectors.n, k, metric, nullptr);
    HeapResources heap;
    const OwnedStream stream(heap);
    const detail::Input input{{vectors, {}}, {}};
    const SweptSet set(input, metric, heap, stream);
    SweepSpace space = set.space();
    EXPECT_TRUE(Sweep::may_find_exact(space, k));
    space.spare = std::size_t(1) << 30;
    const std::size_t planned = Sweep::bytes_from_sample(space, k);
    const OnDevice<std::byte> block(planned);
    GNND_CUDA(cudaMemset(block, 0xa5, planned));
    CountedResources beside(heap);
    Piece piece(block, planned, true, beside);
    GNND_CUDA(cudaDeviceSynchronize());
    {
        Sweep sweep(space, k, piece, stream);
        if (!sweep.find_exact(there.lists(), {})) return std::nullopt;
        if (sweep.bytes_of_split() == 0) EXPECT_EQ(beside.peak(), 0u);
    }
    return there.closed(stream);
}

/// With bounds from a sample, of which four rows in a thousand end behind theirs and are compared again.
TEST(CudaKernelSweep, IsExactFromNothing) {
    SKIP_WITHOUT_GPU();
    for (const std::int64_t d : {1, 20, 100, 700})
        for (const Metric metric : {Metric::L2, Metric::InnerProduct, Metric::Cosine})
            for (const DType dtype : {DType::f32, DType::f16, DType::u8, DType::i8}) {
                if (d == 1 && metric == Metric::Cosine) continue;  // of which there are two
                const test::Vectors vectors = test::vectors_for(metric, 5003, d, dtype);
                for (const int k : {1, 10, 64}) {
                    SCOPED_TRACE(testing::Message()
                                 << name_of(metric) << ' ' << name_of(dtype) << ", d = " << d << ", k = " << k);
                    const std::optional<KnnGraph> graph = from_nothing(vectors, k, metric);
                    if (!graph && d == 1) continue;  // equally far are too many
                    ASSERT_TRUE(graph);
                    test::expect_valid_graph(*graph, vectors);
                    const test::Truth truth = d <= 20 && dtype == DType::f32
                                                  ? test::Truth(vectors, metric, test::all_of(5003), k)
                                                  : test::Truth(vectors, metric, k);
                    EXPECT_GE(truth.recall_of(*graph), 0.9995);
                }
            }
}

/// Whatever the data: exact, or it says that it cannot be.
TEST(CudaKernelSweep, IsExactFromNothingOrSaysSo) {
    SKIP_WITHOUT_GPU();
    int exact = 0;
    for (const test::HardSet& set : test::hard_sets()) {
        const test::Vectors vectors = test::vectors_of(set, 6000, DType::f32);
        for (const int k : {10, 64}) {
            SCOPED_TRACE(set.name + ", k = " + std::to_string(k));
            const std::optional<KnnGraph> graph = from_nothing(vectors, k, Metric::L2);
            if (!graph) continue;
            ++exact;
            test::expect_valid_graph(*graph, vectors);
            EXPECT_GE(test::Truth(vectors, Metric::L2, test::all_of(6000), k).recall_of(*graph), 0.9995);
        }
    }
    EXPECT_GE(exact, 16);
    // All hits of a bound, or none.
    const std::vector<float> equal(std::size_t(5000) * 8, 0.5F);
    EXPECT_FALSE(from_nothing({equal.data(), 5000, 8, DType::f32, 0}, 10, Metric::L2));
}

TEST(CudaKernelSweep, KnowsWhichSetsAreTooSmallForASample) {
    SKIP_WITHOUT_GPU();
    const auto may = [](std::int64_t n, int k, Metric metric) {
        const VectorView vectors{nullptr, n, 32, DType::f32, 0};
        return Sweep::may_find_exact(SweptSet::shape({{vectors, {}}, {}}, false, metric), k);
    };
    EXPECT_TRUE(may(1025, 10, Metric::L2));
    EXPECT_FALSE(may(1025, 64, Metric::L2)) << "of 129 columns the 17th is looked for among 32 maxima";
    EXPECT_TRUE(may(4097, 64, Metric::L2));
    EXPECT_FALSE(may(10000, 1000, Metric::Cosine));
    EXPECT_TRUE(may(100000, 1000, Metric::Cosine));
    for (const Metric metric : {Metric::L1, Metric::Linf, Metric::ChiSquare}) EXPECT_FALSE(may(100000, 10, metric));
}

/// Codes are given up where they tell little: where a twentieth of the rows is so much longer that they are cut, and
/// where neighbours are nearer than what codes add. Rows of few dimensions have few hits.
TEST(CudaKernelSweep, GivesUpCodesThatHaveTooManyHits) {
    SKIP_WITHOUT_GPU();
    constexpr std::int64_t kN = 6000, kD = 100, kCentres = 40;
    const std::vector<float> of_few = rows_of_few_dimensions(kN, kD);
    for (const Metric metric : {Metric::L2, Metric::InnerProduct, Metric::Cosine})
        for (const int kind : {0, 1, 2}) {
            SCOPED_TRACE(testing::Message() << name_of(metric) << ", " << kind);
            const test::Vectors given = test::vectors_for(metric, kN, kD, DType::f32);
            std::vector<float> rows(std::size_t(kN * kD));
            copy_as_f32(given, 0, kN, rows.data());
            const std::vector<float> centres(rows.begin(), rows.begin() + kCentres * kD);
            for (std::int64_t i = 0; i < kN; ++i)
                for (std::int64_t c = 0; c < kD; ++c) {
                    float& x = rows[std::size_t(i * kD + c)];
                    if (kind == 0) x = of_few[std::size_t(i * kD + c)];
                    if (kind == 1 && i % 20 == 0) x *= 300;
                    if (kind == 2) x = centres[std::size_t(i % kCentres * kD + c)] + 0.05F * x;
                }
            const VectorView vectors{rows.data(), kN, kD, DType::f32, 0};
            const KnnGraph start = after_iterations(2, vectors, metric);
            SweepForm ended{};
            const KnnGraph graph = exact_in(std::nullopt, vectors, start, &ended);
            test::expect_valid_graph(graph, vectors);
            EXPECT_GE(test::Truth(vectors, metric).recall_of(graph), 0.999);
            const bool cut = kind == 1 && metric != Metric::Cosine;  // which makes all as long
            if (kind == 0 && metric != Metric::InnerProduct) EXPECT_EQ(int(ended), int(SweepForm::codes));
            if (cut || kind == 2) EXPECT_NE(int(ended), int(SweepForm::codes));
        }
}

/// A fifth of the rows has all others at about the same distance, as near to each other as float16 tells: a few rows
/// are compared in it with more places, all are in a finer form, unless there is no memory for it.
TEST(CudaKernelSweep, ComparesAllInAFinerFormWhereManyRowsAreCrowded) {
    SKIP_WITHOUT_GPU();
    constexpr std::int64_t kN = 5000, kD = 64;
    std::vector<float> rows(std::size_t(kN * kD));
    std::mt19937 random(1);
    for (std::int64_t i = 0; i < kN * kD; ++i)
        rows[std::size_t(i)] = std::normal_distribution<float>()(random) * (i / kD % 5 == 0 ? 1 : 0.001F);
    const VectorView vectors{rows.data(), kN, kD, DType::f32, 0};
    const KnnGraph start = after_iterations(2, vectors, Metric::L2);
    const test::Truth truth(vectors, Metric::L2);
    for (const std::size_t spare : {std::size_t(1) << 30, std::size_t(0)}) {
        SweepForm ended{};
        const KnnGraph graph = exact_in(std::nullopt, vectors, start, &ended, spare, SweepForm::halves);
        test::expect_valid_graph(graph, vectors);
        EXPECT_GE(truth.recall_of(graph), 0.9995);
        if (spare != 0) EXPECT_EQ(int(ended), int(SweepForm::split));
        if (spare == 0) EXPECT_NE(int(ended), int(SweepForm::split));
    }
}

/// Pairs are ruled out by projections of rows that these hold nearly all of, and not where they lose too much.
TEST(CudaKernelSweep, IsExactByProjections) {
    SKIP_WITHOUT_GPU();
    constexpr std::int64_t kN = 16000;
    constexpr std::size_t kSpare = std::size_t(1) << 30;
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (const auto& [d, metric] : {std::pair{300, Metric::L2}, {300, Metric::Cosine}, {700, Metric::Cosine}})
        for (const float beside : {0.0F, 0.01F, 1.0F}) {  // their components beside the few dimensions
            SCOPED_TRACE(testing::Message() << name_of(metric) << ", d = " << d << ", " << beside);
            std::vector<float> rows = rows_of_few_dimensions(kN, d);
            for (float& x : rows) x += beside * normal(random) + 2;  // far from the origin
            const VectorView vectors{rows.data(), kN, d, DType::f32, 0};
            const KnnGraph start = after_iterations(1, vectors, metric);
            SweepForm ended{};
            const KnnGraph graph = exact_in(std::nullopt, vectors, start, &ended, kSpare, SweepForm::projections),
                           wanted = exact_in(SweepForm::floats, vectors, start);
            // Between them, and in angles of so few rows, codes of all components may have fewer hits.
            if (beside == 0 && metric == Metric::L2) EXPECT_EQ(int(ended), int(SweepForm::projections));
            if (beside == 1) EXPECT_NE(int(ended), int(SweepForm::projections));
            test::expect_valid_graph(graph, vectors);
            for (std::int64_t i = 0; i < kN * graph.k(); ++i)
                ASSERT_FLOAT_EQ(graph.distances()[i], wanted.distances()[i]) << "object " << i / graph.k();
        }
}

/// Few rows have more neighbours within what codes add than places, which 256 objects do not show: more of them than
/// these are left, in another form and in the same memory.
TEST(CudaKernelSweep, ComparesInAnotherFormWhatCodesLeave) {
    SKIP_WITHOUT_GPU();
    constexpr std::int64_t kN = 18000, kD = 100, kClose = 260;
    std::vector<float> rows = rows_of_few_dimensions(kN, kD);
    std::mt19937 random(2);
    for (std::int64_t i = kD; i < kClose * kD; ++i)
        rows[std::size_t(i)] = rows[std::size_t(i % kD)] + std::uniform_real_distribution<float>(-1e-3F, 1e-3F)(random);
    const VectorView vectors{rows.data(), kN, kD, DType::f32, 0};
    const KnnGraph start = after_iterations(2, vectors, Metric::L2);
    SweepForm ended{};
    const KnnGraph graph = exact_in(std::nullopt, vectors, start, &ended, 0),
                   wanted = exact_in(SweepForm::floats, vectors, start, nullptr, 0);
    EXPECT_NE(int(ended), int(SweepForm::codes));
    test::expect_valid_graph(graph, vectors);
    for (std::int64_t i = 0; i < kN * graph.k(); ++i)
        ASSERT_FLOAT_EQ(graph.distances()[i], wanted.distances()[i]) << "object " << i / graph.k();
}

/// A sample's objects one part after the other, between which iterations have packed the rows as they want them.
TEST(CudaKernelSweep, PacksCodesAgainWhereOthersHavePackedTheRows) {
    SKIP_WITHOUT_GPU();
    constexpr std::int64_t kN = 6000, kD = 100;
    constexpr int kK = 10;
    constexpr u32 kObjects = 150;
    const std::vector<float> rows = rows_of_few_dimensions(kN, kD);
    const VectorView vectors{rows.data(), kN, kD, DType::f32, 0};
    const KnnGraph start = after_iterations(3, vectors, Metric::L2);
    const test::OnDevice<std::int32_t> ids(std::size_t(kN * kK), start.ids());
    HeapResources heap;
    const OwnedStream stream(heap);
    const detail::Input input{{vectors, {}}, {}};
    const SweptSet set(input, Metric::L2, heap, stream);
    GNND_CUDA(cudaStreamSynchronize(stream));
    PackingSpace packing(set.space(), vectors);
    const SweepSpace space = packing.space();
    GNND_CUDA(cudaDeviceSynchronize());
    Sweep sweep(space, kK, heap, stream);
    sweep.begin_with(SweepForm::codes);
    for (const std::int32_t first : {0, 3000}) {
        space.pack(SweepForm::halves);
        std::vector<std::int32_t> objects;
        for (u32 i = 0; i < kObjects; ++i) objects.push_back(first + 20 * std::int32_t(i));
        const Lists found = sweep.nearest_of(objects.data(), kObjects, reinterpret_cast<const u32*>(ids.get()), kK, kK);
        EXPECT_EQ(int(sweep.form()), int(SweepForm::codes));
        std::vector<float> distances(kObjects * kK);
        GNND_CUDA(cudaMemcpyAsync(distances.data(), found.distances, distances.size() * sizeof(float),
                                  cudaMemcpyDeviceToHost, stream));
        GNND_CUDA(cudaStreamSynchronize(stream));
        for (u32 i = 0; i < kObjects; ++i) {
            const std::vector<float> exact = nearest_by_definition(rows, kN, kD, objects[i], kK);
            for (int j = 0; j < kK; ++j)
                ASSERT_NEAR(distances[i * kK + u32(j)], exact[std::size_t(j)], 1e-5 * exact[std::size_t(j)])
                    << "object " << objects[i] << ", neighbour " << j;
        }
    }
}

/// Rows in the order of a walk, so that the columns that come first say little of those behind them; lists that hold
/// what is near, what is far, or nothing, so that some rows have far more hits than places.
TEST(CudaKernelSweep, FindsAsManyAsAreWantedFromAnyLists) {
    SKIP_WITHOUT_GPU();
    constexpr std::int64_t kN = 40000;
    constexpr int kK = 20;
    constexpr u32 kObjects = 300;
    const Wanted wanted{.whole = 50, .at = 6};
    std::int64_t d = 0;
    const std::vector<float> rows = benchs::make_hard("walk", kN, d);
    const VectorView vectors{rows.data(), kN, d, DType::f32, 0};
    std::vector<std::int32_t> near(std::size_t(kN * kK), -1), objects;
    for (std::int64_t i = 0; i < kN; ++i)
        for (int j = 0; j < kK && i % 3 != 0; ++j)
            near[std::size_t(i * kK + j)] = std::int32_t((i + (i % 3 == 1 ? 1 + j : kN / 2 + 100 * j)) % kN);
    for (u32 i = 0; i < kObjects; ++i) objects.push_back(std::int32_t(i * 7919LL % kN));
    const test::OnDevice<std::int32_t> ids(near);
    HeapResources heap;
    const OwnedStream stream(heap);
    const detail::Input input{{vectors, {}}, {}};
    const SweptSet set(input, Metric::L2, heap, stream);
    Sweep sweep(set.space(), kK, heap, stream);
    // All of them, then fewer in the same memory.
    for (const u32 first : {0u, 100u}) {
        const u32 count = kObjects - first;
        const Lists found =
            sweep.nearest_of(objects.data() + first, count, reinterpret_cast<const u32*>(ids.get()), kK, kK, wanted);
        std::vector<float> distances(count * kK);
        GNND_CUDA(cudaMemcpyAsync(distances.data(), found.distances, distances.size() * sizeof(float),
                                  cudaMemcpyDeviceToHost, stream));
        GNND_CUDA(cudaStreamSynchronize(stream));
        for (u32 i = 0; i < count; ++i) {
            const std::int64_t object = objects[first + i];
            const std::vector<float> exact = nearest_by_definition(rows, kN, d, object, kK);
            for (int j = 0; j < (i < wanted.whole ? kK : wanted.at); ++j)
                ASSERT_NEAR(distances[i * kK + u32(j)], exact[std::size_t(j)], 1e-5 * exact[std::size_t(j)])
                    << "object " << object << ", neighbour " << j;
        }
    }
}

}  // namespace
}  // namespace gnnd::cuda

// SPDX-License-Identifier: MIT
// Graphs and parameters that operations refuse on a GPU in the words of the CPU.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gnnd/error.h"
#include "tests/cuda_operations.h"
#include "tests/io_conditions.h"

namespace gnnd {
namespace {

using test::kCpu;
using test::kGpu;
using test::kOfEdges;
using test::message_of;
using test::OfEdges;
using test::random_graph;

class CudaOperationsErrors : public test::CudaOperations {};
INSTANTIATE_TEST_SUITE_P(All, CudaOperationsErrors, testing::ValuesIn(test::kMetrics), test::metric_name);

/// The same text from both.
template <class Operation, class Params>
void expect_refused(const Operation& operation, const KnnGraphView& graph, Params params) {
    params.device = kCpu;
    const std::string text = message_of<InvalidArgument>([&] { operation(graph, params, {}, nullptr); });
    EXPECT_NE(text, "nothing was thrown");
    params.device = kGpu;
    EXPECT_EQ(message_of<InvalidArgument>([&] { operation(graph, params, {}, nullptr); }), text);
}

TEST_P(CudaOperationsErrors, RefuseWhatTheCpuRefuses) {
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

}  // namespace
}  // namespace gnnd

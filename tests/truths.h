// SPDX-License-Identifier: MIT
#pragma once
/// \file truths.h
/// The two sources of exact neighbours, FAISS's flat search and gnnd's own comparison, against each other.

#include <gtest/gtest.h>

#include "faiss_ext/evaluate.h"
#include "gnnd/builder.h"
#include "tests/reference.h"

namespace gnnd::test {

/// Both give the same Recall@10 to a graph that is far from exact, of a sample on every metric and type, and of all
/// objects on every metric.
inline void expect_same_truths(const Device& device, const faiss_ext::Gpu& gpu) {
    constexpr std::int64_t kN = 2500, kD = 24;
    for (const Metric metric : kMetrics)
        for (const DType dtype : kDTypes) {
            SCOPED_TRACE(testing::Message() << name_of(metric) << ' ' << name_of(dtype));
            const Vectors vectors = vectors_for(metric, kN, kD, dtype);
            BuildParams params;
            params.k = 10;
            params.metric = metric;
            params.device = {Device::Kind::cpu, 0};
            params.recall = 0;
            params.iterations = 1;
            params.trees = 1;
            const KnnGraph graph = build(vectors, params).graph;
            params.device = device;
            const faiss_ext::VectorSource source(vectors, metric);
            for (const std::int64_t count : {std::int64_t(300), kN}) {
                if (count == kN && dtype != DType::f32) continue;
                const auto objects = faiss_ext::sample_objects(kN, count, 1);
                const KnnGraph truth = count == kN ? build_exact(vectors, params).graph
                                                   : exact_neighbors(vectors, objects.data(), count, params);
                const double expected = faiss_ext::recall(source, graph, 10, count, 1, gpu).value;
                EXPECT_GT(expected, 0.03);
                EXPECT_LT(expected, 0.99);
                // As far as the k-th but for the last bit may be one or the other.
                EXPECT_NEAR(faiss_ext::recall_against(source, graph, objects, truth, 10), expected,
                            1.0 / double(10 * count))
                    << count << " objects";
            }
        }
}

}  // namespace gnnd::test

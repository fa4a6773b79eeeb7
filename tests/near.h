// SPDX-License-Identifier: MIT
#pragma once
/// \file near.h
/// Graphs in shards whose plan is `near`, and what is expected of them.

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "gnnd/shards/manifest.h"
#include "tests/shard_fixture.h"
#include "tests/shard_recall.h"

namespace gnnd::test {

class Near : public Sharded {
  protected:
    Near() {
        params_.k = 10;
        params_.device = {Device::Kind::cpu, 0};
    }
    ShardParams near(int count, bool resume = false) const {
        ShardParams params = shards(count, resume);
        params.plan = MergePlan::near;
        return params;
    }
    /// Groups of 2-d vectors in a line, whose neighbours are in the same group or the next, in an order of chance.
    const io::VectorFile& make_line(std::int64_t n) {
        Vectors vectors(n, 2, DType::f32);
        std::mt19937 random(3);
        std::vector<std::int64_t> rows(static_cast<std::size_t>(n));
        std::iota(rows.begin(), rows.end(), 0);
        std::shuffle(rows.begin(), rows.end(), random);
        for (std::int64_t i = 0; i < n; ++i) {
            vectors.set(rows[std::size_t(i)], 0, float(i));
            vectors.set(rows[std::size_t(i)], 1, float(random() % 1000) / 1000);
        }
        return make_base(vectors.view());
    }
    /// Rows, ids and distances are those of the base, and what the build says of the recall is true.
    void expect_good(const ShardedStats& stats) const {
        const ShardedGraph graph(work());
        const KnnGraph all = read_all(graph);
        expect_valid_graph(all, base_->view());
        expect_recall(stats.recall, all);
        expect_same_recall(graph.recall(), stats.recall);
        EXPECT_GE(stats.recall.value, params_.recall);
        EXPECT_EQ(stats.stop, StopReason::recall);
        EXPECT_EQ(files().size(), std::size_t(graph.shards()) + 2) << "lists, manifest and lock";
    }
    /// The sample is one of places in the order, so that it is another one of rows; all are the same.
    void expect_recall(const RecallEstimate& recall, const KnnGraph& graph) const {
        constexpr std::int64_t kSample = 1024;
        if (base_->n() <= kSample) return expect_true_recall(recall, graph, base_->view(), params_, kSample);
        const double whole = Truth(base_->view(), params_.metric, all_objects()).recall_of(graph);
        EXPECT_EQ(recall.objects, kSample);
        EXPECT_GT(whole, recall.low - 0.001);
        EXPECT_LT(whole, recall.high + 0.001);
    }
    shards::Manifest manifest() const { return shards::Manifest::read(manifest_path()); }
};

}  // namespace gnnd::test

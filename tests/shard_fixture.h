// SPDX-License-Identifier: MIT
#pragma once
/// \file shard_fixture.h
/// Graphs in shards for tests: an executor that finds exact neighbours, a base file, and what the folder holds.

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/io/vector_file.h"
#include "gnnd/sharded.h"
#include "gnnd/shards/build.h"
#include "gnnd/shards/executor.h"
#include "gnnd/shards/manifest.h"
#include "tests/invariants.h"
#include "tests/paths.h"
#include "tests/shard_graph.h"
#include "tests/temp_dir.h"

namespace gnnd::test {

/// Compares everything with everything, so that a graph in shards must come out exact.
class ExactExecutor : public shards::HostExecutor {
  public:
    using HostExecutor::HostExecutor;

  protected:
    BuildStats build_graph(const VectorView& vectors, std::int32_t* ids, float* distances,
                           const Callbacks& callbacks) override {
        std::vector<std::int32_t> all(vectors.n);
        std::iota(all.begin(), all.end(), 0);
        const KnnGraph graph =
            exact_neighbors(vectors, all.data(), vectors.n, params_.k, params_.metric, params_.threads, callbacks);
        std::copy_n(graph.ids(), vectors.n * params_.k, ids);
        std::copy_n(graph.distances(), vectors.n * params_.k, distances);
        return {};
    }
    BuildStats merge_graphs(const Side& a, const Side& b, std::int32_t* ids, float* distances,
                            const Callbacks& callbacks) override {
        for (const Side* side : {&a, &b}) {
            EXPECT_EQ(side->local.n, side->vectors.n);
            check_structure(side->local);
        }
        const std::size_t row = std::size_t(a.vectors.row_bytes());
        std::vector<std::byte> both(std::size_t(a.vectors.n + b.vectors.n) * row);
        std::memcpy(both.data(), a.vectors.data, std::size_t(a.vectors.n) * row);
        std::memcpy(both.data() + std::size_t(a.vectors.n) * row, b.vectors.data, std::size_t(b.vectors.n) * row);
        const VectorView all{both.data(), a.vectors.n + b.vectors.n, a.vectors.d, a.vectors.dtype, 0};
        return ExactExecutor::build_graph(all, ids, distances, callbacks);
    }
};

inline std::unique_ptr<shards::Executor> exact_executor(shards::Store& store, const BuildParams& params,
                                                        const shards::ExecutorOptions& options) {
    return std::make_unique<ExactExecutor>(store, params, options);
}

/// Calls a function at the beginning of each task, from within it.
class HookedExecutor : public ExactExecutor {
  public:
    using Hook = std::function<void(const Callbacks&)>;

    HookedExecutor(shards::Store& store, const BuildParams& params, const shards::ExecutorOptions& options, Hook hook)
        : ExactExecutor(store, params, options), hook_(std::move(hook)) {}

  protected:
    BuildStats build_graph(const VectorView& vectors, std::int32_t* ids, float* distances,
                           const Callbacks& callbacks) override {
        hook_(callbacks);
        return ExactExecutor::build_graph(vectors, ids, distances, callbacks);
    }
    BuildStats merge_graphs(const Side& a, const Side& b, std::int32_t* ids, float* distances,
                            const Callbacks& callbacks) override {
        hook_(callbacks);
        return ExactExecutor::merge_graphs(a, b, ids, distances, callbacks);
    }

  private:
    const Hook hook_;
};

inline shards::ExecutorFactory with_hook(const HookedExecutor::Hook& hook) {
    return [hook](shards::Store& store, const BuildParams& params, const shards::ExecutorOptions& options) {
        return std::make_unique<HookedExecutor>(store, params, options, hook);
    };
}

/// Stops at a task, from within it.
inline shards::ExecutorFactory failing_after(int& tasks) {
    return with_hook([&tasks](const Callbacks&) {
        if (tasks-- == 0) throw DeviceError("the device broke");
    });
}

/// What a task does that is not to end before the build is interrupted: whoever listens to the caller is another
/// thread, which may come to it late.
[[noreturn]] inline void wait_for_interrupt(const Callbacks& callbacks) {
    while (!callbacks.interrupt()) usleep(1000);
    throw Interrupted("stopped");
}

/// Interrupts a build by one worker when so many tasks are done.
class InterruptAfter {
  public:
    explicit InterruptAfter(int tasks) : left_(tasks) {}

    ShardCallbacks callbacks() {
        ShardCallbacks callbacks;
        callbacks.interrupt = [this] { return due_.load(); };
        return callbacks;
    }
    shards::ExecutorFactory executor() {
        return with_hook([this](const Callbacks& callbacks) {
            if (left_-- > 0) return;
            due_ = true;
            wait_for_interrupt(callbacks);
        });
    }

  private:
    int left_;
    std::atomic<bool> due_{false};
};

class Sharded : public testing::Test {
  protected:
    /// A file of vectors, and their view.
    const io::VectorFile& make_base(std::int64_t n, std::int64_t d = 12, DType dtype = DType::f32,
                                    Metric metric = Metric::L2) {
        params_.metric = metric;
        return make_base(vectors_for(metric, n, d, dtype).view());
    }
    const io::VectorFile& make_base(const VectorView& vectors) {
        const std::string path = dir_.file(vectors.dtype == DType::bf16 ? "base.bf16bin" : "base.npy");
        io::write_vectors(path, vectors);
        base_ = std::make_unique<io::VectorFile>(path);
        return *base_;
    }
    std::vector<std::int32_t> all_objects() const {
        std::vector<std::int32_t> all(std::size_t(base_->n()));
        std::iota(all.begin(), all.end(), 0);
        return all;
    }
    std::string work() const { return dir_.file("work"); }
    std::string manifest_path() const { return work() + "/" + shards::kManifestName; }
    ShardParams shards(int count, bool resume = false) const {
        ShardParams params;
        params.shards = count;
        params.work = work();
        params.resume = resume;
        params.checkpoint_seconds = 0;
        return params;
    }
    ShardedStats build(const ShardParams& params, const ShardCallbacks& callbacks = {},
                       const shards::ExecutorFactory& executor = exact_executor) const {
        return shards::build_with(*base_, params_, params, callbacks, executor);
    }
    /// The most bytes that were in the folder while a build went on.
    std::uint64_t most_bytes_of_a_build(const ShardParams& params, ShardedStats& stats) const {
        std::uint64_t most = 0;
        ShardCallbacks callbacks;
        callbacks.interrupt = [&] {
            most = std::max(most, bytes_of_files());
            return false;
        };
        stats = build(params, callbacks);
        return most;
    }
    /// Builds 1,000 objects in twelve shards, by one worker and by three, and checks that the folder holds what is
    /// planned at most.
    /// \param check  gets the plan, the most bytes that were there, and the report
    template <class Check>
    void expect_planned_disk(ShardParams params, const Check& check) {
        make_base(1000);
        params_.k = 20;
        params.shards = 12;
        for (const int workers : {1, 3}) {
            std::filesystem::remove_all(work());
            params.workers = workers;
            const ShardedPlan plan = plan_sharded(*base_, params_, params);
            EXPECT_EQ(plan.builds, 12);
            EXPECT_EQ(plan.merges, 66);
            ShardedStats stats;
            const std::uint64_t most = most_bytes_of_a_build(params, stats);
            EXPECT_LE(most, plan.disk);
            check(plan, most, stats);
        }
    }
    /// The finished graph against the exact one.
    void expect_exact() const {
        const KnnGraph graph = read_all(ShardedGraph(work()));
        const VectorView view = base_->view();
        expect_valid_graph(graph, view);
        const std::vector<std::int32_t> all = all_objects();
        const KnnGraph truth = exact_neighbors(view, all.data(), view.n, params_.k, params_.metric);
        for (std::int64_t i = 0; i < view.n * params_.k; ++i)
            ASSERT_EQ(graph.ids()[i], truth.ids()[i]) << "entry " << i;
    }
    std::vector<std::string> files() const {
        std::vector<std::string> names;
        for (const auto& entry : std::filesystem::directory_iterator(work())) names.push_back(entry.path().filename());
        std::sort(names.begin(), names.end());
        return names;
    }
    /// How long all files of the folder are, of which a build that goes on may remove any before it is asked for.
    std::uint64_t bytes_of_files() const {
        std::uint64_t bytes = 0;
        std::error_code gone;
        for (const auto& entry : std::filesystem::directory_iterator(work())) {
            const std::uint64_t size = entry.file_size(gone);
            if (!gone) bytes += size;
        }
        return bytes;
    }

    const io::VectorFile sample_{kSampleFile};
    const TempDir dir_;
    BuildParams params_;
    std::unique_ptr<io::VectorFile> base_;
};

}  // namespace gnnd::test

// SPDX-License-Identifier: MIT
// Graphs in shards of vectors that come from a function: as from a file, by whatever runs, and what it throws comes
// out.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gnnd/io/vector_reader.h"
#include "tests/shard_fixture.h"
#include "tests/shard_recall.h"

namespace gnnd::test {
namespace {

/// An error that is none of this library's.
struct OfTheFunction : std::runtime_error {
    using runtime_error::runtime_error;
};

class FromAFunction : public Sharded {
  protected:
    FromAFunction() {
        params_.k = 10;
        params_.device = {Device::Kind::cpu, 0};
        make_base(600);
    }
    /// The rows of the file, and whatever `at(call)` does at each call.
    io::VectorReader reader(const std::function<void(int)>& at = {}) {
        return {base_->n(), base_->d(), base_->dtype(),
                [&, at](std::int64_t begin, std::int64_t count, std::byte* out) {
                    const int call = calls_++;
                    if (at) at(call);
                    std::int64_t most = most_;
                    while (most < count && !most_.compare_exchange_weak(most, count)) continue;
                    base_->read(begin, count, out);
                }};
    }
    /// The rows of the file.
    io::ReadVectors reader_function() {
        return [&](std::int64_t begin, std::int64_t count, std::byte* out) { base_->read(begin, count, out); };
    }
    static io::VectorReader zeros(std::int64_t n, std::int64_t d, DType dtype) {
        return {n, d, dtype, [row = std::size_t(d) * size_of(dtype)](std::int64_t, std::int64_t count, std::byte* out) {
                    std::fill_n(out, std::size_t(count) * row, std::byte(0));
                }};
    }
    ShardParams planned(MergePlan plan, int count = 4, bool resume = false) const {
        ShardParams params = shards(count, resume);
        params.plan = plan;
        params.checkpoint_seconds = 60;
        return params;
    }
    ShardedStats build(const io::VectorReader& vectors, const ShardParams& params) const {
        return shards::build_with(vectors, params_, params, {}, exact_executor);
    }

    std::atomic<int> calls_{0};
    std::atomic<std::int64_t> most_{0};  ///< rows that were asked for at once
};

TEST_F(FromAFunction, IsTheGraphOfTheFile) {
    for (const MergePlan plan : kMergePlans)
        for (const int count : {1, 5}) {
            SCOPED_TRACE(testing::Message() << name_of(plan) << ", " << count << " shards");
            std::filesystem::remove_all(work());
            params_.recall = 0.995f;
            const ShardedStats stats = build(reader(), planned(plan, count));
            const ShardedGraph graph(work());
            expect_valid_graph(read_all(graph), base_->view());
            if (plan == MergePlan::all) expect_exact();
            EXPECT_GE(stats.recall.value, 0.995);
            EXPECT_EQ(stats.stop, StopReason::recall);
            EXPECT_EQ(graph.base(), "");
            EXPECT_EQ(graph.base_identity(), io::identify(*base_));
            graph.write(dir_.file("one.gnnd"));
            EXPECT_EQ(io::GraphFile(dir_.file("one.gnnd")).base(), io::identify(*base_));
        }
}

/// Recall and plan by the library's own builds.
TEST_F(FromAFunction, GivesWhatAFileGives) {
    params_.threads = 1;  // of more the order decides
    for (const MergePlan plan : kMergePlans) {
        std::filesystem::remove_all(work());
        const ShardedStats by_file = build_sharded(*base_, params_, planned(plan));
        const KnnGraph expected = read_all(ShardedGraph(work()));
        std::filesystem::remove_all(work());
        const ShardedStats stats = build_sharded(reader(), params_, planned(plan));
        const KnnGraph graph = read_all(ShardedGraph(work()));
        for (std::int64_t i = 0; i < graph.n() * graph.k(); ++i) ASSERT_EQ(graph.ids()[i], expected.ids()[i]) << i;
        expect_same_recall(stats.recall, by_file.recall);
        EXPECT_EQ(stats.merges, by_file.merges);
        EXPECT_EQ(plan_sharded(reader(), params_, planned(plan)).disk,
                  plan_sharded(*base_, params_, planned(plan)).disk);
    }
}

/// A function of the row, no row of which is anywhere. Its neighbours are the rows beside it.
TEST_F(FromAFunction, IsNeverAskedForAllOfIt) {
    constexpr std::int64_t kRows = 8000, kShards = 5, kDim = 16;
    std::atomic<std::int64_t> most{0};
    const io::VectorReader line(kRows, kDim, DType::f32, [&](std::int64_t begin, std::int64_t count, std::byte* out) {
        auto* const rows = reinterpret_cast<float*>(out);
        std::fill_n(rows, count * kDim, 0.f);
        for (std::int64_t i = 0; i < count; ++i) {
            rows[kDim * i] = float(begin + i);
            rows[kDim * i + 1] = float((begin + i) % 7) / 16;
        }
        for (std::int64_t seen = most; seen < count && !most.compare_exchange_weak(seen, count);) continue;
    });
    const ShardedStats stats = build_sharded(line, params_, shards(int(kShards)));
    EXPECT_LE(most, kRows / kShards);
    EXPECT_GE(stats.recall.value, 0.99);
    const ShardedGraph graph(work());
    std::vector<std::int64_t> ids(10);
    std::vector<float> distances(10);
    for (const std::int64_t row : {1000, 1599, 1600, 7500}) {
        graph.read(row, 1, ids.data(), distances.data());
        for (const std::int64_t id : ids) EXPECT_LE(std::abs(id - row), 10);
    }
}

TEST_F(FromAFunction, GoesOnWithAnotherFunctionOrAFile) {
    for (const MergePlan plan : kMergePlans) {
        int tasks = 6;
        std::filesystem::remove_all(work());
        EXPECT_THROW(shards::build_with(reader(), params_, planned(plan), {}, failing_after(tasks)), DeviceError);
        ASSERT_TRUE(std::filesystem::exists(manifest_path()));
        const io::VectorReader others(base_->n(), base_->d(), base_->dtype(),
                                      [&](std::int64_t begin, std::int64_t count, std::byte* out) {
                                          base_->read(begin, count, out);
                                          out[0] ^= std::byte(1);
                                      });
        const auto refused = [&](const io::VectorReader& given) {
            return message_of<IoError>([&] { build(given, planned(plan, 4, true)); });
        };
        const std::string start = work() + ": holds a part of another graph: ";
        EXPECT_EQ(refused(others), start + "the base holds other vectors");
        const io::VectorReader fewer(base_->n() - 1, base_->d(), base_->dtype(), reader_function());
        EXPECT_EQ(refused(fewer), start + "the base's n is 600, asked for is 599");
        EXPECT_EQ(refused(zeros(base_->n(), 11, DType::f32)), start + "the base's d is 12, asked for is 11");
        EXPECT_EQ(refused(zeros(base_->n(), 12, DType::f16)), start + "the base's dtype is f32, asked for is f16");

        tasks = 2;
        EXPECT_THROW(shards::build_with(reader(), params_, planned(plan, 4, true), {}, failing_after(tasks)),
                     DeviceError);
        // The same rows in a file are the same base.
        EXPECT_GE(build(*base_, planned(plan, 4, true)).recall.value, 0.99);
        EXPECT_EQ(ShardedGraph(work()).base(), std::filesystem::absolute(base_->path()));
        const int before = calls_;
        EXPECT_EQ(build(reader(), planned(plan, 4, true)).progress.workers[0].done, 0);
        EXPECT_LE(calls_ - before, 64) << "what is finished reads what tells it from others";
    }
}

TEST_F(FromAFunction, WhatItThrowsComesOutAndIsGoneOnFrom) {
    for (const MergePlan plan : kMergePlans) {
        calls_ = 0;
        std::filesystem::remove_all(work());
        build(reader(), planned(plan));
        const int calls = calls_;
        ASSERT_GT(calls, 10);
        for (int failing = 0; failing < calls; failing += std::max(1, calls / 10)) {
            SCOPED_TRACE(testing::Message() << name_of(plan) << ", call " << failing);
            calls_ = 0;
            std::filesystem::remove_all(work());
            EXPECT_EQ(message_of<OfTheFunction>([&] {
                          build(reader([&](int call) {
                                    if (call >= failing) throw OfTheFunction("the shelf is empty");
                                }),
                                planned(plan));
                      }),
                      "the shelf is empty");
            EXPECT_GE(build(reader(), planned(plan, 4, true)).recall.value, 0.99);
        }
    }
}

TEST_F(FromAFunction, RowsThatChangeMeanwhileAreNoticed) {
    std::atomic<bool> changed = false;
    const io::VectorReader vectors(base_->n(), base_->d(), base_->dtype(),
                                   [&](std::int64_t begin, std::int64_t count, std::byte* out) {
                                       base_->read(begin, count, out);
                                       if (changed) out[0] ^= std::byte(1);
                                   });
    int begun = 0;
    const shards::ExecutorFactory changing = with_hook([&](const Callbacks&) { changed = ++begun == 10; });
    EXPECT_EQ(message_of<IoError>([&] { shards::build_with(vectors, params_, planned(MergePlan::all), {}, changing); }),
              "the base: changed while the graph was built: the base holds other vectors; build it in another folder");
}

TEST_F(FromAFunction, BadRowsAreNamed) {
    const io::VectorReader vectors(base_->n(), base_->d(), base_->dtype(),
                                   [&](std::int64_t begin, std::int64_t count, std::byte* out) {
                                       base_->read(begin, count, out);
                                       const std::int64_t bad = 377 - begin;
                                       if (bad >= 0 && bad < count)
                                           reinterpret_cast<float*>(out)[bad * base_->d()] = NAN;
                                   });
    for (const MergePlan plan : kMergePlans) {
        std::filesystem::remove_all(work());
        const std::string message =
            message_of<InvalidArgument>([&] { build_sharded(vectors, params_, planned(plan)); });
        const std::string row = plan == MergePlan::near ? "377" : "from 300 on: vector 77";
        EXPECT_NE(message.find(row), std::string::npos) << message;
    }
}

TEST_F(FromAFunction, RefusesWhatCannotBe) {
    const auto refused = [&](std::int64_t n, std::int64_t d, const io::ReadVectors& read) {
        return message_of<InvalidArgument>([&] { io::VectorReader(n, d, DType::f32, read); });
    };
    EXPECT_EQ(refused(0, 1, reader_function()), "VectorReader::n = 0, allowed are 1 to 1099511626752");
    EXPECT_EQ(refused(kMaxShardedObjects + 1, 1, reader_function()),
              "VectorReader::n = 1099511626753, allowed are 1 to 1099511626752");
    EXPECT_EQ(refused(1, kMaxDim + 1, reader_function()), "VectorReader::d = 1048577, allowed are 1 to 1048576");
    EXPECT_EQ(refused(1, 1, {}), "VectorReader: there is no function that reads");
    const io::VectorReader vectors = reader();
    for (const auto& [begin, count] : {std::pair<std::int64_t, std::int64_t>{-1, 1}, {600, 1}, {599, 2}, {3, -1}})
        EXPECT_EQ(
            message_of<InvalidArgument>([&] { vectors.read(begin, count, nullptr); }),
            "rows " + std::to_string(begin) + " + " + std::to_string(count) + " of the base are outside of 0 to 600");
    EXPECT_EQ(message_of<InvalidArgument>([&] { build_sharded(zeros(2, 3, DType::f32), params_, shards(3)); }),
              "ShardParams::shards = 3, the base has only 2 vectors");
}

}  // namespace
}  // namespace gnnd::test

// SPDX-License-Identifier: MIT
// Builds in shards that end before they are done, and what the next one goes on with.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "gnnd/error.h"
#include "gnnd/shards/manifest.h"
#include "tests/io_conditions.h"
#include "tests/shard_fixture.h"

namespace gnnd::test {
namespace {

TEST_F(Sharded, GoesOnAfterAFailureAnywhere) {
    make_base(120);
    params_.k = 8;
    for (int task = 0; task < 10; ++task) {
        std::filesystem::remove_all(work());
        int left = task;
        EXPECT_EQ(message_of<DeviceError>([&] { build(shards(4), {}, failing_after(left)); }), "the device broke");
        EXPECT_THROW(ShardedGraph{work()}, IoError);
        if (task > 0) {  // otherwise nothing is lost by starting anew
            EXPECT_THROW(build(shards(4)), IoError) << "without resume";
        }
        const ShardedStats stats = build(shards(4, true));
        EXPECT_EQ(stats.progress.tasks_done, 10);
        EXPECT_LE(stats.progress.workers[0].done, 11 - task) << "work was done twice";
        expect_exact();
    }
    const ShardedStats again = build(shards(4, true));
    EXPECT_EQ(again.progress.workers[0].done, 0);
}

/// As if the process had been killed long before a checkpoint: durable are only the lists of shards that have seen all
/// others. Their partners are built and merged again, and what is merged twice enters the lists of those partners only.
TEST_F(Sharded, GoesOnFromFinishedListsAlone) {
    make_base(120);
    params_.k = 8;
    for (int task = 0; task < 10; ++task) {
        std::filesystem::remove_all(work());
        int left = task;
        EXPECT_THROW(build(shards(4), {}, failing_after(left)), DeviceError);
        shards::Manifest manifest = shards::Manifest::read(manifest_path());
        int finished = 0;
        for (shards::ShardRecord& shard : manifest.shards) {
            shard.local.reset();
            if (shard.merged.size() == 3) {
                ++finished;
                continue;
            }
            shard.lists.reset();
            shard.merged.clear();
        }
        EXPECT_EQ(finished, task < 7 ? 0 : task < 9 ? 1 : 2) << task;  // shard 0, then 1
        manifest.write(manifest_path());
        build(shards(4, true));
        expect_exact();
    }
}

TEST_F(Sharded, AFailureKeepsWhatThereIs) {
    make_base(120);
    params_.k = 8;
    ShardParams params = shards(4);
    params.checkpoint_seconds = 1000;
    for (int task = 0; task < 10; ++task) {
        std::filesystem::remove_all(work());
        params.resume = false;
        int left = task;
        EXPECT_EQ(message_of<DeviceError>([&] { build(params, {}, failing_after(left)); }), "the device broke");
        params.resume = true;
        EXPECT_EQ(build(params).progress.workers[0].done, 10 - task);
        expect_exact();
    }
}

TEST_F(Sharded, WhatIsFinishedTakesNoDevice) {
    make_base(60);
    params_.k = 5;
    build(shards(3));
    params_.device = {Device::Kind::cuda, 1000};
    ShardParams params = shards(3, true);
    params.host_memory = 1;
    const ShardedStats stats = build(params, {}, [](auto&&...) -> std::unique_ptr<shards::Executor> {
        ADD_FAILURE() << "nothing is left to do";
        return nullptr;
    });
    EXPECT_EQ(stats.progress.tasks, 6);
    EXPECT_EQ(stats.progress.tasks_done, 6);
    EXPECT_EQ(stats.progress.seconds_left, 0);
    EXPECT_EQ(stats.progress.workers.size(), 1u);
    EXPECT_EQ(stats.written_bytes, ShardedGraph(work()).bytes());
}

/// Of a finished graph a shard's lists, whose local graph and those of its partners are gone by then: all are built,
/// and merged with this one only.
TEST_F(Sharded, ALostFileCostsWhatDependsOnIt) {
    make_base(150);
    params_.k = 6;
    build(shards(5));
    for (const std::string& name : files()) {
        if (!name.starts_with("lists-")) continue;
        std::filesystem::remove(work() + "/" + name);
        EXPECT_NE(message_of<IoError>([&] { ShardedGraph graph(work()); }).find(name), std::string::npos);
        EXPECT_EQ(build(shards(5, true)).progress.workers[0].done, 5 + 4) << name << " of 15 tasks";
        expect_exact();
    }
}

/// Of a half-finished one any file.
TEST_F(Sharded, AnyLostFileIsMadeAnew) {
    make_base(150);
    params_.k = 6;
    int left = 8;
    EXPECT_THROW(build(shards(5), {}, failing_after(left)), DeviceError);
    const std::string whole = work(), kept = dir_.file("kept");
    std::filesystem::copy(whole, kept);
    for (const std::string& name : files()) {
        if (name == shards::kManifestName) continue;
        std::filesystem::remove_all(whole);
        std::filesystem::copy(kept, whole);
        std::filesystem::remove(whole + "/" + name);
        EXPECT_LT(build(shards(5, true)).progress.workers[0].done, 15) << name;
        expect_exact();
    }
}

TEST_F(Sharded, InterruptKeepsWhatThereIs) {
    make_base(300);
    ShardParams params = shards(5);
    params.checkpoint_seconds = 1000;
    InterruptAfter four(4);
    EXPECT_THROW(build(params, four.callbacks(), four.executor()), Interrupted);
    params.resume = true;
    EXPECT_EQ(build(params).progress.workers[0].done, 11);
    expect_exact();
    ShardCallbacks callbacks;
    callbacks.progress = [](const ShardProgress&) { throw std::runtime_error("the caller's own"); };
    std::filesystem::remove_all(work());
    EXPECT_THROW(build(shards(3), callbacks), std::runtime_error);
}

// Lists are written while the rounds go on, and all that workers hold is in the store at the end.
TEST_F(Sharded, SeveralWorkersGoOnAfterAnInterruptAnywhere) {
    make_base(300);
    params_.k = 8;
    for (const double seconds : {0.0, 1000.0})
        for (int stop = 0; stop < 78; stop += 7) {  // of 12 + 66 tasks
            std::filesystem::remove_all(work());
            ShardParams params = shards(12);
            params.workers = 3;
            params.checkpoint_seconds = seconds;
            int done = 0;
            ShardCallbacks callbacks;
            callbacks.progress = [&](const ShardProgress& progress) { done = progress.tasks_done; };
            callbacks.interrupt = [&] { return done >= stop; };
            try {
                build(params, callbacks);
            } catch (const Interrupted&) {
                params.resume = true;
                build(params);
            }
            expect_exact();
        }
}

TEST_F(Sharded, OnlyTheSameGraphIsResumed) {
    make_base(60);
    params_.k = 5;
    build(shards(2));
    const auto message = [&](int count = 2) { return message_of<IoError>([&] { build(shards(count, true)); }); };
    const std::string start = work() + ": holds a part of another graph: ";
    EXPECT_EQ(message(), "nothing was thrown");
    EXPECT_EQ(message(3), start + "the number of shards is 2, asked for is 3");
    params_.k = 6;
    EXPECT_EQ(message(), start + "k is 5, asked for is 6");
    params_.k = 5;
    params_.seed = 9;
    EXPECT_EQ(message(), start + "seed is 1234, asked for is 9");
    params_ = {};
    params_.k = 5;
    params_.threads = 1;
    EXPECT_EQ(message(), "nothing was thrown");
    const std::string moved = dir_.file("moved.npy");
    std::filesystem::rename(base_->path(), moved);
    base_ = std::make_unique<io::VectorFile>(moved);
    EXPECT_EQ(message(), "nothing was thrown") << "the same file under another name";
    make_base(60);
    EXPECT_EQ(message().rfind(start + "the base file was written to since", 0), 0u) << message();
    make_base(61);
    EXPECT_EQ(message(), start + "the base's n is 60, asked for is 61");
    EXPECT_EQ(message_of<IoError>([&] { build(shards(2)); }),
              work() + ": holds a graph in shards, or a part of one; resume it, or take another folder");
}

/// A mended base is another one, which no resumed build takes.
TEST_F(Sharded, AFolderInWhichNothingWasFinishedIsStartedAnew) {
    Vectors bad = vectors_for(Metric::L2, 60, 12, DType::f32);
    bad.set(3, 0, NAN);
    make_base(bad.view());
    params_.k = 5;
    EXPECT_THROW(build(shards(2)), InvalidArgument);
    EXPECT_TRUE(std::filesystem::exists(manifest_path()));
    make_base(60);
    EXPECT_THROW(build(shards(2, true)), IoError);
    build(shards(2));
    expect_exact();
}

/// Its size and time are as they were.
TEST_F(Sharded, ABaseWithOtherVectorsIsNoticed) {
    make_base(60);
    params_.k = 5;
    build(shards(2));
    const auto time = std::filesystem::last_write_time(base_->path());
    std::string bytes = read_bytes(base_->path());
    bytes[bytes.size() / 2] ^= 1;
    write_bytes(base_->path(), bytes);
    std::filesystem::last_write_time(base_->path(), time);
    EXPECT_EQ(ShardedGraph(work()).base_identity(), identify(*base_));
    base_ = std::make_unique<io::VectorFile>(base_->path());
    EXPECT_NE(ShardedGraph(work()).base_identity(), identify(*base_));
    const std::string message = work() + ": holds a part of another graph: the base holds other vectors";
    EXPECT_EQ(message_of<IoError>([&] { build(shards(2, true)); }), message);
    // An older manifest does not tell. From then on it does.
    shards::Manifest manifest = shards::Manifest::read(manifest_path());
    manifest.base.checksum.reset();
    manifest.write(manifest_path());
    EXPECT_FALSE(ShardedGraph(work()).base_identity());
    std::filesystem::remove(work() + "/" + manifest.shards[0].lists->name);
    build(shards(2, true));
    EXPECT_TRUE(shards::Manifest::read(manifest_path()).base.checksum);
}

TEST_F(Sharded, ABaseThatChangesMeanwhileIsNoticed) {
    make_base(60);
    params_.k = 5;
    int begun = 0;
    const shards::ExecutorFactory touching = with_hook([&](const Callbacks&) {
        if (++begun == 3)
            std::filesystem::last_write_time(base_->path(), std::filesystem::file_time_type::clock::now());
    });
    const std::string message = message_of<IoError>([&] { build(shards(2), {}, touching); });
    EXPECT_EQ(message, base_->path() + ": changed while the graph was built: the base file was written to since; " +
                           "build it in another folder");
    EXPECT_NE(message_of<IoError>([&] { ShardedGraph graph(work()); }).find("not finished"), std::string::npos);
    EXPECT_NE(message_of<IoError>([&] { build(shards(2, true)); }).find("was written to since"), std::string::npos);
}

}  // namespace
}  // namespace gnnd::test

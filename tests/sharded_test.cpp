#include "gnnd/sharded.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/io/graph_file.h"
#include "gnnd/shards/folder.h"
#include "tests/io_conditions.h"
#include "tests/shard_fixture.h"

namespace gnnd::test {
namespace {

using Sizes = std::tuple<int, int, int, int>;  // n, shards, workers, k

class ShardedSizes : public Sharded, public testing::WithParamInterface<Sizes> {};

TEST_P(ShardedSizes, GiveTheGraphOfTheWhole) {
    const auto [n, count, workers, k] = GetParam();
    make_base(n);
    params_.k = k;
    ShardParams params = shards(count);
    params.workers = workers;
    const ShardedStats stats = build(params);
    expect_exact();
    EXPECT_EQ(stats.progress.tasks, count + count * (count - 1) / 2);
    EXPECT_EQ(stats.progress.tasks_done, stats.progress.tasks);
    EXPECT_EQ(int(stats.progress.workers.size()), workers);
    EXPECT_EQ(files().size(), std::size_t(count) + 2) << "lists, manifest and lock";
    const ShardedGraph graph(work());
    EXPECT_EQ(graph.shards(), count);
    EXPECT_EQ(graph.bytes(), stats.written_bytes);
}

INSTANTIATE_TEST_SUITE_P(Cpu, ShardedSizes,
                         testing::Values(Sizes{500, 1, 1, 10}, Sizes{500, 2, 1, 10}, Sizes{501, 3, 1, 10},
                                         Sizes{503, 7, 1, 33}, Sizes{503, 7, 3, 10}, Sizes{400, 9, 2, 40},
                                         Sizes{7, 7, 1, 5}, Sizes{13, 7, 2, 20}, Sizes{2, 2, 1, 1}, Sizes{2, 1, 1, 3},
                                         Sizes{2, 2, 4, 1}, Sizes{30, 4, 1, 64}, Sizes{400, 16, 4, 10},
                                         Sizes{410, 21, 2, 10}));

TEST_F(Sharded, EveryMetricAndType) {
    for (const Metric metric : {Metric::L2, Metric::InnerProduct, Metric::Cosine, Metric::ChiSquare})
        for (const DType dtype : {DType::u8, DType::f16, DType::i8}) {
            if (metric == Metric::ChiSquare && dtype == DType::i8) continue;
            SCOPED_TRACE(testing::Message() << name_of(metric) << " " << name_of(dtype));
            make_base(200, 9, dtype, metric);
            params_.k = 8;
            std::filesystem::remove_all(work());
            build(shards(3));
            expect_exact();
        }
}

TEST_F(Sharded, RowsAreReadAcrossShards) {
    make_base(100);
    params_.k = 6;
    build(shards(7));
    const ShardedGraph graph(work() + "/manifest.json");
    EXPECT_EQ(graph.n(), 100);
    EXPECT_EQ(graph.k(), 6);
    EXPECT_EQ(graph.metric(), Metric::L2);
    EXPECT_EQ(graph.dtype(), DType::f32);
    const KnnGraph whole = read_all(graph);
    for (const auto& [begin, count] : {std::pair{0, 1}, {13, 2}, {14, 30}, {99, 1}, {5, 0}, {3, 97}}) {
        std::vector<std::int64_t> ids(std::size_t(count) * 6);
        std::vector<float> distances(ids.size());
        graph.read(begin, count, ids.data(), distances.data());
        EXPECT_TRUE(std::equal(ids.begin(), ids.end(), whole.ids_of(begin)));
        EXPECT_TRUE(std::equal(distances.begin(), distances.end(), whole.distances_of(begin)));
    }
    std::int64_t id = 0;
    float distance = 0;
    EXPECT_THROW(graph.read(100, 1, &id, &distance), InvalidArgument);
    EXPECT_TRUE(ShardedGraph::is_one(work()));
    EXPECT_TRUE(ShardedGraph::is_one(work() + "/manifest.json"));
    EXPECT_FALSE(ShardedGraph::is_one(dir_.path()));
    EXPECT_FALSE(ShardedGraph::is_one(base_->path()));
}

/// Stops at a task, from within it.
class FailingExecutor : public ExactExecutor {
  public:
    FailingExecutor(shards::Store& store, const BuildParams& params, const shards::Share& share, int& tasks_left)
        : ExactExecutor(store, params, share), tasks_left_(tasks_left) {}

  protected:
    BuildStats build_graph(const VectorView& vectors, std::int32_t* ids, float* distances,
                           const Callbacks& callbacks) override {
        fail_if_due();
        return ExactExecutor::build_graph(vectors, ids, distances, callbacks);
    }
    BuildStats merge_graphs(const Side& a, const Side& b, std::int32_t* ids, float* distances,
                            const Callbacks& callbacks) override {
        fail_if_due();
        return ExactExecutor::merge_graphs(a, b, ids, distances, callbacks);
    }

  private:
    void fail_if_due() {
        if (tasks_left_-- == 0) throw DeviceError("the device broke");
    }
    int& tasks_left_;
};

shards::ExecutorFactory failing_after(int& tasks) {
    return [&tasks](shards::Store& store, const BuildParams& params, const shards::Share& share) {
        return std::make_unique<FailingExecutor>(store, params, share, tasks);
    };
}

TEST_F(Sharded, GoesOnAfterAFailureAnywhere) {
    make_base(120);
    params_.k = 8;
    for (int task = 0; task < 10; ++task) {
        std::filesystem::remove_all(work());
        int left = task;
        EXPECT_EQ(message_of<DeviceError>([&] { build(shards(4), {}, failing_after(left)); }), "the device broke");
        EXPECT_THROW(ShardedGraph{work()}, IoError);
        EXPECT_THROW(build(shards(4)), IoError) << "without resume";
        const ShardedStats stats = build(shards(4, true));
        EXPECT_EQ(stats.progress.tasks_done, 10);
        EXPECT_LE(stats.progress.workers[0].done, 11 - task) << "work was done twice";
        expect_exact();
    }
    const ShardedStats again = build(shards(4, true));
    EXPECT_EQ(again.progress.workers[0].done, 0);
}

/// Durable by then are only the lists of shards that have seen all others. Their partners are built and merged again,
/// and what is merged twice enters the lists of those partners only.
TEST_F(Sharded, GoesOnFromFinishedListsAlone) {
    make_base(120);
    params_.k = 8;
    for (int task = 0; task < 10; ++task) {
        std::filesystem::remove_all(work());
        int left = task;
        ShardParams params = shards(4);
        params.checkpoint_seconds = 1e9;
        EXPECT_THROW(build(params, {}, failing_after(left)), DeviceError);
        const std::vector<std::string> names = files();
        const auto count = [&](const char* what) {
            return std::count_if(names.begin(), names.end(), [&](const auto& name) { return name.starts_with(what); });
        };
        EXPECT_EQ(count("local"), 0);
        EXPECT_EQ(count("lists"), task < 7 ? 0 : task < 9 ? 1 : 2) << task;  // of shard 0, then of 1
        params.resume = true;
        build(params);
        expect_exact();
    }
}

TEST_F(Sharded, InterruptKeepsWhatThereIs) {
    make_base(300);
    ShardParams params = shards(5);
    params.checkpoint_seconds = 1000;
    int done = 0;
    ShardCallbacks callbacks;
    callbacks.progress = [&](const ShardProgress& progress) { done = progress.tasks_done; };
    callbacks.interrupt = [&] { return done >= 4; };
    EXPECT_THROW(build(params, callbacks), Interrupted);
    params.resume = true;
    const ShardedStats stats = build(params);
    EXPECT_LE(stats.progress.workers[0].done, 11);
    expect_exact();
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

TEST_F(Sharded, ProgressAddsUp) {
    make_base(300);
    std::vector<ShardProgress> seen;
    ShardCallbacks callbacks;
    callbacks.progress = [&](const ShardProgress& progress) { seen.push_back(progress); };
    ShardParams params = shards(4);
    params.workers = 2;
    build(params, callbacks);
    ASSERT_GE(seen.size(), 2u);
    EXPECT_EQ(seen.front().tasks_done, 0);
    EXPECT_LT(seen.front().seconds_left, 0);
    for (std::size_t i = 1; i < seen.size(); ++i) {
        EXPECT_GE(seen[i].tasks_done, seen[i - 1].tasks_done);
        int done = 0;
        for (const WorkerProgress& worker : seen[i].workers) done += worker.done;
        EXPECT_EQ(done, seen[i].tasks_done);
    }
    EXPECT_EQ(seen.back().tasks_done, seen.back().tasks);
    EXPECT_EQ(seen.back().seconds_left, 0);
    EXPECT_GT(seen.back().bytes_read, 0u);
    EXPECT_GT(seen.back().bytes_written, 0u);
}

// With the least memory, with what overlapping takes, and with all there is, the graph is the same.
TEST_F(Sharded, HostMemoryStaysWithinItsBound) {
    make_base(1000);
    params_.k = 20;
    params_.device.kind = Device::Kind::cpu;
    for (const int workers : {1, 2}) {
        ShardParams params = shards(8);
        params.workers = workers;
        const ShardedPlan plan = plan_sharded(*base_, params_, params);
        params.host_memory = std::int64_t(plan.host) - 1;
        EXPECT_EQ(message_of<Error>([&] { build(params); }),
                  "host memory: " + std::to_string(plan.host) + " bytes are needed for 8 shards, allowed are " +
                      std::to_string(plan.host - 1) + "; more shards need less");
        std::uint64_t read = ~std::uint64_t(0);
        for (const std::uint64_t bound : {plan.host, plan.host_overlapped, 2 * plan.host_overlapped}) {
            std::filesystem::remove_all(work());
            params.host_memory = std::int64_t(bound);
            params.checkpoint_seconds = 1000;
            const ShardedStats stats = build(params);
            EXPECT_LE(stats.peak_host_bytes, bound);
            EXPECT_LE(stats.progress.bytes_read, read) << "more memory, more reading";
            read = stats.progress.bytes_read;
            expect_exact();
        }
    }
}

TEST_F(Sharded, AsFewAsThereIsHostMemoryFor) {
    make_base(1000);
    params_.k = 20;
    params_.device.kind = Device::Kind::cpu;
    const auto need = [&](int count) { return plan_sharded(*base_, params_, shards(count)).host; };
    ShardParams params = shards(0);
    EXPECT_EQ(plan_sharded(*base_, params_, params).builds, 1);
    for (const int wanted : {5, 9}) {
        std::filesystem::remove_all(work());
        params.resume = false;
        params.host_memory = std::int64_t(need(wanted));
        int fewest = 1;
        while (need(fewest) > need(wanted)) ++fewest;
        EXPECT_EQ(build(params).shards, fewest);
        expect_exact();
        params.resume = true;
        params.host_memory = 0;
        EXPECT_EQ(build(params).shards, fewest) << "as many as it has";
    }
    params.work = dir_.file("other");
    params.host_memory = 1000;
    EXPECT_EQ(message_of<Error>([&] { build(params); }),
              "no number of shards up to 1000 fits the memory that is allowed or free");
}

// With the real builders instead of exact ones.
TEST_F(Sharded, AreAsGoodAsOneBuild) {
    VectorView sample = sample_.view();
    sample.n = sized(6000);
    const io::VectorFile& base = make_base(sample);
    const std::vector<std::int32_t> objects = all_objects();
    for (const int k : {10, 32}) {
        params_.k = k;
        const KnnGraph truth = exact_neighbors(base.view(), objects.data(), base.n(), k, Metric::L2);
        const double one = recall_at(gnnd::build(base.view(), params_).graph, truth, objects, 10);
        for (const int count : {1, 2, 3, 7}) {
            std::filesystem::remove_all(work());
            const ShardParams params = shards(count);
            const ShardedStats stats = build_sharded(base, params_, params);
            const KnnGraph graph = read_all(ShardedGraph(work()));
            expect_valid_graph(graph, base.view());
            EXPECT_GE(recall_at(graph, truth, objects, 10), one - 0.01) << count << " shards, k = " << k;
            EXPECT_LE(stats.peak_work_bytes, plan_sharded(base, params_, params).work);
        }
    }
}

TEST_F(Sharded, DiskNeedIsWhatIsTaken) {
    make_base(1000);
    params_.k = 20;
    for (const int workers : {1, 3}) {
        std::filesystem::remove_all(work());
        ShardParams params = shards(12);
        params.workers = workers;
        const ShardedPlan plan = plan_sharded(*base_, params_, params);
        EXPECT_EQ(plan.builds, 12);
        EXPECT_EQ(plan.merges, 66);
        std::uint64_t most = 0;
        ShardCallbacks callbacks;
        callbacks.interrupt = [&] {
            std::uint64_t bytes = 0;
            std::error_code ignored;
            for (const auto& entry : std::filesystem::directory_iterator(work())) {
                const std::uint64_t size = entry.file_size(ignored);
                if (!ignored) bytes += size;
            }
            most = std::max(most, bytes);
            return false;
        };
        const ShardedStats stats = build(params, callbacks);
        EXPECT_LE(most, plan.disk);
        EXPECT_GE(plan.disk, stats.written_bytes);
        EXPECT_LE(plan.disk, 3 * stats.written_bytes + 200000);
    }
}

TEST_F(Sharded, ADiskThatIsTooSmallIsToldAtTheStart) {
    const std::string path = dir_.file("sparse.u8bin");
    write_bytes(path, bytes_of({2000000000, 1}));
    std::filesystem::resize_file(path, 8 + 2000000000ull);  // which takes no room
    base_ = std::make_unique<io::VectorFile>(path);
    params_.k = 1024;
    ShardParams params = shards(100);
    params.host_memory = std::int64_t(1) << 60;
    const std::string message = message_of<IoError>([&] { build(params); });
    EXPECT_EQ(message.rfind(work() + ": the disk is too small: ", 0), 0u) << message;
    EXPECT_NE(message.find(std::to_string(plan_sharded(*base_, params_, params).disk) + " bytes are needed, "),
              std::string::npos)
        << message;
    EXPECT_EQ(files(), std::vector<std::string>{"lock"});
}

TEST_F(Sharded, ADiskThatIsFullAnywhere) {
    make_base(600, 4);
    params_.k = 10;
    int failures = 0;
    for (rlim_t room = 0; room <= 18000; room += 600) {
        std::filesystem::remove_all(work());
        try {
            const FullDisk disk(room);
            build(shards(3));
        } catch (const IoError& error) {
            ++failures;
            EXPECT_NE(std::string(error.what()).find("File too large"), std::string::npos) << error.what();
            EXPECT_NE(std::string(error.what()).find(work()), std::string::npos) << error.what();
        }
        for (const std::string& name : files()) EXPECT_EQ(name.find(".tmp."), std::string::npos) << name;
        build(shards(3, true));
        expect_exact();
    }
    EXPECT_GT(failures, 20);
    EXPECT_LT(failures, 31);
}

/// Builds until so many tasks are durable.
void stop_after(int tasks, ShardCallbacks& callbacks, int& done) {
    callbacks.progress = [&done](const ShardProgress& progress) { done = progress.tasks_done; };
    callbacks.interrupt = [&done, tasks] { return done >= tasks; };
}

TEST_F(Sharded, AlteredFilesAreNoticedAndNamed) {
    make_base(60);
    params_.k = 4;
    ShardCallbacks callbacks;
    int done = 0;
    // Slow enough to be stopped in the middle.
    class Slow : public ExactExecutor {
      public:
        using ExactExecutor::ExactExecutor;

      protected:
        BuildStats merge_graphs(const Side& a, const Side& b, std::int32_t* ids, float* distances,
                                const Callbacks& hooks) override {
            for (int i = 0; i < 10 && !hooks.interrupt(); ++i) usleep(10000);
            if (hooks.interrupt()) throw Interrupted("stopped");
            return ExactExecutor::merge_graphs(a, b, ids, distances, hooks);
        }
    };
    stop_after(4, callbacks, done);
    EXPECT_THROW(build(shards(3), callbacks,
                       [](shards::Store& store, const BuildParams& p, const shards::Share& share) {
                           return std::make_unique<Slow>(store, p, share);
                       }),
                 Interrupted);
    const auto is_noticed = [&](const std::string& name, const auto& use) {
        const std::string path = work() + "/" + name, bytes = read_bytes(path);
        const std::size_t step = bytes.size() > 3000 ? 37 : 7;  // graph_file_test and shard_manifest_test try every one
        for (std::size_t i = 0; i < bytes.size(); i += step) {
            std::string altered = bytes;
            altered[i] = char(altered[i] ^ 1 << i % 8);
            write_bytes(path, altered);
            const std::string message = message_of<IoError>(use);
            ASSERT_NE(message.find(name), std::string::npos) << message << ": byte " << i << " of " << name;
        }
        write_bytes(path, bytes.substr(0, bytes.size() / 2));
        EXPECT_NE(message_of<IoError>(use).find(name), std::string::npos);
        std::filesystem::remove(path);
        EXPECT_TRUE(name == shards::kManifestName || message_of<IoError>(use).find(name) != std::string::npos);
        write_bytes(path, bytes);
    };
    const auto wanted = shards::Manifest::read(work() + "/" + shards::kManifestName);
    for (const std::string& name : files()) {
        if (name == "lock") continue;
        is_noticed(name, [&] {
            const shards::Folder folder(work(), wanted, true, 1);
            // Rows are verified when a task needs them: here all are.
            for (int i = 0; i < 3; ++i) {
                if (!wanted.shards[i].built()) continue;
                folder.open_local(i).read();
                folder.open_lists(i).read();
            }
        });
    }
    build(shards(3, true));
    expect_exact();
    for (const std::string& name : files())
        if (name != "lock") is_noticed(name, [&] { read_all(ShardedGraph(work())); });
}

TEST_F(Sharded, AnotherProcessIsKeptOut) {
    make_base(60);
    std::filesystem::create_directory(work());
    int ready[2], go[2];
    ASSERT_EQ(pipe(ready) | pipe(go), 0);
    const pid_t child = fork();
    if (child == 0) {
        const shards::FolderLock lock(work());
        char byte = 0;
        if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) < 0) _exit(1);
        pause();
        _exit(0);
    }
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    for (const bool resume : {false, true})
        EXPECT_EQ(message_of<IoError>([&] { build(shards(2, resume)); }),
                  work() + ": in use by process " + std::to_string(child));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (const int descriptor : {ready[0], ready[1], go[0], go[1]}) close(descriptor);
    EXPECT_TRUE(std::filesystem::exists(work() + "/lock")) << "what a killed process leaves";
    build(shards(2));
    expect_exact();
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

/// Writes to the base file when so many tasks are done.
TEST_F(Sharded, ABaseThatChangesMeanwhileIsNoticed) {
    make_base(60);
    params_.k = 5;
    ShardCallbacks callbacks;
    callbacks.progress = [&](const ShardProgress& progress) {
        if (progress.tasks_done == 2)
            std::filesystem::last_write_time(base_->path(), std::filesystem::file_time_type::clock::now());
    };
    const std::string message = message_of<IoError>([&] { build(shards(2), callbacks); });
    EXPECT_EQ(message, base_->path() + ": changed while the graph was built: the base file was written to since; " +
                           "build it in another folder");
    EXPECT_NE(message_of<IoError>([&] { ShardedGraph graph(work()); }).find("not finished"), std::string::npos);
    EXPECT_NE(message_of<IoError>([&] { build(shards(2, true)); }).find("was written to since"), std::string::npos);
}

TEST_F(Sharded, ABadVectorIsFound) {
    Vectors vectors = random_vectors(60, 8, DType::f32);
    vectors.set(43, 2, NAN);
    make_base(vectors.view());
    params_.device.kind = Device::Kind::cpu;
    EXPECT_EQ(message_of<InvalidArgument>([&] { build_sharded(*base_, params_, shards(3)); }),
              "of the vectors from 40 on: vector 3 holds NaN");
}

TEST_F(Sharded, FilesWithoutTheirManifestStay) {
    make_base(60);
    std::filesystem::create_directory(work());
    const std::string lists = work() + "/lists-00001.2.gnnd";
    write_bytes(lists, "dear");
    EXPECT_EQ(message_of<IoError>([&] { build(shards(2)); }),
              work() + ": holds lists-00001.2.gnnd of a graph in shards, but no manifest.json; take another folder");
    EXPECT_EQ(read_bytes(lists), "dear");
}

TEST_F(Sharded, ForeignFilesStay) {
    make_base(60);
    std::filesystem::create_directory(work());
    const std::vector<std::string> foreign{"lists-of-mine.gnnd", "local-1.gnnd.bak", "notes.txt", "lists-00000.gnnd",
                                           "local-00000.gnnd"};
    for (const std::string& name : foreign) write_bytes(work() + "/" + name, "mine");
    build(shards(2));
    for (const char* name :
         {"local-00000.9.gnnd", "lists-00001.77.gnnd", "lists-00001.3.gnnd.tmp.1.2", "manifest.json.tmp.5.6"})
        write_bytes(work() + "/" + name, "left behind");
    build(shards(2, true));
    EXPECT_EQ(files().size(), foreign.size() + 4);
    for (const std::string& name : foreign) EXPECT_EQ(read_bytes(work() + "/" + name), "mine");
}

TEST_F(Sharded, RefusesWhatCannotBe) {
    make_base(10);
    params_.k = 3;
    const auto message = [&](const auto& change) {
        ShardParams params = shards(2);
        change(params);
        return message_of<InvalidArgument>([&] { build(params); });
    };
    EXPECT_EQ(message([](ShardParams& p) { p.shards = -1; }),
              "ShardParams::shards (0: as few as fit) = -1, allowed are 0 to 1024");
    EXPECT_EQ(message([](ShardParams& p) { p.shards = 11; }),
              "ShardParams::shards = 11, " + base_->path() + " has only 10 vectors");
    EXPECT_EQ(message([](ShardParams& p) { p.work.clear(); }), "ShardParams::work is empty; it must name a folder");
    EXPECT_EQ(message([](ShardParams& p) { p.checkpoint_seconds = -1; }),
              "ShardParams::checkpoint_seconds = -1.000000, allowed are 0.000000 to 1000000000.000000");
    EXPECT_NE(message([](ShardParams& p) { p.workers = 65; }), "nothing was thrown");
    EXPECT_NE(message([](ShardParams& p) { p.host_memory = -1; }), "nothing was thrown");
    EXPECT_FALSE(std::filesystem::exists(work()));
    write_bytes(dir_.file("file"), "x");
    ShardParams params = shards(2);
    params.work = dir_.file("file");
    EXPECT_NE(message_of<IoError>([&] { build(params); }).find(params.work), std::string::npos);
}

}  // namespace
}  // namespace gnnd::test

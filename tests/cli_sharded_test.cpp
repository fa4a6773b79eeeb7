// SPDX-License-Identifier: MIT
// build --shards through the tool: what it says, and that nothing that ends it costs more than the work of the moment.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <random>
#include <thread>

#include "gnnd/builder.h"
#include "gnnd/io/graph_file.h"
#include "gnnd/sharded.h"
#include "tests/cli_fixture.h"
#include "tests/invariants.h"
#include "tests/shard_graph.h"

namespace gnnd::test {
namespace {

class CliSharded : public Cli {
  protected:
    /// On the CPU, if nothing else is asked for: the same every time, and slow enough to be disturbed.
    Arguments arguments(const Arguments& more = {}) const {
        Arguments all{"build", base(), "-k", "8", "--shards", "5", "--work", work(), "--checkpoint", "0"};
        if (std::find_if(more.begin(), more.end(), [](const auto& m) { return m.starts_with("--device"); }) ==
            more.end())
            all.insert(all.end(), {"--device", "cpu"});
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    std::string work() const { return file("work"); }
    void kill_builds(int times, const Arguments& more, const std::function<void()>& check);

    /// The finished graph, which must be a valid and a good one.
    KnnGraph good_graph() const {
        const io::VectorFile vectors(base());
        KnnGraph graph = read_all(ShardedGraph(work()));
        expect_valid_graph(graph, vectors.view());
        EXPECT_GT(Truth(vectors.view(), Metric::L2, 8).recall_of(graph), 0.99);
        return graph;
    }
};

TEST_F(CliSharded, IdsOf64BitsAreReadAsOthers) {
    good(arguments({"--id-bytes", "8"}));
    const KnnGraph graph = good_graph();
    const json info = good({"info", work(), "--json"}).parsed();
    EXPECT_EQ(info["id_bytes"], 8);
    EXPECT_EQ(info["entries"], 2000 * 8);
    EXPECT_GT(info["max_in_degree"], 8);
    EXPECT_GT(good({"eval", work(), base(), "--json"}).parsed()["recall"], 0.99);
    good({"convert", work(), file("one.gnnd")});
    EXPECT_TRUE(same_graph(io::GraphFile(file("one.gnnd")).read(), graph));
    EXPECT_FALSE(good({"info", file("one.gnnd"), "--json"}).parsed().contains("id_bytes"));
    EXPECT_TRUE(failed(run(arguments({"--resume", "--id-bytes", "4"})), 1,
                       "the number of bytes of an id is 8, asked for is 4"));
    EXPECT_TRUE(failed(run(arguments({"--id-bytes", "5"})), 2, "--id-bytes"));
}

/// A file of two rows that speaks of more objects than a graph in memory can have.
TEST_F(CliSharded, MoreObjectsThanMemoryCanHaveAreNamed) {
    const std::int64_t ids[4] = {1, 2'999'999'999, 0, -1};
    const float distances[4] = {1, 2, 1, INFINITY};
    io::write_graph(file("far.gnnd"), WideGraphView{2, 2, Metric::L2, ids, distances}, DType::u8, 3'000'000'000);
    const json info = good({"info", file("far.gnnd"), "--json"}).parsed();
    EXPECT_EQ(info["version"], 5);
    EXPECT_EQ(info["id_bytes"], 8);
    EXPECT_EQ(info["objects"], 3'000'000'000);
    EXPECT_EQ(info["entries"], 3);
    EXPECT_FALSE(info.contains("max_in_degree"));
    EXPECT_TRUE(failed(run({"convert", file("far.gnnd"), file("ids.ivecs")}), 1,
                       "is of 3000000000 objects; what works on a graph in memory takes 2147483647 at most"));
}

TEST_F(CliSharded, BuildsWhatTheOtherCommandsRead) {
    const json report = good(arguments({"--json", "--stats", file("s.json"), "--device", "auto"})).parsed();
    EXPECT_EQ(report["graph"], work());
    EXPECT_EQ(report["shards"], 5);
    EXPECT_EQ(report["tasks"], 15);
    EXPECT_EQ(report["params"]["k"], 8);
    EXPECT_EQ(report["workers"].size(), 1u);
    EXPECT_EQ(report["workers"][0]["tasks"], 15);
    EXPECT_EQ(json::parse(read_bytes(file("s.json"))), report);
    const KnnGraph graph = good_graph();
    good({"convert", work(), file("one.gnnd")});
    const json one = good({"info", file("one.gnnd"), "--json"}).parsed();
    EXPECT_EQ(one["n"], 2000);
    EXPECT_GT(good({"eval", file("one.gnnd"), base(), "--json"}).parsed()["recall"], 0.99);
    for (const std::string& path : {work(), work() + "/manifest.json"}) {
        const json info = good({"info", path, "--json"}).parsed();
        EXPECT_EQ(info["kind"], "graph in shards");
        EXPECT_EQ(info["n"], 2000);
        EXPECT_EQ(info["entries"], 16000);
        EXPECT_EQ(info["bytes"], report["graph_bytes"]);
        EXPECT_GT(good({"eval", path, base(), "--json"}).parsed()["recall"], 0.99);
        EXPECT_EQ(good({"eval", path, base(), "--json", "--queries", "50"}).parsed()["queries"], 50);
    }
    good({"convert", work(), file("ids.ivecs"), "--offset", "399", "--count", "3"});
    const io::VectorFile ids(file("ids.ivecs"));
    for (std::int64_t i = 0; i < 3; ++i) {
        std::vector<std::int32_t> row(8);
        ids.read(i, 1, row.data());
        EXPECT_TRUE(std::equal(row.begin(), row.end(), graph.ids_of(399 + i)));
    }
    good({"index", work(), base(), "--type", "hnsw", "-o", file("hnsw")});
    EXPECT_TRUE(failed(run({"eval", work(), base(1000)}), 1, "2000 rows"));

    std::string part;
    for (const auto& entry : std::filesystem::directory_iterator(work()))
        if (entry.path().filename().string().starts_with("lists-00002.")) part = entry.path();
    EXPECT_EQ(good({"info", part, "--json"}).parsed()["objects"], 2000);
    EXPECT_TRUE(failed(run({"eval", part, base()}), 1, "holds 400 rows of a graph of 2000 objects, not the whole"));
    EXPECT_TRUE(failed(run({"index", part, base(), "--type", "nsg", "-o", file("i")}), 1, "not the whole"));
}

TEST_F(CliSharded, TellsProgressAndPlan) {
    const Result result = good(arguments());
    EXPECT_TRUE(matches(result.err, "^0 of 15 tasks done, time left unknown, 0.00 GB read, 0.00 GB written\n"));
    EXPECT_TRUE(matches(result.err, "15 of 15 tasks done, 0 s left, [0-9.]+ GB read, [0-9.]+ GB written\n$"));
    EXPECT_TRUE(matches(result.out, "\ntasks +15, of 5 shards\n"));
    EXPECT_EQ(good(arguments({"--resume", "-q"})).err, "");
    std::filesystem::remove_all(work());
    EXPECT_TRUE(
        matches(good(arguments({"--devices", "cpu,cpu"})).err, "\n  cpu: [a-z0-9 ]+, [0-9]+ done, [0-9]+ left"));
    std::filesystem::remove_all(work());
    const json plan = good(arguments({"--dry-run", "--json"})).parsed();
    EXPECT_EQ(plan["builds"], 5);
    EXPECT_EQ(plan["merges"], 10);
    EXPECT_TRUE(matches(good(arguments({"--dry-run"})).out, "^shards      5\ntasks       5 builds, 10 merges\n"));
    EXPECT_FALSE(std::filesystem::exists(work()));
    EXPECT_TRUE(failed(run(arguments({"-q", "--host-memory", "1000"})), 1, "bytes are needed for 5 shards"));
}

// Without --shards as few as there is memory for.
TEST_F(CliSharded, ChoosesTheNumberOfShards) {
    const auto shards_with = [&](const std::string& memory) {
        Arguments tool{"build", base(), "-k", "8", "--work", work(), "--dry-run", "--json", "--device", "cpu"};
        if (!memory.empty()) tool.insert(tool.end(), {"--host-memory", memory});
        return good(tool).parsed()["builds"].get<int>();
    };
    EXPECT_EQ(shards_with(""), 1);
    const json one =
        good({"build", base(), "-k", "8", "--work", work(), "--shards", "1", "--dry-run", "--json", "--device", "cpu"})
            .parsed();
    EXPECT_GT(shards_with(std::to_string(one["host_least"].get<std::int64_t>() - 1)), 1);
    EXPECT_TRUE(failed(run({"build", base(), "--work", work(), "--host-memory", "1000"}), 1, "no number of shards"));
    const json report = good({"build", base(), "-k", "8", "--work", work(), "-q", "--json", "--recall", "0"}).parsed();
    EXPECT_EQ(report["shards"], 1);
    EXPECT_GT(report["params"]["samples"], 0) << "what was used";
    const json again =
        good({"build", base(), "-k", "8", "--work", work(), "--resume", "-q", "--json", "--recall", "0"}).parsed();
    EXPECT_EQ(again["params"], report["params"]) << "of a folder in which nothing is left to do";
}

TEST_F(CliSharded, RefusesWrongUsage) {
    EXPECT_TRUE(failed(run({"build", base(), "--shards", "2"}), 2, "--work"));
    EXPECT_TRUE(failed(run({"build", base(), "-o", "g", "--resume"}), 2, "--work"));
    EXPECT_TRUE(
        failed(run({"build", base(), "-o", "g", "--device-memory", "1MB", "--host-memory", "1GB"}), 2, "--work"));
    EXPECT_TRUE(failed(run(arguments({"-o", file("g")})), 2, "--output"));
    EXPECT_TRUE(failed(run(arguments({"--method", "exact"})), 2, "--work"));
    EXPECT_TRUE(failed(run(arguments({"--devices", "cpu,tpu"})), 2, "tpu"));
    EXPECT_TRUE(failed(run(arguments({"--checkpoint", "-1"})), 2, "--checkpoint"));
    EXPECT_TRUE(failed(run({"build", base(), "--work", work(), "--shards", "-1"}), 2, "shards"));
    EXPECT_TRUE(failed(run({"build", base(), "--work", work(), "--shards", "9999", "--dry-run"}), 2, "shards"));
    EXPECT_FALSE(std::filesystem::exists(work()));
    good(arguments());
    EXPECT_TRUE(failed(run(arguments()), 1, "resume it"));
    EXPECT_TRUE(failed(run({"build", base(), "-q", "-k", "9", "--shards", "5", "--work", work(), "--resume"}), 1,
                       "k is 8, asked for is 9"));
}

TEST_F(CliSharded, ASignalLeavesWhatResumeGoesOnWith) {
    Arguments slow = arguments({"-q", "--samples", "32", "--delta", "0"});  // 40 iterations, unless they converge
    int code = 0;
    for (int attempt = 0; attempt < 20 && code == 0;
         ++attempt) {  // what was through before the signal is started again
        std::filesystem::remove_all(work());
        const pid_t pid = spawn(slow);
        wait_until(pid, [&] { return std::filesystem::exists(work() + "/manifest.json"); });
        kill(pid, SIGINT);
        code = wait(pid);
    }
    EXPECT_EQ(code, -SIGINT);
    EXPECT_EQ(read_bytes(logs_.file("err")), "gnnd: interrupted; the same command with --resume goes on\n");
    EXPECT_TRUE(failed(run({"eval", work(), base()}), 1, "not finished: "));
    EXPECT_TRUE(failed(run({"info", work()}), 1, "shards are not built"));
    slow.push_back("--resume");
    good(slow);
    good_graph();
}

/// Kills builds at random moments and goes on, until so many were killed and some came to their end.
/// \param check  of each finished graph
void CliSharded::kill_builds(int times, const Arguments& more, const std::function<void()>& check) {
    const auto seconds_of = [&](const Arguments& tool) {
        const auto start = std::chrono::steady_clock::now();
        good(tool);
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    const auto with = [&](Arguments options) {
        options.insert(options.end(), more.begin(), more.end());
        return arguments(options);
    };
    std::filesystem::remove_all(work());  // a finished one would take no time
    const double starting = seconds_of({"--version"}), whole = seconds_of(with({"-q", "--resume"}));
    std::filesystem::remove_all(work());
    std::mt19937 random(20260610);
    int kills = 0, finished = 0, half_done = 0;
    double patience = 1;  // grows until a build ends, so that some do, however busy the machine is
    // Where much else goes on, many end before they have begun.
    while ((kills < times || finished < 3 || half_done <= times / 3) && kills < 20 * times && !HasFailure()) {
        Arguments tool = with({"-q", "--resume"});
        if (kills % 4 == 0) *std::find(tool.begin(), tool.end(), "0") = "60";
        const pid_t pid = spawn(tool);
        const double moment =
            starting / 2 + double(random() % 1000) / 1000 * std::max(whole - starting, 0.02) * 0.6 * patience;
        std::this_thread::sleep_for(std::chrono::duration<double>(moment));
        kill(pid, SIGKILL);
        const int code = wait(pid);
        if (code == -SIGKILL) {
            ++kills;
            patience *= 1.1;
            half_done += std::filesystem::exists(work() + "/manifest.json");
            continue;
        }
        ASSERT_EQ(code, 0) << read_bytes(logs_.file("err"));
        ++finished;
        patience = 1;
        check();
        std::filesystem::remove_all(work());
    }
    good(with({"-q", "--resume"}));
    check();
    EXPECT_GT(half_done, times / 3) << "kills that left something to go on with";
}

TEST_F(CliSharded, SurvivesBeingKilledAtAnyMoment) {
    good(arguments({"-q"}));
    const KnnGraph graph = good_graph();
    // Pairs are merged from what does not change, and on the CPU always in the same way: to the bit the same graph.
    kill_builds(60, {}, [&] { EXPECT_TRUE(same_graph(read_all(ShardedGraph(work())), graph)); });
}

// The merges that are left depend on what was durable, so that the graph is as good, but not the same.
TEST_F(CliSharded, OfNearPairsSurvivesBeingKilledAtAnyMoment) {
    kill_builds(40, {"--plan", "near"}, [&] { good_graph(); });
}

TEST_F(CliSharded, MergesNearPairsUntilTheRecallIsThere) {
    const json report = good(arguments({"--json", "-q", "--plan", "near"})).parsed();
    EXPECT_EQ(report["plan"], "near");
    EXPECT_LE(report["merges"], 10);
    EXPECT_EQ(report["tasks"], 5 + report["merges"].get<int>());
    EXPECT_GE(report["recall"], 0.99);
    good_graph();
    EXPECT_TRUE(failed(run(arguments({"-q", "--resume"})), 1, "the plan is near, asked for is all"));
    EXPECT_EQ(good(arguments({"-q", "--json", "--resume", "--plan", "near"})).parsed()["merges"], report["merges"]);
    std::filesystem::remove_all(work());
    EXPECT_TRUE(matches(good(arguments({"--dry-run", "--plan", "near"})).out,
                        "^shards      5\ntasks       5 builds, at most 10 merges\n"));
    for (const char* recall : {"0", "1"})
        EXPECT_TRUE(failed(run(arguments({"--plan", "near", "--recall", recall})), 2, "--plan near"));
    EXPECT_TRUE(failed(run(arguments({"--plan", "nearest"})), 2, "--plan"));
    EXPECT_TRUE(failed(run({"build", base(), "-o", file("g"), "--plan", "near"}), 2, "--work"));
    EXPECT_FALSE(std::filesystem::exists(work()));
}

}  // namespace
}  // namespace gnnd::test

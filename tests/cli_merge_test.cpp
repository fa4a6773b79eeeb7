// SPDX-License-Identifier: MIT
// merge and append through the tool: the graph, what it says about it, and what it refuses.

#include "gnnd/io/graph_file.h"
#include "tests/cli_fixture.h"
#include "tests/invariants.h"

namespace gnnd::test {
namespace {

class CliMerge : public Cli {
  protected:
    /// Rows [begin, begin + count) of the sample as a file of their own.
    std::string part(std::int64_t begin, std::int64_t count) const {
        const std::string path = file(std::to_string(begin) + "+" + std::to_string(count) + ".u8bin");
        if (!std::filesystem::exists(path))
            good({"convert", kSample, path, "--offset", std::to_string(begin), "--count", std::to_string(count)});
        return path;
    }

    std::string graph_of(const std::string& vectors, const std::string& k = "16",
                         const std::string& metric = "l2") const {
        const std::string path = vectors + "." + k + metric + ".gnnd";
        if (!std::filesystem::exists(path)) good({"build", vectors, "-k", k, "--metric", metric, "-o", path, "-q"});
        return path;
    }

    /// A valid graph over the sample's first rows, about as good as one build's.
    void expect_good_graph(const std::string& path, std::int64_t n, std::int64_t k, Metric metric = Metric::L2) const {
        const io::GraphFile graph(path);
        EXPECT_EQ(graph.k(), k);
        EXPECT_EQ(graph.metric(), metric);
        EXPECT_EQ(graph.dtype(), DType::u8);
        const std::string joined = part(0, n);
        expect_valid_graph(graph.read(), io::VectorFile(joined).view());
        EXPECT_GT(good({"eval", path, joined, "--json"}).parsed()["recall"], metric == Metric::L2 ? 0.98 : 0.95);
    }

    const std::string a_ = part(0, 3000), b_ = part(3000, 2000);
};

TEST_F(CliMerge, MergesTwoGraphs) {
    const std::string out = file("both.gnnd"), stats = file("stats.json");
    const Result result = good(
        {"merge", graph_of(a_), a_, graph_of(b_, "20"), b_, "-o", out, "--json", "--stats", stats, "--recall", "0"});
    EXPECT_TRUE(matches(result.err, "^iteration 0: changed .*phi[(]G[)]")) << result.err;
    expect_good_graph(out, 5000, 16);
    const json report = result.parsed();
    EXPECT_EQ(report, json::parse(read_bytes(stats)));
    EXPECT_EQ(report["graph"], out);
    EXPECT_EQ(report["graphs"], json({graph_of(a_), graph_of(b_, "20")}));
    EXPECT_EQ(report["bases"], json({a_, b_}));
    EXPECT_EQ(report["method"], "merge");
    EXPECT_EQ(report["n"], 5000);
    EXPECT_EQ(report["d"], 128);
    EXPECT_EQ(report["dtype"], "u8");
    EXPECT_EQ(report["params"]["k"], 16) << "the smaller one";
    EXPECT_EQ(report["params"]["metric"], "l2");
    EXPECT_EQ(report["iterations"].back()["phi"], report["phi"]);
    EXPECT_GT(report["seconds"], 0);
    EXPECT_GT(report["peak_memory_bytes"], report["peak_work_bytes"]);
}

TEST_F(CliMerge, TakesTheOptionsOfBuild) {
    const std::string out = file("both.gnnd");
    const Result result = good({"merge",
                                graph_of(a_, "16", "ip"),
                                a_,
                                graph_of(b_, "16", "ip"),
                                b_,
                                "-o",
                                out,
                                "-k",
                                "12",
                                "--samples",
                                "8",
                                "--list-size",
                                "40",
                                "--iterations",
                                "9",
                                "--delta",
                                "0.01",
                                "--init",
                                "random",
                                "--update",
                                "selective",
                                "--locks",
                                "list",
                                "--seed",
                                "7",
                                "--deterministic",
                                "--threads",
                                "1",
                                "--device",
                                "cpu",
                                "--trees",
                                "3",
                                "--quiet",
                                "--json",
                                "--device-memory",
                                "1GiB"});
    EXPECT_EQ(result.err, "");
    expect_good_graph(out, 5000, 12, Metric::InnerProduct);
    const json params = result.parsed()["params"];
    EXPECT_EQ(params["samples"], 8);
    EXPECT_EQ(params["list_size"], 40);
    EXPECT_EQ(params["iterations"], 9);
    EXPECT_EQ(params["init"], "random");
    EXPECT_EQ(params["update"], "selective");
    EXPECT_EQ(params["metric"], "ip");
    EXPECT_EQ(params["seed"], 7);
}

TEST_F(CliMerge, AppendsVectors) {
    const std::string out = file("all.gnnd");
    const Result result = good({"append", graph_of(a_), a_, b_, "-o", out, "--recall", "0"});
    expect_good_graph(out, 5000, 16);
    for (const std::string& part : {a_ + ": 3000 x 128 u8\n", b_ + ": 2000 x 128 u8\n", "graph       " + out + "\n"})
        EXPECT_NE(result.out.find(part), std::string::npos) << part << " is missing in\n" << result.out;
    // Both phases are shown.
    const std::size_t first = result.err.find("iteration 0: ");
    ASSERT_NE(first, std::string::npos);
    EXPECT_NE(result.err.find("\niteration 0: ", first), std::string::npos) << result.err;

    const json one =
        good({"append", out, part(0, 5000), part(5000, 1), "-o", file("one.gnnd"), "-k", "10", "-q", "--json"})
            .parsed();
    EXPECT_EQ(one["method"], "append");
    EXPECT_EQ(one["graphs"], json::array({out}));
    EXPECT_EQ(one["bases"], json({part(0, 5000), part(5000, 1)}));
    EXPECT_EQ(one["n"], 5001);
    expect_good_graph(file("one.gnnd"), 5001, 10);
}

TEST_F(CliMerge, AppendsByEitherMethod) {
    for (const std::string method : {"search", "merge"}) {
        const std::string out = file(method + ".gnnd");
        const json report = good({"append", graph_of(a_), a_, part(3000, 100), "-o", out, "-q", "--json", "--method",
                                  method, "--recall", "0"})
                                .parsed();
        EXPECT_EQ(report["stop"] == "searched", method == "search");
        EXPECT_NEAR(report["phi"], phi_of(out), 1e-6 * phi_of(out));
        expect_good_graph(out, 3100, 16);
    }
    const Result result = good({"append", graph_of(a_), a_, part(3000, 60), "-o", file("few.gnnd"), "--device", "cpu"});
    EXPECT_TRUE(matches(result.out, "\nbatches     1, stopped: searched")) << result.out;
    expect_good_graph(file("few.gnnd"), 3060, 16);
    EXPECT_TRUE(failed(run({"append", graph_of(a_), a_, b_, "-o", file("g"), "--method", "best"}), 2,
                       "unknown append method 'best'; known are auto, merge, search"));
}

TEST_F(CliMerge, AddsToAGraphInShardsAndInPlace) {
    const std::string work = file("work"), out = file("all.gnnd");
    good({"build", a_, "-k", "16", "--shards", "3", "--work", work, "-q"});
    good({"append", work, a_, b_, "-o", out, "-q"});
    expect_good_graph(out, 5000, 16);
    good({"append", out, part(0, 5000), part(5000, 100), "-o", out, "-q"});
    expect_good_graph(out, 5100, 16);
}

TEST_F(CliMerge, WarnsWhereOnlyTheFewLackTheRecall) {
    const std::string base = part(0, 5000), few = part(5000, 40);
    const test::Result result = good(
        {"merge", graph_of(base), base, graph_of(few), few, "-o", file("g"), "--iterations", "1", "--device", "cpu"});
    EXPECT_TRUE(matches(result.err,
                        "gnnd: warning: one of both sets has less than the recall of 0.99 asked for, together they "
                        "have Recall@10 0[.]99[0-9]+ [+]- 0[.][0-9]+, measured on [0-9,]+ objects"))
        << result.err;
}

TEST_F(CliMerge, RefusesWhatDoesNotFit) {
    const std::string ga = graph_of(a_), gb = graph_of(b_), twin = part(3000, 3000), out = file("g");
    const auto merged = [&](const std::string& g1, const std::string& b1, const std::string& g2,
                            const std::string& b2) {
        return run({"merge", g1, b1, g2, b2, "-o", out, "-q"});
    };
    const auto appended = [&](const std::string& g, const std::string& base, const std::string& added) {
        return run({"append", g, base, added, "-o", out, "-q"});
    };
    EXPECT_TRUE(failed(merged(a_, ga, b_, gb), 1, a_ + ": not a graph file"));
    EXPECT_TRUE(failed(merged(ga, gb, a_, b_), 1, a_ + ": not a graph file"));
    EXPECT_TRUE(failed(merged(ga, b_, gb, a_), 1, ga + ": has 3000 rows, " + b_ + " has 2000"));
    EXPECT_TRUE(failed(merged(ga, twin, gb, b_), 1, ga + " was not built from " + twin + ": the vectors are others"));
    EXPECT_TRUE(failed(merged(ga, a_, graph_of(b_, "16", "ip"), b_), 1,
                       ga + " was made under l2, " + graph_of(b_, "16", "ip") + " under ip"));
    EXPECT_TRUE(failed(merged(ga, a_, file("none"), b_), 1, file("none")));
    EXPECT_TRUE(failed(merged(ga, a_, gb, file("none.fvecs")), 1, file("none.fvecs")));
    EXPECT_TRUE(failed(appended(a_, ga, b_), 1, a_));
    EXPECT_TRUE(failed(appended(ga, b_, a_), 1, "3000 rows"));
    EXPECT_TRUE(failed(appended(ga, twin, a_), 1, "not built from"));
    EXPECT_TRUE(failed(appended(ga, a_, file("none.fvecs")), 1, file("none.fvecs")));
    EXPECT_TRUE(failed(appended(file("none"), a_, b_), 1, file("none")));
    const std::vector<float> rows(300, 1.0f);
    io::write_vectors(file("narrow.fvecs"), {rows.data(), 100, 3});
    EXPECT_TRUE(failed(appended(ga, a_, file("narrow.fvecs")), 1, "vectors of 3 f32, " + a_ + " of 128 u8"));

    // A file without the identity of its base, as versions 1 and 2 are, is known by its distances.
    const std::string old = file("old.gnnd");
    io::write_graph(old, io::GraphFile(ga).read(), DType::u8);
    EXPECT_TRUE(failed(merged(old, twin, gb, b_), 1, old + ": its distances are not those of the vectors in " + twin));
    EXPECT_TRUE(failed(appended(old, twin, b_), 1, old + ": its distances are not those of the vectors in " + twin));

    EXPECT_TRUE(failed(run({"merge", ga, a_, gb, "-o", out}), 2, "BASE2 is required"));
    EXPECT_TRUE(failed(run({"append", ga, a_, "-o", out}), 2, "NEW is required"));
    EXPECT_TRUE(failed(run({"append", ga, a_, b_}), 2, "--output is required"));
    EXPECT_TRUE(failed(run({"append", ga, a_, b_, "-o", out, "--metric", "ip"}), 2, "--metric"));
    EXPECT_TRUE(failed(run({"append", ga, a_, b_, "-o", out, "-k", "0"}), 2, "k"));
    EXPECT_TRUE(failed(run({"append", ga, a_, b_, "-o", out, "--list-size", "3"}), 2, "--list-size 3"));
    EXPECT_TRUE(failed(run({"append", ga, a_, b_, "-o", file("no/g")}), 2, "no/g"));
    EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(CliMerge, ReplacesAGraphButNoVectors) {
    const std::string graph = graph_of(a_), stats = file("stats.json");
    const auto overwrites = [&](const std::string& out, const std::string& more) {
        return run({"append", graph, a_, b_, "-o", out, "--stats", more, "-q"});
    };
    for (const std::string& path : {a_, b_}) {
        EXPECT_TRUE(failed(overwrites(path, stats), 2, path + " would be overwritten"));
        EXPECT_TRUE(failed(overwrites(file("g"), path), 2, path + " would be overwritten"));
    }
    EXPECT_TRUE(failed(overwrites(file("g"), graph), 2, graph + " would be overwritten"));
    EXPECT_TRUE(failed(run({"merge", graph, a_, graph_of(b_), b_, "-o", b_}), 2, b_ + " would be overwritten"));
    EXPECT_EQ(io::VectorFile(b_).n(), 2000);
    EXPECT_EQ(overwrites(graph, stats).code, 0);
    expect_good_graph(graph, 5000, 16);
}

TEST_F(CliMerge, InterruptedWritesNothing) {
    const std::int64_t half = sized(10000);
    const std::string out = file("g.gnnd"), old = part(0, half), added = part(half, half);
    const std::string first = graph_of(old), second = graph_of(added);
    write_bytes(out, "old");
    const std::size_t entries = dir_.entries();
    for (const Arguments& command :
         {Arguments{"append", first, old, added}, Arguments{"merge", first, old, second, added}}) {
        Arguments arguments = command;
        arguments.insert(arguments.end(), {"--recall", "0", "--delta", "0", "--iterations", "1000000", "-o", out});
        const pid_t pid = spawn(arguments);
        wait_until(pid, [&] { return has_told("iteration 1:"); });
        kill(pid, SIGINT);
        EXPECT_EQ(wait(pid), -SIGINT) << command[0];
        EXPECT_NE(read_bytes(logs_.file("err")).find("gnnd: interrupted, nothing was written"), std::string::npos);
        EXPECT_EQ(read_bytes(out), "old");
        EXPECT_EQ(dir_.entries(), entries);
    }
}

}  // namespace
}  // namespace gnnd::test

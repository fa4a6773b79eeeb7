// SPDX-License-Identifier: MIT
// gnnd tune: what it prints is what it measured, and the command line that it names works.
#include <csignal>
#include <sstream>

#include "tests/cli_fixture.h"

namespace gnnd::test {
namespace {

class CliTune : public Cli {
  protected:
    /// A limit on the iterations that is none keeps the small base from being compared pair by pair.
    Arguments tuned(const Arguments& more, std::int64_t n = 5000) const {
        Arguments arguments{"tune",       base(n), "-k",           "10", "--device",  "cpu",
                            "--settings", "6",     "--iterations", "39", "--objects", "300"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return arguments;
    }
};

TEST_F(CliTune, NamesACommandLineThatReachesTheRecall) {
    const Result text = good(tuned({"--recall", "0.95", "-q", "--seed", "9", "--metric", "cosine"}));
    EXPECT_EQ(text.err, "");
    EXPECT_TRUE(matches(text.out,
                        "^base        .*base5000.u8bin: 5000 x 128 u8\n"
                        "tried       [0-9]+ settings in [0-9.]+ s on cpu, [0-9]+ threads; true neighbours of "
                        "300 objects\n\non 1,250 rows\n  samples lists trees  init "))
        << text.out;
    EXPECT_TRUE(matches(text.out, "\non 5,000 rows\n")) << "all of them, nothing is predicted: " << text.out;
    EXPECT_TRUE(matches(text.out, "\n[*] ")) << text.out;
    EXPECT_TRUE(matches(text.out, "\nfor Recall@10 0.95, [*] being the front:\n  gnnd build .*-k 10 --metric cosine "))
        << text.out;
    const std::size_t begin = text.out.find("  gnnd build ") + 7;
    std::istringstream words(text.out.substr(begin, text.out.find('\n', begin) - begin));
    Arguments build;
    for (std::string word; words >> word;) build.push_back(word == "graph.gnnd" ? file("g.gnnd") : word);
    build.insert(build.end(), {"--json", "-q"});
    const json report = good(build).parsed();
    EXPECT_EQ(report["stop"], "recall");
    EXPECT_GE(report["recall"], 0.95);
    EXPECT_EQ(report["params"]["metric"], "cosine");
    EXPECT_EQ(report["params"]["seed"], 9);
    EXPECT_EQ(report["params"]["iterations"], 39);
}

TEST_F(CliTune, TellsEverythingAsJson) {
    const Result result = good(tuned({"--recall", "0.9", "--rows", "4200", "--json", "--stats", file("s.json")}));
    const json report = result.parsed();
    EXPECT_EQ(json::parse(read_bytes(file("s.json"))), report);
    EXPECT_EQ(report["n"], 5000);
    EXPECT_EQ(report["small_rows"], 1050);
    EXPECT_EQ(report["large_rows"], 4200);
    EXPECT_EQ(report["complete"], true);
    EXPECT_EQ(report["reaches"], true);
    EXPECT_NE(report["time_exponent"], nullptr);
    EXPECT_TRUE(report["command"].get<std::string>().starts_with("gnnd build "));
    const json& records = report["records"];
    ASSERT_GT(records.size(), 6u) << "those of the recall come after the settings";
    EXPECT_EQ(records[0]["small"]["rows"], 1050);
    EXPECT_EQ(records[0]["large"]["rows"], 4200);
    EXPECT_EQ(records[0]["small"]["recall_objects"], 300);
    EXPECT_EQ(records[0]["params"]["samples"], 22);
    EXPECT_GT(records[0]["predicted_seconds"], records[0]["large"]["seconds"].get<double>() * 0.5);
    const json& chosen = records[report["chosen"].get<std::size_t>()];
    EXPECT_GE(chosen["large"]["recall"], 0.9);
    EXPECT_NE(chosen["large"]["stop"], "recall_missed");
    // A line for each build, where standard error is no terminal.
    EXPECT_TRUE(matches(result.err, "^1,050 rows:      22    32     6  projection  [0-9]+ ")) << result.err;
    EXPECT_TRUE(matches(result.err, "\n4,200 rows: ")) << result.err;
}

TEST_F(CliTune, WhatIsGivenStays) {
    const Arguments given{"--samples", "12",         "--list-size", "33", "--trees",  "3",
                          "--init",    "projection", "--json",      "-q", "--recall", "0.9"};
    const json report = good(tuned(given, 2500)).parsed();
    for (const json& record : report["records"]) {
        EXPECT_EQ(record["params"]["samples"], 12);
        EXPECT_EQ(record["params"]["list_size"], 33);
        EXPECT_EQ(record["params"]["trees"], 3);
        EXPECT_EQ(record["params"]["init"], "projection");
    }
    EXPECT_TRUE(matches(report["command"], " --samples 12 .*--list-size 33 .*--trees 3")) << report["command"];
}

TEST_F(CliTune, WithoutARecallNoCommandLineIsNamed) {
    const Result text = good(tuned({"--recall", "0", "-q"}, 2500));
    EXPECT_TRUE(matches(text.out, "\nno recall was asked for")) << text.out;
    EXPECT_EQ(text.out.find("gnnd build"), std::string::npos);
    const json report = good(tuned({"--recall", "0", "-q", "--json"}, 2500)).parsed();
    EXPECT_EQ(report["chosen"], nullptr);
    EXPECT_EQ(report["command"], nullptr);
}

TEST_F(CliTune, WarnsWhereTheLimitsForbidTheRecall) {
    const Result text = good({"tune", base(2500), "-k", "10", "--device", "cpu", "--samples", "4", "--list-size", "10",
                              "--iterations", "1", "--trees", "1", "-q", "--init", "random"});
    EXPECT_TRUE(matches(text.err, "^gnnd: warning: none of the settings is expected to reach Recall@10 0.99 on all"))
        << text.err;
    EXPECT_TRUE(matches(text.out, "  gnnd build .*--iterations 1 ")) << text.out;
}

TEST_F(CliTune, OfASmallBaseComparesAllPairs) {
    const Result text = good({"tune", base(500), "-k", "600", "--device", "cpu", "-q"});
    EXPECT_TRUE(matches(text.out, "\non 500 rows\n.*\n[*] +- +- +-  all pairs +- +[0-9.]+  1.0000 [+]- 0.0000\n"))
        << text.out;
    EXPECT_TRUE(matches(text.out, "gnnd build .* -k 600 --recall 1 ")) << text.out;
}

/// Of so many rows lists are built, too; independent components are as hard as can be: all pairs take about the
/// default's time. Which of both took less is the machine's matter.
TEST_F(CliTune, TriesAllPairsWhereTheyMayWin) {
    const std::string hard = file("hard.fbin");
    io::write_vectors(hard, random_vectors(17000, 64, DType::f32));
    const auto tuned = [&](const Arguments& more) {
        Arguments arguments{"tune", hard, "-k", "10", "--device", "cpu", "--objects", "300", "--json", "-q"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return good(arguments).parsed();
    };
    const json all = tuned({"--settings", "2"});
    const json& chosen = all["records"][all["chosen"].get<std::size_t>()];
    const json& second = all["records"][1];
    EXPECT_EQ(second["params"]["recall"], 1) << "before others";
    EXPECT_EQ(second["large"]["stop"], "exact");
    EXPECT_GE(second["large"]["seconds"], chosen["large"]["seconds"]);
    EXPECT_EQ(all["reaches"], true);
    const std::string recall = chosen["params"]["recall"] == 1 ? "--recall 1 " : "";
    EXPECT_TRUE(matches(all["command"], "gnnd build .* -k 10 " + recall + "--device cpu -o graph.gnnd"))
        << all["command"];
    std::size_t settings = 0;
    for (const json& record : all["records"]) settings += record["params"]["recall"] == 0;
    EXPECT_EQ(settings, 2u) << "all pairs are none of them";
    const json limited = tuned({"--settings", "1", "--rows", "2500", "--trees", "6"});
    for (const json& record : limited["records"]) EXPECT_NE(record["params"]["recall"], 1) << "limits stay limits";
}

TEST_F(CliTune, EndsInTime) {
    EXPECT_TRUE(failed(run(tuned({"--seconds", "1e-9"})), 2, "--seconds 1e-09: allowed are more: not one build"));
    // The first build takes as long as the machine needs: the seconds are doubled until they are enough for one.
    Result text;
    for (int seconds = 4; seconds < 300; seconds *= 2) {
        text = run({"tune", kSample, "-k", "10", "--device", "cpu", "--settings", "10000", "--seconds",
                    std::to_string(seconds), "-q", "--recall", "0.9"});
        if (text.code != 2) break;
    }
    ASSERT_EQ(text.code, 0) << text.err;
    EXPECT_TRUE(matches(text.err, "^gnnd: warning: --seconds ended it after [0-9]+ settings")) << text.err;
    EXPECT_TRUE(matches(text.out, "\n  gnnd build ")) << text.out;
}

TEST_F(CliTune, RefusesWhatIsWrong) {
    EXPECT_TRUE(failed(run(tuned({"--rows", "500"})), 2, "--rows 500: allowed are 1025 or more"));
    EXPECT_TRUE(failed(run(tuned({"--rows", "1"})), 2, "--rows"));
    EXPECT_TRUE(
        failed(run({"tune", base(2000), "--objects", "0"}), 2, "--objects 0: allowed are whole numbers from 1"));
    EXPECT_TRUE(failed(run({"tune", base(2000), "--settings", "0"}), 2, "--settings"));
    EXPECT_TRUE(failed(run(tuned({"--seconds", "-1"})), 2, "--seconds"));
    EXPECT_TRUE(failed(run(tuned({"-o", file("g")})), 2, "no such option: -o"));
    EXPECT_TRUE(failed(run({"tune", file("none.fvecs")}), 1, "none.fvecs"));
    EXPECT_TRUE(failed(run(tuned({"--stats", base(5000)})), 2, "base5000.u8bin"));
    const std::vector<float> x(2000 * 3, NAN);
    io::write_vectors(file("nan.fvecs"), {x.data(), 2000, 3, DType::f32, 0});
    EXPECT_TRUE(failed(run({"tune", file("nan.fvecs"), "--device", "cpu", "--iterations", "39"}), 1,
                       "nan.fvecs: row 0 holds NaN"));
}

TEST_F(CliTune, ASignalEndsIt) {
    const pid_t pid = spawn({"tune", kSample, "--settings", "10000", "--stats", file("s.json"), "--device", "cpu"});
    wait_until(pid, [&] { return has_told("rows: "); });
    kill(pid, SIGINT);
    EXPECT_EQ(wait(pid), -SIGINT);
    EXPECT_NE(read_bytes(logs_.file("err")).find("gnnd: interrupted, nothing was written"), std::string::npos);
    EXPECT_EQ(dir_.entries(), 0u);
}

}  // namespace
}  // namespace gnnd::test

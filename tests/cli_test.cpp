// SPDX-License-Identifier: MIT
// The tool as a whole: help, wrong usage, building a graph, bad files, full disks, signals.
#include <pty.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "gnnd/detail/params_table.h"
#include "gnnd/io/graph_file.h"
#include "tests/cli_fixture.h"
#include "tests/io_conditions.h"

namespace gnnd::test {
namespace {

using io::GraphFile;
using io::VectorFile;

TEST_F(Cli, VersionNamesFaissAndCuda) {
    const Result result = good({"--version"});
    EXPECT_TRUE(matches(result.out,
                        "^gnnd [0-9]+[.][0-9]+[.][0-9]+ [(]FAISS [0-9]+[.][0-9]+[.][0-9]+"
                        "(, CUDA [0-9]+[.][0-9]+)?[)]\n$"))
        << result.out;
}

/// As the tool spells a field of BuildParams.
std::string option_of(std::string field) {
    std::replace(field.begin(), field.end(), '_', '-');
    return "--" + field;
}

TEST_F(Cli, HelpListsCommandsAndTheirOptions) {
    const std::map<std::string, Arguments> options{
        {"build",
         {"BASE", "-o", "--method", "--dry-run", "--nlist", "--code-bytes", "--nprobe", "--points-per-centroid",
          "--stats", "--json", "--quiet"}},
        {"merge", {"GRAPH1", "BASE1", "GRAPH2", "BASE2", "-o", "--stats"}},
        {"append", {"GRAPH", "BASE", "NEW", "--method", "-o", "--stats"}},
        {"eval", {"GRAPH", "BASE", "-k", "--queries", "--seed", "--truth", "--device", "--json"}},
        {"exact", {"BASE", "-k", "-o", "--metric", "--device", "--json"}},
        {"info", {"FILE", "--json"}},
        {"convert", {"IN", "OUT", "--distances", "--dtype", "--offset", "--count"}},
        {"index",
         {"GRAPH", "BASE", "--type", "--factory", "--append", "--recall", "--metric", "-o", "--R", "--M",
          "--base-level-only", "--search-L", "--ef-search", "--device", "--json"}},
        {"search", {"INDEX", "QUERIES", "-k", "--truth", "-o", "--ef", "--json"}},
    };
    const std::string overview = good({"--help"}).out;
    for (const auto& [command, names] : options) {
        EXPECT_NE(overview.find("\n  " + command + " "), std::string::npos) << overview;
        const std::string help = good({command, "--help"}).out;
        const auto expect_told = [&](const std::string& name) {
            EXPECT_NE(help.find(name), std::string::npos) << command << " does not tell about " << name;
        };
        for (const std::string& name : names) expect_told(name);
        detail::for_each_field([&](const auto& field) {
            const bool given = std::string_view(field.name) == "metric";  // the graphs have one
            if (command == "build" || (!given && (command == "merge" || command == "append")))
                expect_told(option_of(field.name));
        });
    }
    const std::string build = good({"build", "--help"}).out;
    for (const Metric metric : kMetrics) EXPECT_NE(build.find(name_of(metric)), std::string::npos) << name_of(metric);
}

TEST_F(Cli, WrongUsageEndsWithTwo) {
    EXPECT_TRUE(failed(run({}), 2, "a command is required"));
    EXPECT_TRUE(failed(run({"frobnicate"}), 2, "frobnicate"));
    EXPECT_TRUE(failed(run({"build"}), 2, "BASE is required"));
    EXPECT_TRUE(failed(run({"build", base()}), 2, "--output is required"));
    EXPECT_TRUE(failed(run({"build", base(), "-o", file("g"), "--frobnicate"}), 2, "--frobnicate"));
    const auto build_with = [&](const std::string& option, const std::string& value) {
        return run({"build", base(), "-o", file("g"), option, value});
    };
    EXPECT_TRUE(failed(build_with("--metric", "hamming"), 2, "hamming"));
    EXPECT_TRUE(failed(build_with("--method", "magic"), 2, "magic"));
    EXPECT_TRUE(failed(build_with("--nprobe", "3"), 2, "--nprobe: has no meaning for --method gnnd"));
    for (const char* method : {"exhaustive", "exact", "ivfpq", "nndescent"})
        EXPECT_TRUE(failed(run({"build", base(), "-o", file("g"), "--method", method, "--trees", "3"}), 2, "--trees"));
    EXPECT_TRUE(failed(run({"build", base(), "-o", file("g"), "--method", "exact", "--iterations", "3"}), 2, "--iter"));
    EXPECT_TRUE(
        failed(run({"build", base(), "-o", file("g"), "--method", "nndescent", "--device", "cuda"}), 2, "--device"));
    EXPECT_TRUE(failed(build_with("--update", "some"), 2, "some"));
    EXPECT_TRUE(failed(build_with("--locks", "some"), 2, "some"));
    EXPECT_TRUE(failed(build_with("--codes", "int4"), 2, "int4"));
    EXPECT_TRUE(failed(run({"build", base(), "-k", "4", "-o", file("g"), "--device", "cpu", "--codes", "int8"}), 2,
                       "--codes int8 on the CPU: allowed are auto and none"));
    EXPECT_TRUE(failed(build_with("--init", "zero"), 2, "zero"));
    EXPECT_TRUE(failed(build_with("--device", "tpu"), 2, "tpu"));
    EXPECT_TRUE(failed(build_with("--device-memory", "much"), 2, "device-memory"));
    EXPECT_TRUE(failed(build_with("-k", "0"), 2, "k"));
    EXPECT_TRUE(failed(build_with("-k", "-3"), 2, "k"));
    EXPECT_TRUE(failed(build_with("-k", "many"), 2, "many"));
    EXPECT_TRUE(failed(build_with("-k", "100000"), 2, "100000"));
    EXPECT_TRUE(failed(build_with("--iterations", "-1"), 2, "iterations"));
    EXPECT_TRUE(failed(build_with("--delta", "-1"), 2, "delta"));
    EXPECT_TRUE(failed(build_with("--recall", "1.01"), 2, "recall"));
    EXPECT_TRUE(failed(build_with("--recall", "nan"), 2, "recall"));
    EXPECT_TRUE(failed(build_with("--recall-at", "33"), 2, "--recall-at 33: allowed are 1 to 32"));
    EXPECT_TRUE(failed(build_with("--list-size", "3"), 2, "--list-size 3: allowed are 32 to 1024"));
    EXPECT_TRUE(failed(build_with("--samples", "-1"), 2, "samples"));
    EXPECT_TRUE(failed(run({"eval", "g", "b", "--queries", "-1"}), 2, "--queries"));
    EXPECT_TRUE(failed(run({"index", "g", "b", "-o", "i"}), 2, "--type, --factory or --append is required"));
    EXPECT_TRUE(failed(run({"index", "g", "b", "-o", "i", "--type", "tree"}), 2, "tree"));
    EXPECT_TRUE(failed(run({"index", "g", "b", "-o", "i", "--type", "hnsw", "--R", "8"}), 2, "--R"));
    EXPECT_TRUE(failed(run({"index", "g", "b", "-o", "i", "--type", "nsg", "--M", "8"}), 2, "--M"));
    EXPECT_TRUE(failed(run({"convert", base(), file("b.npy"), "--dtype", "f64"}), 2, "f64"));
    EXPECT_TRUE(failed(run({"convert", base(), file("b.fvecs"), "--distances"}), 2, "--distances"));
    EXPECT_EQ(dir_.entries(), 1u) << "only the base";
}

TEST_F(Cli, NoInputIsOverwritten) {
    const std::string vectors = base(100), graph = file("g.gnnd"), index = file("i.nsg"), link = file("link");
    const std::string bytes = read_bytes(vectors);
    std::filesystem::create_symlink(vectors, link);
    for (const std::string& path : {vectors, link, file("./base100.u8bin")}) {
        EXPECT_TRUE(failed(run({"build", vectors, "-o", path}), 2, path + " would be overwritten"));
        EXPECT_TRUE(failed(run({"exact", vectors, "-o", path}), 2, path + " would be overwritten"));
        EXPECT_TRUE(failed(run({"build", vectors, "-o", graph, "--stats", path}), 2, "would be overwritten"));
        EXPECT_TRUE(
            failed(run({"build", vectors, "--work", file("w"), "--stats", path}), 2, path + " would be overwritten"));
    }
    EXPECT_TRUE(failed(run({"build", vectors, "-o", graph, "--stats", graph}), 2, graph + " is named twice"));
    good({"build", vectors, "-k", "32", "-o", graph, "-q"});
    EXPECT_TRUE(failed(run({"index", graph, vectors, "--type", "nsg", "-o", graph}), 2, "would be overwritten"));
    EXPECT_TRUE(failed(run({"index", graph, vectors, "--type", "nsg", "-o", vectors}), 2, "would be overwritten"));
    good({"index", graph, vectors, "--type", "nsg", "-o", index});
    EXPECT_TRUE(failed(run({"search", index, vectors, "-o", vectors}), 2, "would be overwritten"));
    EXPECT_EQ(read_bytes(vectors), bytes);
}

/// Small sets are compared exhaustively, without iterations.
TEST_F(Cli, PhiIsThatOfTheGraph) {
    for (const std::int64_t n : {100, 2000}) {
        const double phi = good({"build", base(n), "-o", file("g"), "-q", "--json"}).parsed()["phi"];
        EXPECT_GT(phi, 0);
        EXPECT_NEAR(phi, phi_of(file("g")), 1e-6 * phi);
    }
}

TEST_F(Cli, BuildPrintsASummary) {
    const Result result = good({"build", base(), "-k", "16", "-o", file("g.gnnd"), "--trees", "6"});
    for (const std::string part : {"2000 x 128 u8", "iterations ", "stopped: ", "phi(G) ", "seconds ", "memory ",
                                   "recall      Recall@10 0.9", "measured on ", "measured  in "})
        EXPECT_NE(result.out.find(part), std::string::npos) << part << " is missing in\n" << result.out;
    EXPECT_NE(result.out.find(file("g.gnnd")), std::string::npos);
    EXPECT_TRUE(matches(result.err, "^iteration 0: changed .*phi[(]G[)]")) << result.err;
    const GraphFile graph(file("g.gnnd"));
    EXPECT_EQ(graph.n(), 2000);
    EXPECT_EQ(graph.k(), 16);
    EXPECT_EQ(graph.dtype(), DType::u8);
}

TEST_F(Cli, BuildTakesEveryParameter) {
    // Of each another value than the default.
    const std::map<std::string, std::string> values{
        {"k", "12"},         {"metric", "l1"},   {"samples", "6"},
        {"iterations", "3"}, {"delta", "0.125"}, {"list_size", "24"},
        {"init", "random"},  {"trees", "2"},     {"update", "all"},
        {"locks", "list"},   {"seed", "7"},      {"deterministic", "true"},
        {"threads", "1"},    {"device", "cpu"},  {"device_memory", "1073741824"},
        {"recall", "0.25"},  {"recall_at", "4"}, {"codes", "none"}};
    const std::string path = file("g.gnnd"), stats = file("stats.json");
    Arguments arguments{"build", base(), "-o", path, "--stats", stats, "--json", "--quiet"};
    detail::for_each_field([&]<class T>(const detail::Field<T>& field) {
        ASSERT_TRUE(values.contains(field.name)) << field.name << " is not tried";
        ASSERT_NE(values.at(field.name), detail::text_of(field.standard())) << field.name;
        arguments.push_back(option_of(field.name));
        if (!std::is_same_v<T, bool>) arguments.push_back(values.at(field.name));
    });
    const Result result = good(arguments);
    EXPECT_EQ(result.err, "");
    const json report = result.parsed();
    EXPECT_EQ(report, json::parse(read_bytes(stats)));
    EXPECT_EQ(report["graph"], path);
    EXPECT_EQ(report["n"], 2000);
    EXPECT_EQ(report["d"], 128);
    EXPECT_EQ(report["dtype"], "u8");
    EXPECT_EQ(report["threads"], 1);
    EXPECT_EQ(report["device"], "cpu");
    detail::for_each_field([&](const auto& field) {
        if (!field.decides_graph) return;
        const json& value = report["params"][field.name];
        if (field.name == std::string_view("codes")) {
            EXPECT_EQ(value, "none") << "on the CPU, whatever was asked for";
            return;
        }
        EXPECT_EQ(value.is_string() ? value.get<std::string>() : value.dump(), values.at(field.name)) << field.name;
    });
    EXPECT_LE(report["iterations"].size(), 4u);
    EXPECT_EQ(report["iterations"].back()["phi"], report["phi"]);
    EXPECT_GT(report["peak_work_bytes"], 0);
    EXPECT_GT(report["peak_memory_bytes"], report["peak_work_bytes"]);
    EXPECT_EQ(GraphFile(path).metric(), Metric::L1);

    const auto again = [&](const std::string& seed) {
        good({"build", base(), "-k", "4", "-o", file("again"), "--iterations", "1", "--recall", "0", "--threads", "1",
              "--device", "cpu", "--seed", seed});
        return read_bytes(file("again"));
    };
    const std::string first = again("1");
    EXPECT_EQ(again("1"), first) << "a seed decides everything when there is one thread";
    EXPECT_NE(again("2"), first);
}

TEST_F(Cli, BuildDefaultsAreTheLibrarys) {
    const json params = good({"build", base(200), "-o", file("g"), "--json", "-q"}).parsed()["params"];
    const BuildParams defaults;
    EXPECT_EQ(params["k"], defaults.k);
    EXPECT_EQ(params["iterations"], defaults.iterations);
    EXPECT_EQ(params["seed"], defaults.seed);
    EXPECT_EQ(params["init"], name_of(defaults.init));
    EXPECT_EQ(params["update"], name_of(defaults.update));
}

/// The progress of a build on a terminal of so many columns.
class CliTerminal : public Cli, public testing::WithParamInterface<int> {};

TEST_P(CliTerminal, ShowsABuildOnOneLine) {
    const int columns = GetParam();
    winsize size{};
    size.ws_col = static_cast<unsigned short>(columns);
    int master = -1, slave = -1;
    ASSERT_EQ(openpty(&master, &slave, nullptr, nullptr, &size), 0);
    const pid_t pid = spawn(
        {"build", kSample, "-k", "8", "--iterations", "12", "--delta", "0", "--recall", "0", "-o", file("g")}, slave);
    close(slave);
    std::string shown;
    char buffer[4096];
    for (ssize_t got = 0; (got = read(master, buffer, sizeof buffer)) > 0;) shown.append(buffer, std::size_t(got));
    close(master);
    EXPECT_EQ(wait(pid), 0);
    EXPECT_EQ(shown.find('\n'), std::string::npos) << "one line, taken away at the end: " << shown;
    const std::string clear = "\r\x1b[K";
    EXPECT_EQ(shown.find(clear + "[##") != std::string::npos, columns >= 80 || columns == 0) << shown;
    EXPECT_EQ(shown.substr(shown.rfind(clear)), clear);
    std::size_t drawn = 0;
    for (std::size_t at = 0, end = 0; (at = shown.find(clear, end)) != std::string::npos; ++drawn) {
        at += clear.size();
        end = std::min(shown.find(clear, at), shown.size());
        EXPECT_LT(end - at, std::size_t(columns > 0 ? columns : 80)) << shown.substr(at, end - at);
    }
    EXPECT_GT(drawn, 12u);
}

INSTANTIATE_TEST_SUITE_P(Columns, CliTerminal, testing::Values(0, 20, 60, 80, 200), testing::PrintToStringParamName());

TEST_F(Cli, BadFilesEndWithOne) {
    EXPECT_TRUE(failed(run({"build", file("none.fvecs"), "-o", file("g")}), 1, "none.fvecs"));
    EXPECT_TRUE(failed(run({"build", file("none.txt"), "-o", file("g")}), 1, "none.txt"));
    EXPECT_TRUE(failed(run({"build", base(), "-o", file("g"), "--device", "cuda:4000"}), 1, "device cuda:4000: "));
    write_bytes(file("empty.fvecs"), "");
    EXPECT_TRUE(failed(run({"build", file("empty.fvecs"), "-o", file("g"), "-q"}), 1, "empty.fvecs"));
    std::vector<float> rows(300, 1.0f);
    rows[100] = NAN;
    io::write_vectors(file("nan.fvecs"), {rows.data(), 100, 3});
    EXPECT_TRUE(failed(run({"build", file("nan.fvecs"), "-o", file("g"), "-q"}), 1, "nan.fvecs: row 33 holds NaN"));
    EXPECT_TRUE(failed(run({"eval", base(), base()}), 1, base()));
    EXPECT_TRUE(failed(run({"index", graph("chi2"), base(), "--type", "nsg", "-o", file("i")}), 1, "chi2"));
    EXPECT_FALSE(std::filesystem::exists(file("g")));
    EXPECT_FALSE(std::filesystem::exists(file("i")));
}

TEST_F(Cli, AFullDiskLeavesTheOldFile) {
    const std::string out = file("out.npy"), made = file("out.gnnd"), vectors = base(), neighbors = graph();
    write_bytes(out, "old");
    write_bytes(made, "old");
    const std::size_t before = dir_.entries();
    for (const Arguments& arguments :
         {Arguments{"build", vectors, "-q", "-k", "64", "-o", made, "--device", "cpu"},
          Arguments{"exact", vectors, "-k", "64", "-o", made, "--device", "cpu"},
          Arguments{"convert", vectors, out, "--dtype", "f32"},
          Arguments{"append", neighbors, vectors, vectors, "-q", "-k", "64", "-o", made, "--device", "cpu"},
          Arguments{"index", neighbors, vectors, "--type", "hnsw", "-o", out, "--device", "cpu"}}) {
        Result result;
        {
            const FullDisk disk(600000);  // under the thread sanitizer a program writes 512 KiB when it starts
            result = run(arguments);
        }
        EXPECT_TRUE(failed(result, 1, "/out.")) << arguments[0];
        EXPECT_EQ(read_bytes(out), "old") << arguments[0];
        EXPECT_EQ(read_bytes(made), "old") << arguments[0];
        EXPECT_EQ(dir_.entries(), before) << arguments[0] << " left a temporary file";
    }
}

TEST_F(Cli, StandardOutputThatCannotBeWrittenIsAnError) {
    const pid_t pid = fork();
    if (pid == 0) {
        const int full = open("/dev/full", O_WRONLY);
        const int null = open("/dev/null", O_WRONLY);
        dup2(full, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        execl(kTool, "gnnd", "info", kSample.c_str(), static_cast<char*>(nullptr));
        _exit(127);
    }
    EXPECT_EQ(wait(pid), 1);
}

}  // namespace
}  // namespace gnnd::test

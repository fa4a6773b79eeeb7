// Runs the tool as a shell would and looks at what it prints, returns and leaves behind.
#include <faiss/IndexFlat.h>
#include <faiss/index_io.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <regex.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "gnnd/io/graph_file.h"
#include "gnnd/io/vector_file.h"
#include "gnnd/params.h"
#include "io_conditions.h"
#include "temp_dir.h"

namespace {

using gnnd::io::GraphFile;
using gnnd::io::VectorFile;
using gnnd::test::read_bytes;
using gnnd::test::write_bytes;
using nlohmann::json;
using Arguments = std::vector<std::string>;

const std::string kSample = GNND_TEST_DATA "/photosift20k.u8bin";

struct Result {
    int code = -1;
    std::string out, err;

    json parsed() const { return json::parse(out); }
    bool says(const std::string& text) const { return err.find(text) != std::string::npos; }
};

/// Whether the POSIX extended regular expression matches. The one in <regex> costs a minute under the sanitizers.
bool matches(const std::string& text, const std::string& pattern) {
    regex_t compiled;
    if (regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB) != 0)
        throw std::invalid_argument("bad pattern: " + pattern);
    const bool found = regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
    regfree(&compiled);
    return found;
}

/// A run that failed as it should: one line on standard error, nothing on standard output.
testing::AssertionResult failed(const Result& result, int code, const std::string& text) {
    const bool one_line = matches(result.err, "^gnnd: [^\n]+\n$");
    if (result.code == code && one_line && result.says(text) && result.out.empty()) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "expected code " << code << " and one line with \"" << text << "\", got "
                                       << result.code << "\n"
                                       << result.err << result.out;
}

class Cli : public testing::Test {
  protected:
    std::string file(const std::string& name) const { return dir_.file(name); }

    /// Starts the tool with its output in files, standard error in the descriptor if one is given.
    pid_t spawn(const Arguments& arguments, int error_descriptor = -1) const {
        std::vector<char*> argv{const_cast<char*>(GNND_TOOL)};
        for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
        argv.push_back(nullptr);
        const std::string out = logs_.file("out"), err = logs_.file("err");
        constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), kFlags, 0600);
        if (error_descriptor < 0)
            posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), kFlags, 0600);
        else
            posix_spawn_file_actions_adddup2(&actions, error_descriptor, STDERR_FILENO);
        // The test may itself run where signals are ignored, in the background of a script for instance.
        posix_spawnattr_t attributes;
        posix_spawnattr_init(&attributes);
        sigset_t defaults;
        sigemptyset(&defaults);
        sigaddset(&defaults, SIGINT);
        sigaddset(&defaults, SIGTERM);
        posix_spawnattr_setsigdefault(&attributes, &defaults);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
        pid_t pid = -1;
        const int error = posix_spawn(&pid, GNND_TOOL, &actions, &attributes, argv.data(), environ);
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
        if (error != 0) throw std::runtime_error("cannot start " GNND_TOOL);
        return pid;
    }

    static int wait(pid_t pid) {
        int status = 0;
        waitpid(pid, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }

    Result run(const Arguments& arguments) const {
        const int code = wait(spawn(arguments));
        return {code, read_bytes(logs_.file("out")), read_bytes(logs_.file("err"))};
    }

    /// Runs what must succeed.
    Result good(const Arguments& arguments) const {
        Result result = run(arguments);
        EXPECT_EQ(result.code, 0) << result.err;
        return result;
    }

    /// The first rows of the sample as a file of their own.
    std::string base(std::int64_t n = 2000) const {
        const std::string path = file("base" + std::to_string(n) + ".u8bin");
        if (std::filesystem::exists(path)) return path;
        const VectorFile sample(kSample);
        gnnd::VectorView view = sample.view();
        view.n = n;
        gnnd::io::write_vectors(path, view);
        return path;
    }

    /// A graph of base().
    std::string graph(const std::string& metric = "l2") const {
        const std::string path = file(metric + ".gnnd");
        if (!std::filesystem::exists(path)) good({"build", base(), "-k", "16", "--metric", metric, "-o", path, "-q"});
        return path;
    }

    gnnd::test::TempDir dir_, logs_;
};

TEST_F(Cli, VersionNamesFaissToo) {
    const Result result = good({"--version"});
    EXPECT_TRUE(matches(result.out, "^gnnd [0-9]+[.][0-9]+[.][0-9]+ [(]FAISS [0-9]+[.][0-9]+[.][0-9]+[)]\n$"))
        << result.out;
}

TEST_F(Cli, HelpListsEveryCommandAndOption) {
    const std::string overview = good({"--help"}).out;
    const std::map<std::string, Arguments> options{
        {"build",
         {"BASE", "-k", "-o", "--metric", "--samples", "--iterations", "--delta", "--list-size", "--init", "--trees",
          "--update", "--seed", "--threads", "--device", "--stats", "--json", "--quiet"}},
        {"eval", {"GRAPH", "BASE", "-k", "--queries", "--seed", "--json"}},
        {"exact", {"BASE", "-k", "-o", "--metric", "--json"}},
        {"info", {"FILE", "--json"}},
        {"convert", {"IN", "OUT", "--distances", "--dtype", "--offset", "--count"}},
        {"index", {"GRAPH", "BASE", "--type", "-o", "--R", "--M", "--search-L", "--ef-search", "--json"}},
        {"search", {"INDEX", "QUERIES", "-k", "--truth", "-o", "--ef", "--json"}},
    };
    for (const auto& [command, names] : options) {
        EXPECT_NE(overview.find("\n  " + command + " "), std::string::npos) << overview;
        const Result help = good({command, "--help"});
        for (const std::string& name : names)
            EXPECT_NE(help.out.find(name), std::string::npos) << command << " does not tell about " << name;
    }
}

TEST_F(Cli, WrongUsageEndsWithTwo) {
    EXPECT_TRUE(failed(run({}), 2, "subcommand is required"));
    EXPECT_TRUE(failed(run({"frobnicate"}), 2, "frobnicate"));
    EXPECT_TRUE(failed(run({"build"}), 2, "BASE is required"));
    EXPECT_TRUE(failed(run({"build", base()}), 2, "--output is required"));
    EXPECT_TRUE(failed(run({"build", base(), "-o", file("g"), "--frobnicate"}), 2, "--frobnicate"));
    const auto build_with = [&](const std::string& option, const std::string& value) {
        return run({"build", base(), "-o", file("g"), option, value});
    };
    EXPECT_TRUE(failed(build_with("--metric", "hamming"), 2, "hamming"));
    EXPECT_TRUE(failed(build_with("--update", "some"), 2, "some"));
    EXPECT_TRUE(failed(build_with("--init", "zero"), 2, "zero"));
    EXPECT_TRUE(failed(build_with("--device", "tpu"), 2, "tpu"));
    EXPECT_TRUE(failed(build_with("-k", "0"), 2, "k"));
    EXPECT_TRUE(failed(build_with("-k", "-3"), 2, "k"));
    EXPECT_TRUE(failed(build_with("-k", "many"), 2, "many"));
    EXPECT_TRUE(failed(build_with("-k", "100000"), 2, "100000"));
    EXPECT_TRUE(failed(build_with("--iterations", "-1"), 2, "iterations"));
    EXPECT_TRUE(failed(build_with("--delta", "-1"), 2, "delta"));
    EXPECT_TRUE(failed(build_with("--list-size", "3"), 2, "list_size"));
    EXPECT_TRUE(failed(build_with("--samples", "-1"), 2, "samples"));
    EXPECT_TRUE(failed(run({"eval", "g", "b", "--queries", "-1"}), 2, "--queries"));
    EXPECT_TRUE(failed(run({"index", "g", "b", "-o", "i"}), 2, "--type is required"));
    EXPECT_TRUE(failed(run({"index", "g", "b", "-o", "i", "--type", "tree"}), 2, "tree"));
    EXPECT_TRUE(failed(run({"index", "g", "b", "-o", "i", "--type", "hnsw", "--R", "8"}), 2, "--R"));
    EXPECT_TRUE(failed(run({"index", "g", "b", "-o", "i", "--type", "nsg", "--M", "8"}), 2, "--M"));
    EXPECT_TRUE(failed(run({"convert", base(), file("b.npy"), "--dtype", "f64"}), 2, "f64"));
    EXPECT_TRUE(failed(run({"convert", base(), file("b.fvecs"), "--distances"}), 2, "--distances"));
    EXPECT_EQ(dir_.entries(), 1u) << "only the base";
}

TEST_F(Cli, BuildPrintsASummary) {
    const Result result = good({"build", base(), "-k", "16", "-o", file("g.gnnd")});
    for (const std::string part : {"2000 x 128 u8", "iterations ", "stopped: ", "phi(G) ", "seconds ", "memory "})
        EXPECT_NE(result.out.find(part), std::string::npos) << part << " is missing in\n" << result.out;
    EXPECT_NE(result.out.find(file("g.gnnd")), std::string::npos);
    EXPECT_TRUE(matches(result.err, "^iteration 0: changed .*phi[(]G[)]")) << result.err;
    const GraphFile graph(file("g.gnnd"));
    EXPECT_EQ(graph.n(), 2000);
    EXPECT_EQ(graph.k(), 16);
    EXPECT_EQ(graph.dtype(), gnnd::DType::u8);
}

TEST_F(Cli, BuildTakesEveryOption) {
    const std::string path = file("g.gnnd"), stats = file("stats.json");
    const Result result =
        good({"build",    base(5000),   "-k",          "12",  "-o",           path, "--samples", "6",
              "--metric", "l1",         "--delta",     "0.1", "--threads",    "1",  "--trees",   "2",
              "--init",   "projection", "--update",    "all", "--seed",       "7",  "--device",  "cpu",
              "--stats",  stats,        "--list-size", "24",  "--iterations", "3",  "--json",    "--quiet"});
    EXPECT_EQ(result.err, "");
    const json report = result.parsed();
    EXPECT_EQ(report, json::parse(read_bytes(stats)));
    EXPECT_EQ(report["graph"], path);
    EXPECT_EQ(report["n"], 5000);
    EXPECT_EQ(report["d"], 128);
    EXPECT_EQ(report["dtype"], "u8");
    EXPECT_EQ(report["threads"], 1);
    EXPECT_EQ(report["device"], "cpu");
    const json& params = report["params"];
    EXPECT_EQ(params["k"], 12);
    EXPECT_EQ(params["metric"], "l1");
    EXPECT_EQ(params["samples"], 6);
    EXPECT_EQ(params["list_size"], 24);
    EXPECT_EQ(params["iterations"], 3);
    EXPECT_FLOAT_EQ(params["delta"], 0.1f);
    EXPECT_EQ(params["seed"], 7);
    EXPECT_EQ(params["update"], "all");
    EXPECT_EQ(params["init"], "projection");
    EXPECT_EQ(params["trees"], 2);
    EXPECT_LE(report["iterations"].size(), 4u);
    EXPECT_EQ(report["iterations"].back()["phi"], report["phi"]);
    EXPECT_GT(report["peak_work_bytes"], 0);
    EXPECT_GT(report["peak_memory_bytes"], report["peak_work_bytes"]);
    EXPECT_EQ(GraphFile(path).metric(), gnnd::Metric::L1);

    const auto again = [&](const std::string& seed) {
        good({"build", base(5000), "-k", "4", "-o", file("again"), "--iterations", "1", "--threads", "1", "--seed",
              seed});
        return read_bytes(file("again"));
    };
    const std::string first = again("1");
    EXPECT_EQ(again("1"), first) << "a seed decides everything when there is one thread";
    EXPECT_NE(again("2"), first);
}

TEST_F(Cli, BuildDefaultsAreTheLibrarys) {
    const json params = good({"build", base(), "-o", file("g"), "--json", "-q"}).parsed()["params"];
    const gnnd::BuildParams defaults;
    EXPECT_EQ(params["k"], defaults.k);
    EXPECT_EQ(params["iterations"], defaults.iterations);
    EXPECT_EQ(params["seed"], defaults.seed);
    EXPECT_EQ(params["init"], name_of(defaults.init));
    EXPECT_EQ(params["update"], name_of(defaults.update));
}

TEST_F(Cli, BuildDrawsABarOnATerminal) {
    int master = -1, slave = -1;
    ASSERT_EQ(openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
    const pid_t pid = spawn({"build", kSample, "-k", "8", "--iterations", "2", "-o", file("g")}, slave);
    close(slave);
    std::string shown;
    char buffer[4096];
    for (ssize_t got = 0; (got = read(master, buffer, sizeof buffer)) > 0;) shown.append(buffer, std::size_t(got));
    close(master);
    EXPECT_EQ(wait(pid), 0);
    EXPECT_NE(shown.find("\r\x1b[K[##"), std::string::npos) << shown;
    EXPECT_EQ(shown.find('\n'), std::string::npos) << "the bar stays on one line and is taken away at the end";
}

class CliMetric : public Cli, public testing::WithParamInterface<const char*> {};

TEST_P(CliMetric, BuildsEvaluatesAndComparesWithExact) {
    const std::string metric = GetParam(), exact = file("exact.gnnd");
    const json approximate = good({"eval", graph(metric), base(), "--json"}).parsed();
    EXPECT_EQ(approximate["metric"], metric);
    EXPECT_GT(approximate["recall"], 0.95);
    good({"exact", base(), "-k", "10", "--metric", metric, "-o", exact});
    EXPECT_EQ(good({"eval", exact, base(), "--json", "--queries", "500"}).parsed()["recall"], 1.0);
}

INSTANTIATE_TEST_SUITE_P(All, CliMetric, testing::Values("l2", "ip", "cosine", "l1", "linf", "chi2"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(Cli, EvalPrintsRecall) {
    const Result result = good({"eval", graph(), base(), "--k", "5", "--queries", "300", "--seed", "3"});
    EXPECT_TRUE(matches(result.out, "^Recall@5 (0[.]9[0-9]{3}|1[.]0000)\n300 of 2000 objects .* s\n$")) << result.out;
    const json all = good({"eval", graph(), base(), "--queries", "0", "--json"}).parsed();
    EXPECT_EQ(all["queries"], 2000);
    EXPECT_EQ(all["k"], 10);
    EXPECT_TRUE(failed(run({"eval", graph(), base(), "-k", "17"}), 1, "17"));
    EXPECT_TRUE(failed(run({"eval", graph(), base(1000)}), 1, "1000"));

    good({"build", base(), "-k", "4", "-o", file("short.gnnd"), "-q"});
    EXPECT_EQ(good({"eval", file("short.gnnd"), base(), "--json"}).parsed()["k"], 4) << "no more than the graph has";
}

TEST_F(Cli, ExactReportsJson) {
    const json report = good({"exact", base(), "-k", "5", "-o", file("e"), "--json"}).parsed();
    EXPECT_EQ(report["n"], 2000);
    EXPECT_EQ(report["k"], 5);
    EXPECT_EQ(report["metric"], "l2");
    EXPECT_GT(report["seconds"], 0);
    EXPECT_NE(good({"exact", base(), "-k", "5", "-o", file("e")}).out.find(file("e")), std::string::npos);
}

TEST_F(Cli, InfoKnowsVectorsAndGraphs) {
    const json vectors = good({"info", base(), "--json"}).parsed();
    EXPECT_EQ(vectors["kind"], "vectors");
    EXPECT_EQ(vectors["format"], "u8bin");
    EXPECT_EQ(vectors["n"], 2000);
    EXPECT_EQ(vectors["d"], 128);
    EXPECT_EQ(vectors["dtype"], "u8");
    EXPECT_EQ(vectors["bytes"], std::filesystem::file_size(base()));

    const json info = good({"info", graph(), "--json"}).parsed();
    EXPECT_EQ(info["kind"], "graph");
    EXPECT_EQ(info["version"], 1);
    EXPECT_EQ(info["n"], 2000);
    EXPECT_EQ(info["k"], 16);
    EXPECT_EQ(info["metric"], "l2");
    EXPECT_EQ(info["dtype"], "u8");
    EXPECT_EQ(info["entries"], 32000);
    EXPECT_EQ(info["padding"], 0);
    EXPECT_GT(info["max_in_degree"], 16);
    EXPECT_LT(info["zero_in_degree"], 2000);
    EXPECT_TRUE(matches(good({"info", graph()}).out, "\nmetric +l2\n"));
}

TEST_F(Cli, InfoSeesAnAlteredGraph) {
    std::string bytes = read_bytes(graph());
    bytes[bytes.size() / 2] ^= 1;
    write_bytes(file("altered.gnnd"), bytes);
    EXPECT_TRUE(failed(run({"info", file("altered.gnnd")}), 1, "altered.gnnd"));
    write_bytes(file("short.gnnd"), bytes.substr(0, 1000));
    EXPECT_TRUE(failed(run({"info", file("short.gnnd")}), 1, "short.gnnd"));
}

TEST_F(Cli, ConvertGoesThroughEveryFormatAndBack) {
    std::string last = base();
    for (const std::string format : {"fvecs", "fbin", "npy", "ivecs", "ibin", "bvecs", "u8bin"}) {
        const std::string next = file("through." + format);
        good({"convert", last, next});
        last = next;
    }
    EXPECT_EQ(read_bytes(last), read_bytes(base()));

    good({"convert", base(), file("half.npy"), "--dtype", "f16"});
    EXPECT_EQ(VectorFile(file("half.npy")).dtype(), gnnd::DType::f16);
    good({"convert", file("half.npy"), file("back.u8bin")});
    EXPECT_EQ(read_bytes(file("back.u8bin")), read_bytes(base()));
}

TEST_F(Cli, ConvertCutsRows) {
    good({"convert", base(), file("cut.u8bin"), "--offset", "5", "--count", "7"});
    const VectorFile whole(base()), cut(file("cut.u8bin"));
    ASSERT_EQ(cut.n(), 7);
    for (int i = 0; i < 7; ++i)
        EXPECT_TRUE(std::equal(cut.view().row(i), cut.view().row(i) + 128, whole.view().row(i + 5)));
    good({"convert", base(), file("tail.u8bin"), "--offset", "1990"});
    EXPECT_EQ(VectorFile(file("tail.u8bin")).n(), 10);
    EXPECT_TRUE(failed(run({"convert", base(), file("x.u8bin"), "--offset", "2000"}), 1, "2000"));
    EXPECT_TRUE(failed(run({"convert", base(), file("x.u8bin"), "--count", "2001"}), 1, "2001"));
    EXPECT_FALSE(std::filesystem::exists(file("x.u8bin")));
}

TEST_F(Cli, ConvertRefusesWhatDoesNotFit) {
    const auto refuses = [&](float value, const std::string& out, const Arguments& options, const std::string& text) {
        std::vector<float> rows(30, 1.0f);
        rows[17] = value;  // in row 5
        gnnd::io::write_vectors(file("in.fvecs"), {rows.data(), 10, 3});
        Arguments arguments{"convert", file("in.fvecs"), file(out)};
        arguments.insert(arguments.end(), options.begin(), options.end());
        return failed(run(arguments), 1, "row 5 holds " + text) && !std::filesystem::exists(file(out));
    };
    EXPECT_TRUE(refuses(2.5f, "x.u8bin", {}, "2.5"));
    EXPECT_TRUE(refuses(-1, "x.bvecs", {}, "-1"));
    EXPECT_TRUE(refuses(256, "x.u8bin", {}, "256"));
    EXPECT_TRUE(refuses(128, "x.i8bin", {}, "128"));
    EXPECT_TRUE(refuses(NAN, "x.ibin", {}, "nan"));
    EXPECT_TRUE(refuses(1e9f, "x.npy", {"--dtype", "f16"}, "1e+09"));
    EXPECT_TRUE(failed(run({"convert", base(), file("x.txt")}), 1, "x.txt"));
}

TEST_F(Cli, ConvertWritesAGraphsIdsAndDistances) {
    const gnnd::KnnGraph expected = GraphFile(graph()).read();
    for (const std::string format : {"ivecs", "ibin", "npy"}) {
        good({"convert", graph(), file("ids." + format)});
        const VectorFile ids(file("ids." + format));
        ASSERT_EQ(ids.dtype(), gnnd::DType::i32);
        std::vector<std::int32_t> read(2000 * 16);
        ids.read(0, 2000, read.data());
        EXPECT_TRUE(std::equal(read.begin(), read.end(), expected.ids()));
    }
    for (const std::string format : {"fvecs", "fbin", "npy"}) {
        good({"convert", graph(), file("distances." + format), "--distances", "--offset", "3", "--count", "2"});
        const VectorFile distances(file("distances." + format));
        ASSERT_EQ(distances.n(), 2);
        std::vector<float> read(2 * 16);
        distances.read(0, 2, read.data());
        EXPECT_TRUE(std::equal(read.begin(), read.end(), expected.distances_of(3)));
    }
    EXPECT_TRUE(failed(run({"convert", graph(), file("ids.fvecs")}), 1, "fvecs"));
    EXPECT_TRUE(failed(run({"convert", graph(), file("ids.npy"), "--dtype", "u8"}), 2, "--dtype"));
}

struct IndexCase {
    std::string type;
    Arguments options;
    friend std::ostream& operator<<(std::ostream& out, const IndexCase& c) { return out << c.type; }
};

class CliIndex : public Cli, public testing::WithParamInterface<IndexCase> {};

TEST_P(CliIndex, PlainFaissOpensAndSearchesIt) {
    const std::string path = file("index.faiss"), ids = file("found.ivecs");
    Arguments arguments{"index", graph(), base(), "--type", GetParam().type, "-o", path};
    good(arguments);
    const json report = good({"search", path, base(), "--truth", graph(), "--json"}).parsed();
    EXPECT_EQ(report["queries"], 2000);
    EXPECT_GT(report["queries_per_second"], 0);
    EXPECT_GE(report["recall"], 0.95);

    const std::unique_ptr<faiss::Index> index(faiss::read_index(path.c_str()));
    ASSERT_EQ(index->ntotal, 2000);
    const VectorFile vectors(base());
    std::vector<float> x(2000 * 128);
    gnnd::copy_as_f32(vectors.view(), 0, 2000, x.data());
    faiss::IndexFlatL2 flat(128);
    flat.add(2000, x.data());
    constexpr int kK = 10;
    std::vector<float> distances(2000 * kK), exact_distances(2000 * kK);
    std::vector<decltype(index->ntotal)> labels(2000 * kK), exact_labels(2000 * kK);
    index->search(2000, x.data(), kK, distances.data(), labels.data());
    flat.search(2000, x.data(), kK, exact_distances.data(), exact_labels.data());
    int hits = 0;
    for (int i = 0; i < 2000 * kK; ++i) hits += distances[i] <= exact_distances[i / kK * kK + kK - 1];
    EXPECT_GE(hits, 0.95 * 2000 * kK);

    arguments.insert(arguments.end(), GetParam().options.begin(), GetParam().options.end());
    EXPECT_EQ(good(arguments).parsed()["type"], GetParam().type);
    const Result wide = good({"search", path, base(), "-k", "5", "--ef", "200", "--truth", graph(), "-o", ids});
    EXPECT_TRUE(matches(wide.out, "^Recall@5 (0[.]9[0-9]{3}|1[.]0000)\n")) << wide.out;
    const VectorFile found(ids);
    EXPECT_EQ(found.n(), 2000);
    EXPECT_EQ(found.d(), 5);
    // What was found is a truth of its own: the search agrees with itself, and the object itself was left out.
    std::vector<std::int32_t> row(5);
    found.read(77, 1, row.data());
    EXPECT_EQ(std::count(row.begin(), row.end(), 77), 0);
}

TEST_P(CliIndex, AsksForNoMoreThanThereIs) {
    const std::string path = file("index.faiss"), ids = file("found.ivecs");
    good({"index", graph(), base(), "--type", GetParam().type, "-o", path});
    good({"search", path, base(10), "-k", "2100", "--ef", "5000", "-o", ids});
    const VectorFile found(ids);
    ASSERT_EQ(found.d(), 2100);
    std::vector<std::int32_t> row(2100);
    found.read(7, 1, row.data());
    EXPECT_EQ(row[0], 7);
    EXPECT_EQ(std::count(row.begin() + 2000, row.end(), -1), 100);
}

INSTANTIATE_TEST_SUITE_P(All, CliIndex,
                         testing::Values(IndexCase{"nsg", {"--R", "24", "--search-L", "80", "--json"}},
                                         IndexCase{"hnsw", {"--M", "12", "--ef-search", "80", "--json"}},
                                         IndexCase{"nndescent", {"--search-L", "80", "--json"}}),
                         [](const auto& info) { return info.param.type; });

TEST_F(Cli, SearchComparesWithAFileOfIds) {
    const std::string index = file("flat.faiss");
    const VectorFile vectors(base());
    std::vector<float> x(2000 * 128);
    gnnd::copy_as_f32(vectors.view(), 0, 2000, x.data());
    faiss::IndexFlatL2 flat(128);
    flat.add(2000, x.data());
    faiss::write_index(&flat, index.c_str());
    good({"search", index, base(), "-k", "6", "-o", file("truth.ibin")});
    EXPECT_EQ(good({"search", index, base(), "-k", "5", "--truth", file("truth.ibin"), "--json"}).parsed()["recall"],
              1.0);
    EXPECT_TRUE(matches(good({"search", index, base()}).out, "^2000 queries in .* queries/s\n$"));

    EXPECT_TRUE(failed(run({"search", index, base(), "-k", "7", "--truth", file("truth.ibin")}), 1, "truth.ibin"));
    EXPECT_TRUE(failed(run({"search", index, base(1000), "--truth", file("truth.ibin")}), 1, "1000 queries"));
    EXPECT_TRUE(failed(run({"search", index, base(), "--truth", base()}), 1, "not ids"));
    EXPECT_TRUE(failed(run({"search", index, base(), "--ef", "9"}), 1, "--ef"));
    EXPECT_TRUE(failed(run({"search", graph(), base()}), 1, ""));
    EXPECT_TRUE(failed(run({"search", file("none"), base()}), 1, "none"));
    gnnd::io::write_vectors(file("narrow.fvecs"), {x.data(), 10, 3});
    EXPECT_TRUE(failed(run({"search", index, file("narrow.fvecs")}), 1, "3 components"));
}

TEST_F(Cli, BadFilesEndWithOne) {
    EXPECT_TRUE(failed(run({"build", file("none.fvecs"), "-o", file("g")}), 1, "none.fvecs"));
    EXPECT_TRUE(failed(run({"build", file("none.txt"), "-o", file("g")}), 1, "none.txt"));
    EXPECT_TRUE(failed(run({"build", base(), "-o", file("no/such/g")}), 1, "no/such"));
    EXPECT_TRUE(failed(run({"build", base(), "-o", dir_.path()}), 1, "folder"));
    EXPECT_TRUE(failed(run({"build", base(), "-o", file("g"), "--stats", file("no/s.json")}), 1, "no/s.json"));
    EXPECT_TRUE(failed(run({"build", base(), "-o", file("g"), "--device", "cuda:0"}), 1, "cuda"));
    write_bytes(file("empty.fvecs"), "");
    EXPECT_TRUE(failed(run({"build", file("empty.fvecs"), "-o", file("g"), "-q"}), 1, "empty.fvecs"));
    std::vector<float> rows(300, 1.0f);
    rows[100] = NAN;
    gnnd::io::write_vectors(file("nan.fvecs"), {rows.data(), 100, 3});
    EXPECT_TRUE(failed(run({"build", file("nan.fvecs"), "-o", file("g"), "-q"}), 1, "33"));
    EXPECT_TRUE(failed(run({"eval", base(), base()}), 1, base()));
    EXPECT_TRUE(failed(run({"index", graph("chi2"), base(), "--type", "nsg", "-o", file("i")}), 1, "chi2"));
    EXPECT_FALSE(std::filesystem::exists(file("g")));
    EXPECT_FALSE(std::filesystem::exists(file("i")));
}

TEST_F(Cli, AFullDiskLeavesTheOldFile) {
    const std::string out = file("out.npy"), vectors = base(), neighbors = graph();
    write_bytes(out, "old");
    const std::size_t before = dir_.entries();
    for (const Arguments& arguments :
         {Arguments{"build", vectors, "-q", "-o", out}, Arguments{"exact", vectors, "-o", out},
          Arguments{"convert", vectors, out}, Arguments{"index", neighbors, vectors, "--type", "hnsw", "-o", out}}) {
        Result result;
        {
            const gnnd::test::FullDisk disk(50000);
            result = run(arguments);
        }
        EXPECT_TRUE(failed(result, 1, "out.npy")) << arguments[0];
        EXPECT_EQ(read_bytes(out), "old") << arguments[0];
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
        execl(GNND_TOOL, "gnnd", "info", kSample.c_str(), static_cast<char*>(nullptr));
        _exit(127);
    }
    EXPECT_EQ(wait(pid), 1);
}

class CliSignal : public Cli, public testing::WithParamInterface<int> {};

TEST_P(CliSignal, EndsABuildWithoutATrace) {
    const std::string out = file("g.gnnd");
    write_bytes(out, "old");
    const pid_t pid = spawn({"build", kSample, "-k", "32", "--delta", "0", "--iterations", "1000000", "-o", out});
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (read_bytes(logs_.file("err")).find("iteration 1:") == std::string::npos &&
           std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    kill(pid, GetParam());
    EXPECT_EQ(wait(pid), 128 + GetParam());
    EXPECT_NE(read_bytes(logs_.file("err")).find("gnnd: interrupted"), std::string::npos);
    EXPECT_EQ(read_bytes(out), "old");
    EXPECT_EQ(dir_.entries(), 1u);
}

TEST_P(CliSignal, EndsAnExactBuildWithoutATrace) {
    const std::string big = file("big.fvecs");
    const VectorFile sample(kSample);
    std::vector<float> x(20000 * 128);
    gnnd::copy_as_f32(sample.view(), 0, 20000, x.data());
    gnnd::io::VectorWriter writer(big, 60000, 128, gnnd::DType::f32);
    for (int i = 0; i < 3; ++i) writer.append(x.data(), 20000);
    writer.commit();
    const pid_t pid = spawn({"exact", big, "-o", file("g.gnnd")});
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    kill(pid, GetParam());
    EXPECT_EQ(wait(pid), 128 + GetParam());
    EXPECT_EQ(dir_.entries(), 1u);
}

INSTANTIATE_TEST_SUITE_P(All, CliSignal, testing::Values(SIGINT, SIGTERM),
                         [](const auto& info) { return info.param == SIGINT ? "INT" : "TERM"; });

}  // namespace

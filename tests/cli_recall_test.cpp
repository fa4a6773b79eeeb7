// SPDX-License-Identifier: MIT
// The tool tells the recall that a graph has.
#include <fstream>
#include <random>
#include <string_view>
#include <vector>

#include "tests/cli_fixture.h"

namespace gnnd {
namespace {

using test::Arguments;
using test::failed;
using test::json;
using test::matches;

class CliRecall : public test::Cli {};

TEST_F(CliRecall, IsMeasuredReportedAndKept) {
    const std::string graph = file("g.gnnd");
    const json report =
        good({"build", base(20000), "-k", "16", "-o", graph, "--json", "-q", "--device", "cpu"}).parsed();
    EXPECT_EQ(report["stop"], "recall");
    EXPECT_EQ(report["params"]["recall"].dump(), "0.99");
    EXPECT_EQ(report["recall_at"], 10);
    EXPECT_GE(report["recall_low"], 0.99);
    EXPECT_LE(report["recall_low"], report["recall"]);
    EXPECT_LE(report["recall"], report["recall_high"]);
    EXPECT_GE(report["recall_objects"], 256);
    EXPECT_GT(report["recall_seconds"], 0);
    EXPECT_LT(report["recall_seconds"], report["seconds"]);
    EXPECT_FALSE(report.contains("warning"));
    const json info = good({"info", graph, "--json"}).parsed();
    for (const char* name : {"recall", "recall_low", "recall_high", "recall_at", "recall_objects"})
        EXPECT_EQ(info[name], report[name]) << name;
    const json eval = good({"eval", graph, base(20000), "--json"}).parsed();
    EXPECT_NEAR(eval["recall"], report["recall"], 0.01);
}

TEST_F(CliRecall, SaysNothingOfCosinesThatAreRounded) {
    constexpr std::int64_t kRows = 500, kDim = 8;
    std::mt19937 random(3);
    std::normal_distribution<float> normal(1000);
    std::vector<float> rows(kRows * kDim);
    for (float& component : rows) component = normal(random);
    const std::string vectors = file("near.npy"), graph = file("g.gnnd");
    io::write_vectors(vectors, {rows.data(), kRows, kDim});
    const Arguments build{"build", vectors, "-k", "10", "--metric", "cosine", "-o", graph, "-q", "--device", "cpu"};
    EXPECT_TRUE(matches(good(build).err, "^gnnd: warning: the cosines of 100% of the objects with [^\n]*\n$"));
    for (const Arguments& command : {build, {"eval", graph, vectors, "--device", "cpu"}}) {
        Arguments with_json = command;
        with_json.emplace_back("--json");
        const json report = good(with_json).parsed();
        EXPECT_EQ(report["recall"], 1);
        EXPECT_EQ(report["unresolved"], 1);
        EXPECT_EQ(report["warning"].get<std::string>().substr(0, 11), "the cosines");
    }
}

TEST_F(CliRecall, SaysNothingOfWhatFloat32MovesOfFloat64) {
    std::mt19937 random(3);
    std::uniform_real_distribution<double> places(0, 0.002);
    std::vector<double> rows(1000 * 2), columns(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i] = places(random) + (i % 2 == 0 ? 52.52 : 13.405);
        columns[i % 2 * 1000 + i / 2] = rows[i];
    }
    const std::string vectors = file("city.npy"), by_columns = file("columns.npy"), graph = file("g.gnnd"),
                      merged = file("merged.gnnd");
    const auto write = [](const std::string& path, const std::string& fortran, const std::vector<double>& numbers) {
        std::string header = "{'descr': '<f8', 'fortran_order': " + fortran + ", 'shape': (1000, 2), }";
        header.resize(117, ' ');
        std::ofstream(path, std::ios::binary)
            << "\x93NUMPY\x01" << '\0' << char(118) << '\0' << header << '\n'
            << std::string_view(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double));
    };
    write(vectors, "False", rows);
    write(by_columns, "True", columns);
    const Arguments build{"build", vectors, "-k", "12", "-o", graph, "-q", "--device", "cpu"},
        merge{"merge", graph, vectors, graph, vectors, "-o", merged, "-q", "--device", "cpu"};
    for (const Arguments& command : {build, {"eval", graph, vectors, "--device", "cpu"}, merge})
        EXPECT_TRUE(matches(good(command).err, "moves those of [^\n]*city.npy by [^\n]* neighbour 10 within 256 times"))
            << command[0];
    Arguments other = build;
    other[1] = by_columns;
    EXPECT_TRUE(matches(good(other).err, "moves those of [^\n]*columns.npy by "));
    other.insert(other.end(), {"--metric", "ip", "--json"});
    EXPECT_FALSE(good(other).parsed().contains("warning"));
}

TEST_F(CliRecall, IsToldBesideWhatIsFoundLater) {
    const std::string graph = file("g.gnnd");
    const json report =
        good({"build", base(20000), "-k", "16", "-o", graph, "--json", "-q", "--device", "cpu"}).parsed();
    const Arguments eval{"eval", graph, base(20000), "--truth", "exhaustive", "--device", "cpu", "--queries", "2000"};
    const test::Result text = good(eval);
    EXPECT_TRUE(
        matches(text.out,
                "^Recall@10 0[.]99[0-9]+\nmeasured by the build 0[.]99[0-9]+ [(]0[.]99[0-9]+ to 0[.]99[0-9]+[)]; "
                "here 0[.]99[0-9]+: (within|0[.]00[0-9]+ (below|above)) its interval\n"
                "2000 of 20000 objects searched exactly in .* s on cpu\n$"))
        << text.out;
    const auto as_json = [&](Arguments more) {
        Arguments all = eval;
        all.insert(all.end(), more.begin(), more.end());
        all.push_back("--json");
        return good(all).parsed();
    };
    const json here = as_json({});
    EXPECT_EQ(here["truth"], "exhaustive");
    EXPECT_EQ(here["build"]["recall"], report["recall"]);
    EXPECT_EQ(here["build"]["recall_low"], report["recall_low"]);
    EXPECT_NEAR(here["build"]["difference"], here["recall"].get<double>() - report["recall"].get<double>(), 1e-12);
    const bool within = report["recall_low"] <= here["recall"] && here["recall"] <= report["recall_high"];
    EXPECT_EQ(here["build"]["within"], within);
    EXPECT_FALSE(as_json({"-k", "5"}).contains("build")) << "measured was Recall@10";

    Arguments by_faiss = eval;
    by_faiss[4] = "faiss";
    by_faiss.push_back("--json");
    const json independent = good(by_faiss).parsed();
    EXPECT_EQ(independent["truth"], "faiss");
    EXPECT_EQ(independent["recall"], here["recall"]);
    EXPECT_EQ(independent["build"], here["build"]);
    EXPECT_TRUE(failed(run({"eval", graph, base(20000), "--truth", "none"}), 2, "--truth"));
}

TEST_F(CliRecall, ThatLimitsForbidIsWarnedOf) {
    const Arguments arguments{"build",        base(2000), "-k",      "4", "-o",       file("g"),
                              "--iterations", "0",        "--trees", "1", "--device", "cpu"};
    const test::Result result = good(arguments);
    EXPECT_TRUE(matches(result.err,
                        "gnnd: warning: the graph's recall is less than the 0.99 asked for: "
                        "Recall@4 0[.][0-9]+ [+]- 0[.][0-9]+, measured on [0-9,]+ objects"))
        << result.err;
    Arguments as_json = arguments;
    as_json.insert(as_json.end(), {"--json", "-q"});
    const json report = good(as_json).parsed();
    EXPECT_EQ(report["stop"], "recall_missed");
    EXPECT_LT(report["recall"], 0.99);
    EXPECT_TRUE(report["warning"].get<std::string>().starts_with("the graph's recall is less than the 0.99"));
}

TEST_F(CliRecall, OfAllPairsIsOne) {
    for (const Arguments& way : {Arguments{"--recall", "1"}, {"--method", "exhaustive", "--threads", "1"}}) {
        Arguments arguments{"build", base(2000), "-o", file("g"), "--json", "-q", "--device", "cpu"};
        arguments.insert(arguments.end(), way.begin(), way.end());
        const json report = good(arguments).parsed();
        EXPECT_EQ(report["stop"], "exact");
        EXPECT_EQ(report["recall"], 1);
        EXPECT_EQ(report["recall_low"], 1);
        EXPECT_EQ(report["recall_objects"], 2000);
        EXPECT_EQ(good({"eval", file("g"), base(2000), "--json"}).parsed()["recall"], 1);
    }
}

TEST_F(CliRecall, OfZeroIsThePapersRule) {
    const json report =
        good({"build", base(2000), "-o", file("g"), "--json", "-q", "--recall", "0", "--device", "cpu"}).parsed();
    EXPECT_EQ(report["stop"], "converged");
    EXPECT_FALSE(report.contains("recall"));
    EXPECT_FALSE(good({"info", file("g"), "--json"}).parsed().contains("recall"));
}

TEST_F(CliRecall, OfShardsIsThatOfTheWhole) {
    const std::string work = file("work"), one = file("one.gnnd");
    Arguments arguments{"build", base(5000), "-k", "8", "--work", work, "--shards", "3", "--device", "cpu"};
    arguments.insert(arguments.end(), {"--iterations", "0", "--trees", "1"});
    const test::Result result = good(arguments);
    EXPECT_TRUE(matches(result.err,
                        "gnnd: warning: the graph's recall is less than the 0.99 asked for: "
                        "Recall@8 0[.][0-9]+ [+]- 0[.][0-9]+, measured on 1,024 objects"))
        << result.err;
    EXPECT_TRUE(matches(result.out, "recall      Recall@8 0[.][0-9]+ [+]- 0[.][0-9]+, measured on 1,024 objects"))
        << result.out;
    arguments.insert(arguments.end(), {"--resume", "--json", "-q"});
    const json report = good(arguments).parsed();
    EXPECT_EQ(report["stop"], "recall_missed");
    EXPECT_TRUE(report["warning"].get<std::string>().starts_with("the graph's recall is less than the 0.99"));
    good({"convert", work, one});
    for (const std::string& graph : {work, one}) {
        const json info = good({"info", graph, "--json"}).parsed();
        for (const char* name : {"recall", "recall_low", "recall_high", "recall_at", "recall_objects"})
            EXPECT_EQ(info[name], report[name]) << graph << " " << name;
    }
    const json eval = good({"eval", work, base(5000), "-k", "8", "--json"}).parsed();
    EXPECT_NEAR(eval["recall"], report["recall"], 0.02);
}

TEST_F(CliRecall, HasNoMeaningForOtherMethods) {
    for (const char* method : {"exhaustive", "ivfpq", "nndescent", "exact"})
        EXPECT_TRUE(failed(run({"build", base(), "-o", file("g"), "--method", method, "--recall", "0.9"}), 2,
                           "--recall: has no meaning for --method"));
}

}  // namespace
}  // namespace gnnd

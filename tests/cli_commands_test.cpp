// SPDX-License-Identifier: MIT
// The tool's commands around a graph: eval, exact, info, convert, index, search.
#include <faiss/IndexFlat.h>
#include <faiss/index_io.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "gnnd/io/graph_file.h"
#include "tests/cli_fixture.h"

namespace gnnd::test {
namespace {

using io::GraphFile;
using io::VectorFile;

class CliMetric : public Cli, public testing::WithParamInterface<Metric> {};

TEST_P(CliMetric, BuildsEvaluatesAndComparesWithExact) {
    const std::string metric(name_of(GetParam())), exact = file("exact.gnnd");
    const json approximate = good({"eval", graph(metric), base(), "--json"}).parsed();
    EXPECT_EQ(approximate["metric"], metric);
    EXPECT_GT(approximate["recall"], 0.95);
    good({"exact", base(), "-k", "10", "--metric", metric, "-o", exact});
    EXPECT_EQ(good({"eval", exact, base(), "--json", "--queries", "500"}).parsed()["recall"], 1.0);
}

INSTANTIATE_TEST_SUITE_P(All, CliMetric, testing::ValuesIn(kMetrics),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_F(Cli, EvalPrintsRecall) {
    const Result result = good({"eval", graph(), base(), "--k", "5", "--queries", "300", "--seed", "3"});
    EXPECT_TRUE(matches(result.out, "^Recall@5 (0[.]9[0-9]{3}|1[.]0000)\n300 of 2000 objects .* s on [a-z0-9:]+\n$"))
        << result.out;
    const json all = good({"eval", graph(), base(), "--queries", "0", "--json"}).parsed();
    EXPECT_EQ(all["queries"], 2000);
    EXPECT_EQ(all["k"], 10);
    EXPECT_EQ(all["recalls"].size(), 2U);
    EXPECT_EQ(all["recalls"]["10"], all["recall"]);
    EXPECT_GE(all["recalls"]["1"], all["recall"]);
    for (const char* truth : {"faiss", "exhaustive"}) {
        const json five = good({"eval", graph(), base(), "--k", "5", "--truth", truth, "--json"}).parsed()["recalls"];
        EXPECT_EQ(five.size(), 2U) << truth;
        EXPECT_GT(five["5"], 0.9) << truth;
        EXPECT_EQ(five, good({"eval", graph(), base(), "--k", "5", "--json"}).parsed()["recalls"]) << truth;
    }
    EXPECT_TRUE(
        failed(run({"eval", graph(), base(), "-k", "17"}), 1, "-k 17: " + graph() + " has 16 neighbours per object"));
    EXPECT_TRUE(failed(run({"eval", graph(), base(1000)}), 1, "1000"));

    good({"build", base(), "-k", "4", "-o", file("short.gnnd"), "-q"});
    EXPECT_EQ(good({"eval", file("short.gnnd"), base(), "--json"}).parsed()["k"], 4) << "no more than the graph has";
}

TEST_F(Cli, BaselinesAreBuiltByName) {
    const std::vector<std::pair<std::string, std::vector<std::string>>> steps{
        {"exact", {"search"}}, {"ivfpq", {"train", "add", "search"}}, {"nndescent", {"add", "init", "iterations"}}};
    for (const auto& [method, names] : steps) {
        Arguments arguments{"build", base(500), "-k",     "5",       "--method",    method,
                            "-o",    file("g"), "--json", "--stats", file("s.json")};
        if (method == "ivfpq")
            arguments.insert(arguments.end(), {"--nlist", "4", "--code-bytes", "8", "--nprobe", "4"});
        if (method == "nndescent") arguments.insert(arguments.end(), {"--iterations", "4", "--seed", "3"});
        const json report = good(arguments).parsed();
        EXPECT_EQ(report["method"], method);
        EXPECT_EQ(report["k"], 5);
        for (const std::string& name : names) EXPECT_TRUE(report["timing"].contains(name)) << method << " " << name;
        EXPECT_EQ(json::parse(read_bytes(file("s.json"))), report);
        EXPECT_GT(good({"eval", file("g"), base(500), "-k", "5", "--json"}).parsed()["recall"],
                  method == "ivfpq" ? 0.5 : 0.9);
    }
    EXPECT_EQ(good({"build", base(500), "-o", file("g"), "--method", "gnnd", "--json", "-q"}).parsed()["method"],
              "gnnd");
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
    EXPECT_EQ(info["version"], 4);
    EXPECT_EQ(info["n"], 2000);
    EXPECT_EQ(info["k"], 16);
    EXPECT_EQ(info["metric"], "l2");
    EXPECT_EQ(info["dtype"], "u8");
    EXPECT_EQ(info["d"], 128);
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

TEST_F(Cli, ConvertNamesTheTypesThatNpyHolds) {
    const std::vector<float> ones(6, 1.0f);
    io::write_vectors(file("ones.fbin"), {ones.data(), 2, 3});
    const std::string help = good({"convert", "--help"}).out, begin = "element type for npy: ";
    const std::size_t at = help.find(begin);
    ASSERT_NE(at, std::string::npos) << help;
    const std::string list = " " + help.substr(at + begin.size(), help.find(';', at) - at - begin.size()) + ",";
    for (const DType dtype : kDTypes) {
        const std::string name(name_of(dtype));
        const bool named = list.find(" " + name + ",") != std::string::npos;
        EXPECT_EQ(run({"convert", file("ones.fbin"), file(name + ".npy"), "--dtype", name}).code == 0, named) << name;
    }
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
    EXPECT_EQ(VectorFile(file("half.npy")).dtype(), DType::f16);
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
        io::write_vectors(file("in.fvecs"), {rows.data(), 10, 3});
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
    const KnnGraph expected = GraphFile(graph()).read();
    for (const std::string format : {"ivecs", "ibin", "npy"}) {
        good({"convert", graph(), file("ids." + format)});
        const VectorFile ids(file("ids." + format));
        ASSERT_EQ(ids.dtype(), DType::i32);
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
    copy_as_f32(vectors.view(), 0, 2000, x.data());
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
    // The search leaves each object itself out, so that its ids may serve as a truth.
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
                                         IndexCase{"hnsw",
                                                   {"--M", "12", "--ef-search", "80", "--base-level-only", "--json"}},
                                         IndexCase{"nndescent", {"--search-L", "80", "--json"}}),
                         [](const auto& info) { return info.param.type; });

TEST_F(Cli, SearchTellsAGraphFromAnIndex) {
    const std::string work = file("work");
    good({"build", base(), "-k", "8", "--shards", "2", "--work", work, "-q"});
    for (const std::string& path : {graph(), work})
        EXPECT_TRUE(failed(run({"search", path, base()}), 1, path + " is a graph; `gnnd index` makes an index of it"));
    EXPECT_TRUE(failed(run({"search", base(), base()}), 1, "not recognized"));
}

TEST_F(Cli, SearchComparesWithAFileOfIds) {
    const std::string index = file("flat.faiss");
    const VectorFile vectors(base());
    std::vector<float> x(2000 * 128);
    copy_as_f32(vectors.view(), 0, 2000, x.data());
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
    io::write_vectors(file("narrow.fvecs"), {x.data(), 10, 3});
    EXPECT_TRUE(failed(run({"search", index, file("narrow.fvecs")}), 1, "3 components"));
}

}  // namespace
}  // namespace gnnd::test

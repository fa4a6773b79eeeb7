// SPDX-License-Identifier: MIT
// `gnnd graph`: every operation and option against the library, the formats, and what is refused.
#include <cstdlib>
#include <sstream>

#include "gnnd/io/csr_file.h"
#include "gnnd/operations.h"
#include "tests/cli_fixture.h"
#include "tests/npz.h"

namespace gnnd::test {
namespace {

class CliGraph : public Cli {
  protected:
    KnnGraph built(const std::string& metric = "l2") const { return io::GraphFile(graph(metric)).read(); }

    void expect_npz(const std::string& path, const CsrGraph& expected) const {
        auto members = unzip(read_bytes(path));
        ASSERT_EQ(members.size(), 5u);
        const std::string n = std::to_string(expected.n), offsets = std::to_string(expected.n + 1);
        const std::string entries = "(" + std::to_string(expected.entries()) + ",)";
        EXPECT_EQ(npy<std::int32_t>(members["indptr.npy"], "<i4", "(" + offsets + ",)"),
                  std::vector<std::int32_t>(expected.indptr.begin(), expected.indptr.end()));
        EXPECT_EQ(npy<std::int32_t>(members["indices.npy"], "<i4", entries),
                  std::vector(expected.indices.begin(), expected.indices.end()));
        EXPECT_EQ(npy<float>(members["data.npy"], "<f4", entries),
                  std::vector(expected.values.begin(), expected.values.end()));
        EXPECT_EQ(npy<std::int64_t>(members["shape.npy"], "<i8", "(2,)"),
                  (std::vector<std::int64_t>{expected.n, expected.n}));
        EXPECT_EQ(npy<char>(members["format.npy"], "|S3", "()"), (std::vector<char>{'c', 's', 'r'}));
    }

    void expect_mtx(const std::string& path, const CsrGraph& expected, bool symmetric) const {
        std::istringstream file(read_bytes(path));
        std::string line;
        std::getline(file, line);
        EXPECT_EQ(line, std::string("%%MatrixMarket matrix coordinate real ") + (symmetric ? "symmetric" : "general"));
        std::int64_t rows = 0, columns = 0, entries = 0;
        file >> rows >> columns >> entries;
        EXPECT_EQ(rows, expected.n);
        EXPECT_EQ(columns, expected.n);
        EXPECT_EQ(entries, expected.entries() / (symmetric ? 2 : 1));
        for (std::int64_t i = 0; i < expected.n; ++i)
            for (std::int64_t e = expected.indptr[i]; e < expected.indptr[i + 1]; ++e) {
                if (symmetric && expected.indices[e] > i) continue;
                std::int64_t row = 0, column = 0;
                std::string value;
                file >> row >> column >> value;
                ASSERT_EQ(row, i + 1);
                ASSERT_EQ(column, expected.indices[e] + 1);
                ASSERT_EQ(std::strtof(value.c_str(), nullptr), expected.values[e]);  // stof throws for the smallest
            }
        EXPECT_FALSE(file >> line) << line;
    }

    /// The operation with these options, in both formats.
    json expect_matrix(const Arguments& arguments, const CsrGraph& expected, bool symmetric = true,
                       const std::string& of = "") const {
        SCOPED_TRACE(arguments[0] + " " + arguments.back());
        Arguments all{"graph", arguments[0], of.empty() ? graph() : of, "-o", file("m.npz"), "--json"};
        all.insert(all.end(), arguments.begin() + 1, arguments.end());
        json report = good(all).parsed();
        EXPECT_EQ(report["entries"], expected.entries());
        EXPECT_EQ(report["bytes"], std::filesystem::file_size(file("m.npz")));
        expect_npz(file("m.npz"), expected);
        all[4] = file("m.mtx");
        good(all);
        expect_mtx(file("m.mtx"), expected, symmetric);
        return report;
    }

    json expect_labels(const Arguments& arguments, const Array<std::int32_t>& expected) const {
        Arguments all{"graph", arguments[0], graph(), "-o", file("l.npy"), "--json"};
        all.insert(all.end(), arguments.begin() + 1, arguments.end());
        json report = good(all).parsed();
        const std::vector<std::int32_t> labels(expected.begin(), expected.end());
        EXPECT_EQ(npy<std::int32_t>(read_bytes(file("l.npy")), "<i4", "(2000,)"), labels);
        for (const char* format : {"l.ivecs", "l.ibin"}) {
            all[4] = file(format);
            good(all);
            const io::VectorFile rows(file(format));
            EXPECT_EQ(rows.d(), 1);
            std::vector<std::int32_t> read(2000);
            rows.read(0, 2000, read.data());
            EXPECT_EQ(read, labels);
        }
        return report;
    }
};

TEST_F(CliGraph, MatricesAreThoseOfTheLibrary) {
    const KnnGraph g = built();
    EXPECT_FALSE(expect_matrix({"knn"}, neighbors_graph(g), false).contains("full_rows"));
    expect_matrix({"symmetric"}, symmetric_graph(g));
    expect_matrix({"mutual", "-k", "5"}, mutual_graph(g, {5, {}, {}, 0}));
    expect_matrix({"mutual", "-k", "0", "--threads", "1"}, mutual_graph(g));
    EXPECT_EQ(expect_matrix({"mutual", "--device", "cpu"}, mutual_graph(g))["device"], "cpu");
    const EdgeParams cut{0, {}, 30000.f, 0};
    const json report = expect_matrix({"symmetric", "--radius", "30000"}, symmetric_graph(g, cut));
    EXPECT_EQ(report["full_rows"], full_rows(g, cut));
    EXPECT_GT(report["full_rows"], 0);
    const EdgeParams distances{8, GraphValues::distance, 173.25f, 0};
    const json cut_report = expect_matrix({"knn", "-k", "8", "--values", "distance", "--radius", "173.25"},
                                          neighbors_graph(g, distances), false);
    EXPECT_EQ(cut_report["values"], "distance");
    EXPECT_EQ(cut_report["k"], 8);
    EXPECT_EQ(cut_report["n"], 2000);
    EXPECT_EQ(cut_report["metric"], "l2");
    EXPECT_EQ(cut_report["operation"], "knn");
    expect_matrix({"symmetric", "--radius", "-1"}, symmetric_graph(g, {0, {}, -1.f, 0}));
    const KnnGraph cosine = built("cosine");
    expect_matrix({"symmetric", "--radius", "0.9"}, symmetric_graph(cosine, {0, {}, 0.9f, 0}), true, graph("cosine"));
    expect_matrix({"mutual", "--values", "distance"}, mutual_graph(cosine, {0, GraphValues::distance, {}, 0}), true,
                  graph("cosine"));
}

TEST_F(CliGraph, WeightsAreThoseOfTheLibrary) {
    const KnnGraph g = built();
    expect_matrix({"jaccard"}, jaccard_graph(g));
    expect_matrix({"jaccard", "--include-self", "--prune", "0.125", "-k", "10"},
                  jaccard_graph(g, {10, true, 0.125f, 0}));
    expect_matrix({"fuzzy"}, fuzzy_simplicial_set(g));
    expect_matrix(
        {"fuzzy", "--local-connectivity", "2.5", "--set-op-mix-ratio", "0.5", "--bandwidth", "1.5", "-k", "12"},
        fuzzy_simplicial_set(g, {12, 2.5f, 0.5f, 1.5f, 0}));
    expect_matrix({"reachability"}, mutual_reachability_graph(g));
    expect_matrix({"reachability", "--min-samples", "9", "--alpha", "0.75"},
                  mutual_reachability_graph(g, {0, 9, 0.75f, 0}));
}

TEST_F(CliGraph, LabelsAreThoseOfTheLibrary) {
    const KnnGraph g = built();
    const EdgeParams cut{0, {}, 30000.f, 0};
    const Components either = connected_components(g, cut), both = connected_components(mutual_graph(g, cut));
    json report = expect_labels({"components", "--radius", "30000"}, either.labels);
    EXPECT_EQ(report["components"], either.sizes.size());
    EXPECT_EQ(report["largest"], *std::max_element(either.sizes.begin(), either.sizes.end()));
    EXPECT_EQ(report["alone"], std::count(either.sizes.begin(), either.sizes.end(), 1));
    EXPECT_GT(both.sizes.size(), either.sizes.size());
    EXPECT_EQ(expect_labels({"components", "--radius", "30000", "--mutual"}, both.labels)["components"],
              both.sizes.size());
    const Duplicates copies = duplicates(g, {20000, {}, 0, 0});
    report = expect_labels({"duplicates", "--threshold", "20000"}, copies.labels);
    EXPECT_GT(report["groups"], 0);
    EXPECT_EQ(report["groups"], copies.sizes.size());
    EXPECT_EQ(report["objects"], std::accumulate(copies.sizes.begin(), copies.sizes.end(), 0));
    EXPECT_EQ(report["redundant"].get<std::int64_t>(),
              report["objects"].get<std::int64_t>() - report["groups"].get<std::int64_t>());
    EXPECT_EQ(report["full_rows"], copies.full);
    expect_labels({"duplicates", "--threshold", "141.421356", "--values", "distance", "-k", "3"},
                  duplicates(g, {141.421356f, GraphValues::distance, 3, 0}).labels);
    EXPECT_EQ(expect_labels({"duplicates"}, duplicates(g).labels)["objects"],
              std::count_if(g.distances(), g.distances() + 32000, [](float d) { return d == 0; }) > 0 ? 2 : 0);
}

TEST_F(CliGraph, EqualRowsOfTheBaseAreCopies) {
    std::vector<std::uint8_t> rows(1000 * 8, 7);  // all but the last ten are equal
    for (std::size_t i = 990 * 8; i < rows.size(); ++i) rows[i] = std::uint8_t(i * 37);
    io::write_vectors(file("copies.u8bin"), {rows.data(), 1000, 8, DType::u8, 0});
    good({"build", file("copies.u8bin"), "-k", "4", "-o", file("copies.gnnd"), "-q", "--recall", "0"});
    const json report = json::parse(good({"graph", "duplicates", file("copies.gnnd"), "-o", file("l.npy"), "--base",
                                          file("copies.u8bin"), "--json"})
                                        .out);
    EXPECT_EQ(report["groups"], 1);
    EXPECT_EQ(report["largest"], 990);
    EXPECT_TRUE(failed(run({"graph", "duplicates", file("copies.gnnd"), "-o", file("l.npy"), "--base", base()}), 1,
                       "has 1000 rows"));
    EXPECT_TRUE(failed(
        run({"graph", "duplicates", file("copies.gnnd"), "-o", file("copies.u8bin"), "--base", file("copies.u8bin")}),
        2, "copies.u8bin"));
}

TEST_F(CliGraph, AGraphInShardsIsOne) {
    good({"build", base(), "-k", "16", "--shards", "3", "--work", file("shards"), "-q"});
    good({"convert", file("shards"), file("one.gnnd")});
    const KnnGraph g = io::GraphFile(file("one.gnnd")).read();
    expect_matrix({"symmetric"}, symmetric_graph(g), true, file("shards"));
}

TEST_F(CliGraph, TellsWhatItDidAsText) {
    const std::string out = good({"graph", "mutual", graph(), "-o", file("m.NPZ"), "--radius", "1e5"}).out;
    EXPECT_TRUE(matches(out,
                        "^operation +mutual\nn +2000\nk +16\nmetric +l2\ndevice +cpu\nentries +[0-9]+\nvalues +metric\n"
                        "full_rows +[0-9]+\nseconds +[0-9.e-]+\noutput +.*m.NPZ\nbytes +[0-9]+\n$"))
        << out;
}

TEST_F(CliGraph, RefusesWhatHasNoMeaning) {
    const std::string g = graph();
    const auto refused = [&](Arguments arguments, int code, const std::string& text) {
        arguments.insert(arguments.begin(), "graph");
        return failed(run(arguments), code, text);
    };
    EXPECT_TRUE(refused({"knn", g}, 2, "--output is required"));
    EXPECT_TRUE(
        refused({"cluster", g, "-o", file("m.npz")}, 2, "unknown operation 'cluster'; known are knn, symmetric"));
    EXPECT_TRUE(
        refused({"knn", g, "-o", file("m.csv")}, 2, "m.csv: no sparse matrix by its extension, known are npz, mtx"));
    EXPECT_TRUE(refused({"components", g, "-o", file("m.npz")}, 2, "m.npz: labels are written as ivecs, ibin or npy"));
    EXPECT_TRUE(refused({"components", g, "-o", file("m.fvecs")}, 2, "labels are written as ivecs, ibin or npy"));
    EXPECT_TRUE(refused({"knn", g, "-o", ""}, 2, "may not be empty"));
    EXPECT_TRUE(refused({"knn", g, "-o", file("no/m.npz")}, 2, "no/m.npz"));
    EXPECT_TRUE(refused({"knn", file("none.gnnd"), "-o", file("m.npz")}, 1, "none.gnnd"));
    EXPECT_TRUE(refused({"knn", base(), "-o", file("m.npz")}, 1, "base2000.u8bin"));
    EXPECT_TRUE(refused({"knn", g, "-k", "17", "-o", file("m.npz")}, 1, "-k 17: " + g + " has 16 neighbours"));
    // Every option of another operation.
    const std::vector<std::pair<std::string, Arguments>> others{{"jaccard", {"--radius", "1"}},
                                                                {"fuzzy", {"--values", "metric"}},
                                                                {"knn", {"--include-self"}},
                                                                {"symmetric", {"--prune", "0.5"}},
                                                                {"jaccard", {"--local-connectivity", "1"}},
                                                                {"mutual", {"--set-op-mix-ratio", "1"}},
                                                                {"knn", {"--bandwidth", "1"}},
                                                                {"fuzzy", {"--min-samples", "5"}},
                                                                {"fuzzy", {"--alpha", "1"}},
                                                                {"knn", {"--mutual"}},
                                                                {"components", {"--base", base()}},
                                                                {"reachability", {"--threshold", "1"}}};
    for (const auto& [operation, options] : others) {
        Arguments arguments{operation, g, "-o", file("m.npz")};
        arguments.insert(arguments.end(), options.begin(), options.end());
        EXPECT_TRUE(refused(arguments, 2, options[0] + ": has no meaning for " + operation));
    }
    EXPECT_TRUE(refused({"duplicates", g, "-o", file("l.npy"), "--radius", "1"}, 2, "has no meaning for duplicates"));
    // Every number out of its range.
    const std::vector<std::pair<std::string, Arguments>> numbers{{"knn", {"--radius", "nan"}},
                                                                 {"jaccard", {"--prune", "1.5"}},
                                                                 {"fuzzy", {"--local-connectivity", "-1"}},
                                                                 {"fuzzy", {"--bandwidth", "0"}},
                                                                 {"fuzzy", {"--set-op-mix-ratio", "2"}},
                                                                 {"reachability", {"--min-samples", "0"}},
                                                                 {"knn", {"--threads", "-1"}},
                                                                 {"reachability", {"--alpha", "0"}},
                                                                 {"duplicates", {"--threshold", "nan"}}};
    for (const auto& [operation, options] : numbers)
        EXPECT_TRUE(refused({operation, g, "-o", file("l.npz"), options[0], options[1]}, 2,
                            options[0] + " " + options[1] + ": allowed are"));
    EXPECT_TRUE(refused({"fuzzy", g, "-o", file("m.npz"), "--local-connectivity", "17"}, 2, "--local-connectivity 17"));
    EXPECT_TRUE(refused({"reachability", g, "-o", file("m.npz"), "--min-samples", "17"}, 2,
                        "--min-samples 17: allowed are 1 to 16"));
    EXPECT_TRUE(refused({"fuzzy", graph("ip"), "-o", file("m.npz")}, 1, "no similarity of vectors of length 1"));
    EXPECT_FALSE(std::filesystem::exists(file("m.npz")));
}

TEST_F(CliGraph, AnOldFileSurvivesWhatFails) {
    write_bytes(file("m.npz"), "old");
    EXPECT_TRUE(failed(run({"graph", "fuzzy", graph("ip"), "-o", file("m.npz")}), 1, "length 1"));
    EXPECT_EQ(read_bytes(file("m.npz")), "old");
    EXPECT_TRUE(failed(run({"graph", "knn", graph(), "-o", file("m.npz")}, {"prlimit", "--fsize=100000"}), 1, "m.npz"));
    EXPECT_EQ(read_bytes(file("m.npz")), "old");
    std::filesystem::copy_file(graph(), file("g.npz"));
    EXPECT_TRUE(failed(run({"graph", "knn", file("g.npz"), "-o", file("g.npz")}), 2, "would be overwritten"));
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(file("m.npz")).parent_path()))
        files += entry.path().string().find(".tmp.") != std::string::npos;
    EXPECT_EQ(files, 0u);
}

}  // namespace
}  // namespace gnnd::test

// SPDX-License-Identifier: MIT
// The tool makes sure that outputs can be written, and says of files what is wrong with them.
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/cli_fixture.h"

namespace gnnd::test {
namespace {

using CliFiles = Cli;

TEST_F(CliFiles, OutputsThatCannotBeWrittenAreFoundBeforeTheWork) {
    const std::string missing = file("none.fvecs");  // never looked for
    ASSERT_EQ(mkfifo(file("pipe").c_str(), 0600), 0);
    write_bytes(file("protected"), "old");
    std::filesystem::permissions(file("protected"), std::filesystem::perms::owner_read);
    std::filesystem::create_directory(file("folder"));
    std::filesystem::permissions(file("folder"), std::filesystem::perms::none);
    std::vector<std::pair<std::string, std::string>> outputs{{"", "name"},
                                                             {"-", "nothing is written to standard output"},
                                                             {"/dev/null", "not a regular file"},
                                                             {file("pipe"), "not a regular file"},
                                                             {dir_.path(), "Is a directory"},
                                                             {file("no/such/g"), "No such file or directory"}};
    if (geteuid() != 0) {
        outputs.emplace_back(file("protected"), "Permission denied");
        outputs.emplace_back(file("folder/g"), "Permission denied");
    }
    for (const auto& [path, message] : outputs) {
        EXPECT_TRUE(failed(run({"build", missing, "-o", path}), 2, message)) << path;
        EXPECT_TRUE(failed(run({"exact", missing, "-o", path}), 2, message)) << path;
        EXPECT_TRUE(failed(run({"merge", missing, missing, missing, missing, "-o", path}), 2, message)) << path;
        EXPECT_TRUE(failed(run({"index", missing, missing, "--type", "nsg", "-o", path}), 2, message)) << path;
        EXPECT_TRUE(failed(run({"build", missing, "-o", file("g"), "--stats", path}), 2, message)) << path;
    }
    for (const std::string name : {"g.fvecs", "g.NPY"}) {
        const std::string message = file(name) + ": a file of that extension is read as vectors, not as a graph; " +
                                    file("g.gnnd") + " would be one";
        EXPECT_TRUE(failed(run({"build", missing, "-o", file(name)}), 2, message));
        EXPECT_TRUE(failed(run({"exact", missing, "-o", file(name)}), 2, message));
        EXPECT_TRUE(failed(run({"append", missing, missing, missing, "-o", file(name)}), 2, message));
    }
    std::filesystem::permissions(file("folder"), std::filesystem::perms::owner_all);
    EXPECT_EQ(dir_.entries(), 3u);
}

// Of two files that are not there yet only the names can be compared.
TEST_F(CliFiles, OneFileIsNotWrittenTwice) {
    const std::string vectors = base(100), queries = base(10), path = file("twice.npy");
    const Arguments in_folder{"sh", "-c", "cd " + dir_.path() + "; exec \"$@\"", "sh"};
    for (const auto& [a, b] : {std::pair<std::string, std::string>{path, path},
                               {path, "twice.npy"},
                               {"twice.npy", "./twice.npy"},
                               {"./twice.npy", "twice.npy"}})
        EXPECT_TRUE(failed(run({"exact", vectors, "--queries", queries, "-o", a, "--distances", b}, in_folder), 2,
                           b + " is named twice as a file to write"))
            << a << " " << b;
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(CliFiles, WhatIsWrongWithAVectorIsSaidOfARowOfAFile) {
    std::vector<float> rows(40, 1.0f);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = float(i);
    rows[2 * 15 + 1] = std::numeric_limits<float>::quiet_NaN();
    const std::string path = file("nan.fbin"), out = file("g"), message = path + ": row 15 holds NaN";
    io::write_vectors(path, {rows.data(), 20, 2});
    const Arguments build{"build", path, "-k", "4", "-q"};
    const std::vector<Arguments> ways{{"-o", out},
                                      {"-o", out, "--method", "exact"},
                                      {"-o", out, "--method", "nndescent"},
                                      {"--work", file("w"), "--shards", "2"}};
    for (const Arguments& way : ways) {
        Arguments arguments = build;
        arguments.insert(arguments.end(), way.begin(), way.end());
        EXPECT_TRUE(failed(run(arguments), 1, message)) << way.back();
    }
    EXPECT_TRUE(failed(run({"exact", path, "-k", "4", "-o", out}), 1, message));
    EXPECT_TRUE(failed(run({"exact", path, "--queries", path, "-o", file("i.npy")}), 1, message));
    const std::string whole = file("whole.fbin");
    io::write_vectors(whole, {rows.data(), 15, 2});
    EXPECT_TRUE(failed(run({"exact", whole, "--queries", path, "-o", file("i.npy")}), 1, message));
    EXPECT_TRUE(failed(run({"build", base(1), "-o", out}), 1, base(1) + ": 1 vectors; a graph needs 2"));
    EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(CliFiles, IdsTakenForVectorsAreNamed) {
    const std::vector<std::int32_t> numbers(40, 3);
    const std::vector<float> rows(40, 1.0f);
    const std::string ids = file("ids.npy"), vectors = file("v.fbin"), out = file("g");
    io::write_vectors(ids, {numbers.data(), 20, 2, DType::i32});
    io::write_vectors(vectors, {rows.data(), 20, 2});
    const std::vector<Arguments> commands{{"build", ids, "-k", "4", "-o", out, "-q"},
                                          {"build", ids, "-k", "4", "--dry-run"},
                                          {"build", ids, "-k", "4", "-o", out, "--method", "exact"},
                                          {"build", ids, "-k", "4", "--work", file("w")},
                                          {"build", ids, "-k", "4", "--work", file("w"), "--dry-run"},
                                          {"exact", ids, "--queries", vectors, "-o", file("i.npy")},
                                          {"exact", vectors, "--queries", ids, "-o", file("i.npy")},
                                          {"tune", ids, "-k", "4", "-q"},
                                          {"index", ids, "--factory", "GNND4,NSG8", "-o", out}};
    for (const Arguments& arguments : commands)
        EXPECT_TRUE(failed(run(arguments), 1, "gnnd: " + ids + ": vectors of i32; allowed are f32"))
            << testing::PrintToString(arguments);
}

// A file that is opened would get the stream's number, and with it what is printed.
TEST_F(CliFiles, AClosedStreamIsNoFileOfTheGraph) {
    const std::string work = file("work"), vectors = base();
    const Arguments closed{"sh", "-c", "exec \"$@\" >&- 2>&-", "sh"};
    const Result result = run({"build", vectors, "-k", "8", "--shards", "3", "--work", work}, closed);
    EXPECT_EQ(result.code, 1) << "the report cannot be printed";
    EXPECT_EQ(read_bytes(work + "/lock").find("tasks done"), std::string::npos);
    good({"eval", work, vectors, "--queries", "100"});
    EXPECT_EQ(run({"man"}, {"sh", "-c", "exec \"$@\" >&-", "sh"}).code, 1);
    EXPECT_EQ(run({"info", vectors}, {"sh", "-c", "exec \"$@\" <&-", "sh"}).code, 0);
}

TEST_F(CliFiles, AFileOfAGraphInShardsIsNoOutput) {
    const std::string work = file("work"), message = " is a file of the graph in shards in " + work;
    good({"build", base(), "-k", "8", "--shards", "2", "--work", work, "-q"});
    const std::string manifest = work + "/manifest.json", lists = work + "/lists-00001.1.gnnd";
    const std::string old = read_bytes(manifest);
    for (const std::string& path : {manifest, lists, work + "/lock"}) {
        EXPECT_TRUE(failed(run({"append", work, base(), base(), "-o", path}), 2, path + message));
        EXPECT_TRUE(failed(run({"build", base(), "-o", file("g"), "--stats", path}), 2, path + message));
        EXPECT_TRUE(failed(run({"build", base(), "--work", work, "--resume", "--stats", path}), 2, path + message));
    }
    std::filesystem::create_directory(file("new"));
    EXPECT_TRUE(failed(run({"build", base(), "--work", file("new"), "--stats", file("new/manifest.json")}), 2,
                       "is a file of the graph in shards in " + file("new")));
    EXPECT_EQ(read_bytes(manifest), old);
    good({"append", work, base(), base(1000), "-o", work + "/more.gnnd", "-q"});
    // Every file that is there is one of the graph, whatever the plan was.
    for (const char* plan : {"all", "near"}) {
        const std::string folder = file(plan);
        good({"build", base(), "-k", "8", "--shards", "3", "--plan", plan, "--work", folder, "-q"});
        for (const auto& entry : std::filesystem::directory_iterator(folder)) {
            const std::string path = entry.path(), bytes = read_bytes(path);
            EXPECT_TRUE(
                failed(run({"build", base(), "-o", path}), 2, path + " is a file of the graph in shards in " + folder));
            EXPECT_EQ(read_bytes(path), bytes) << path;
        }
    }
}

TEST_F(CliFiles, TellsOfAFewRowsOfVeryManyObjects) {
    const std::vector<std::int32_t> ids{1, 2147483646, 1, -1};
    const std::vector<float> distances(4, 1.0f);
    io::write_graph(file("g.gnnd"), {2, 2, Metric::L2, ids.data(), distances.data()}, DType::u8, 2147483647);
    const json info = good({"info", file("g.gnnd"), "--json"}).parsed();
    EXPECT_EQ(info["objects"], 2147483647);
    EXPECT_EQ(info["entries"], 3);
    EXPECT_EQ(info["max_in_degree"], 2);
    EXPECT_EQ(info["zero_in_degree"], 2147483645);
}

TEST_F(CliFiles, RangesOfRowsThatNoNumberHolds) {
    const std::string most = "9223372036854775807", out = file("out.npy");
    EXPECT_TRUE(failed(run({"convert", base(), out, "--offset", "1", "--count", most}), 1,
                       most + " rows from row 1 on asked for, " + base() + " has 2000"));
    EXPECT_TRUE(failed(run({"convert", base(), out, "--offset", most}), 1,
                       "rows from row " + most + " on asked for, " + base() + " has 2000"));
}

TEST_F(CliFiles, NoFileIsReplacedByAPartOfItself) {
    const std::string all = base(), g = graph(), vectors = read_bytes(all), neighbours = read_bytes(g);
    EXPECT_TRUE(failed(run({"convert", all, all, "--count", "10"}), 2, all + " would be overwritten"));
    EXPECT_TRUE(failed(run({"convert", g, g, "--offset", "10"}), 2, g + " would be overwritten"));
    EXPECT_TRUE(read_bytes(all) == vectors && read_bytes(g) == neighbours);
    good({"convert", all, all});
    EXPECT_TRUE(read_bytes(all) == vectors);
}

TEST_F(CliFiles, VectorsAreJoined) {
    const std::string out = file("joined.npy"), first = file("a.bvecs"), third = file("c.npy");
    good({"convert", kSample, first, "--count", "10"});
    good({"convert", kSample, third, "--offset", "30", "--count", "10", "--dtype", "f32"});
    good({"convert", first, out, "--join", base(1000), third, "--offset", "5", "--count", "1014"});
    const io::VectorFile joined(out), sample(kSample);
    ASSERT_EQ(joined.n(), 1014);
    const auto expect_row = [&](std::int64_t row, std::int64_t of_sample) {
        EXPECT_EQ(std::memcmp(joined.view().row(row), sample.view().row(of_sample), 128), 0) << row;
    };
    for (const auto& [row, of_sample] : {std::pair{0, 5}, {4, 9}, {5, 0}, {1004, 999}, {1005, 30}, {1013, 38}})
        expect_row(row, of_sample);
    const std::vector<float> narrow(6, 1.0f);
    io::write_vectors(file("narrow.fvecs"), {narrow.data(), 2, 3});
    EXPECT_TRUE(failed(run({"convert", first, out, "--join", file("narrow.fvecs")}), 1,
                       file("narrow.fvecs") + " holds vectors of 3 components, " + first + " of 128"));
    EXPECT_TRUE(failed(run({"convert", first, base(1000), "--join", base(1000)}), 2, "would be overwritten"));
}

TEST_F(CliFiles, AFolderOfShardsBecomesOneFile) {
    const std::string work = file("work"), out = file("one.gnnd");
    good({"build", base(), "-k", "8", "--shards", "3", "--work", work, "-q"});
    good({"convert", work, out});
    const json one = good({"info", out, "--json"}).parsed(), shards = good({"info", work, "--json"}).parsed();
    for (const char* key : {"n", "k", "metric", "dtype", "entries", "max_in_degree", "zero_in_degree"})
        EXPECT_EQ(one[key], shards[key]) << key;
    good({"eval", out, base(), "--queries", "10"});
    EXPECT_TRUE(failed(run({"eval", out, kSample}), 1, out));
}

TEST_F(CliFiles, ACopyOfAGraphKnowsItsRecall) {
    const std::string g = graph(), copy = file("copy.gnnd"), part = file("part.gnnd");
    const json whole = good({"info", g, "--json"}).parsed();
    ASSERT_TRUE(whole.contains("recall"));
    good({"convert", g, copy});
    EXPECT_EQ(good({"info", copy, "--json"}).parsed(), whole);
    good({"convert", g, part, "--count", "10"});
    EXPECT_FALSE(good({"info", part, "--json"}).parsed().contains("recall")) << "that of other rows";
}

TEST_F(CliFiles, AGraphIsMadeOfIds) {
    const std::string ids = file("ids.ivecs"), out = file("imported.gnnd");
    good({"convert", graph(), ids});
    good({"convert", ids, out, "--base", base()});
    const KnnGraph imported = io::GraphFile(out).read(), original = io::GraphFile(graph()).read();
    ASSERT_EQ(imported.k(), original.k());
    for (std::int64_t i = 0; i < 2000 * 16; ++i) {
        ASSERT_EQ(imported.ids()[i], original.ids()[i]) << i;
        ASSERT_EQ(imported.distances()[i], original.distances()[i]) << i;
    }
    EXPECT_EQ(*io::GraphFile(out).base(), *io::GraphFile(graph()).base());
    // As FAISS returns them: the object itself, what was not found, in any order.
    const float x[3] = {0, 1, 3};
    io::write_vectors(file("x.fbin"), {x, 3, 1});
    const std::int32_t found[12] = {2, 1, 0, -1, 1, 2, 0, 0, 2, 0, 1, -1};
    io::write_vectors(file("found.npy"), {found, 3, 4, DType::i32});
    good({"convert", file("found.npy"), file("x.gnnd"), "--base", file("x.fbin"), "--metric", "l1"});
    const KnnGraph small = io::GraphFile(file("x.gnnd")).read();
    ASSERT_EQ(small.k(), 2);
    const std::vector<std::int32_t> expected{1, 2, 0, 2, 1, 0};
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), small.ids()));
    EXPECT_EQ(small.distances_of(2)[1], 3);
    EXPECT_TRUE(failed(run({"convert", ids, out, "--base", file("x.fbin")}), 1, "has 2000 rows"));
    EXPECT_TRUE(failed(run({"convert", ids, out}), 1, "known vector formats"));
    EXPECT_TRUE(failed(run({"convert", graph(), out, "--base", base()}), 2, "--base"));
}

}  // namespace
}  // namespace gnnd::test

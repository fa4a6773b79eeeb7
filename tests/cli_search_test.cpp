// SPDX-License-Identifier: MIT
// `gnnd index` and `gnnd search`: their files, and what is wrong with them.
#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/index_io.h>
#include <sys/stat.h>

#include <cmath>
#include <memory>
#include <vector>

#include "tests/cli_fixture.h"

namespace gnnd::test {
namespace {

class CliSearch : public Cli {
  protected:
    /// An index of base().
    std::string index(const std::string& type) const {
        const std::string made_of = graph();
        return once(type + ".faiss", [&](const std::string& path) {
            good({"index", made_of, base(), "--type", type, "-o", path});
        });
    }
};

TEST_F(CliSearch, NoFlippedByteOfAnIndexIsTakenForTheIndex) {
#ifdef GNND_SANITIZED
    constexpr std::size_t kStep = 3;  // whatever is flipped, the checksum ends it
#else
    constexpr std::size_t kStep = 1;
#endif
    for (const std::string type : {"nsg", "hnsw", "nndescent"}) {
        const std::string path = index(type), bytes = read_bytes(path);
        const std::string right = good({"search", path, base(10), "-o", file("right.ivecs")}).out;
        for (std::size_t i = 0; i < 40; i += kStep) {
            // The head, what comes at the end, and places between.
            const std::size_t at = i < 12 ? i * 7 : i < 20 ? bytes.size() - 1 - 3 * (i - 12) : bytes.size() / 41 * i;
            std::string damaged = bytes;
            damaged[at] = char(damaged[at] ^ 0x40);
            write_bytes(file("damaged.faiss"), damaged);
            const Result result = run({"search", file("damaged.faiss"), base(10), "-o", file("found.ivecs")});
            // A flip in the trailer's own name leaves an index as plain FAISS writes it, which is taken.
            if (result.code == 0)
                EXPECT_EQ(read_bytes(file("found.ivecs")), read_bytes(file("right.ivecs"))) << type << " byte " << at;
            else
                EXPECT_TRUE(failed(result, 1, "damaged.faiss: is damaged: ")) << type << " byte " << at;
        }
    }
}

TEST_F(CliSearch, AnIndexOfPlainFaissHasNoChecksum) {
    const std::unique_ptr<faiss::Index> plain(faiss::read_index(index("hnsw").c_str()));
    faiss::write_index(plain.get(), file("plain.faiss").c_str());
    good({"search", file("plain.faiss"), base(10)});
    dynamic_cast<faiss::IndexHNSW&>(*plain).hnsw.entry_point = 2000;
    faiss::write_index(plain.get(), file("plain.faiss").c_str());
    EXPECT_TRUE(failed(run({"search", file("plain.faiss"), base(10)}), 1,
                       "plain.faiss: IndexHNSWFlat is damaged: it begins at 2000"));
}

TEST_F(CliSearch, WhatIsNoFileIsNotWaitedFor) {
    ASSERT_EQ(mkfifo(file("fifo").c_str(), 0600), 0);
    EXPECT_TRUE(failed(run({"search", file("fifo"), base(10)}), 1, "fifo: is no regular file"));
    EXPECT_TRUE(failed(run({"search", dir_.path(), base(10)}), 1, "is no regular file"));
}

TEST_F(CliSearch, WhatIsNoIndexIsNamed) {
    EXPECT_TRUE(failed(run({"search", base(10), base(10)}), 1, base(10) + ": Index type"));
}

TEST_F(CliSearch, AGraphAsTruthIsOfTheQueries) {
    const std::string other = file("other.u8bin"), work = file("work");
    good({"convert", kSample, other, "--offset", "2000", "--count", "2000"});
    good({"build", base(), "-k", "10", "--shards", "2", "--work", work, "-q"});
    for (const std::string& truth : {graph(), work}) {
        EXPECT_GT(good({"search", index("nsg"), base(), "--truth", truth, "--json"}).parsed()["recall"], 0.9);
        EXPECT_TRUE(failed(run({"search", index("nsg"), other, "--truth", truth}), 1,
                           truth + " was not built from " + other + ": the vectors are others"));
    }
}

TEST_F(CliSearch, NoBeamTakesMoreThanThereIs) {
    const std::string path = file("wide.faiss");
    for (const std::string& hnsw :
         {index("hnsw"),
          (good({"index", graph(), base(), "--type", "hnsw", "--ef-search", "2000000000", "-o", path}), path)})
        good({"search", hnsw, base(10), "--ef", "2000000000"});
    const std::unique_ptr<faiss::Index> read(faiss::read_index(path.c_str()));
    auto& wide = dynamic_cast<faiss::IndexHNSW&>(*read);
    EXPECT_EQ(wide.hnsw.efSearch, 2000);
    wide.hnsw.efSearch = 2'000'000'000;  // as another writer may have left it
    faiss::write_index(read.get(), path.c_str());
    good({"search", path, base(10)});
}

TEST_F(CliSearch, OptionsOfOtherTypesAreWrongUsage) {
    const auto refuses = [&](const std::string& type, const std::string& option, const std::string& value) {
        Arguments arguments{"index", graph(), base(), "--type", type, "-o", file("x"), option};
        if (!value.empty()) arguments.push_back(value);
        return failed(run(arguments), 2, option);
    };
    EXPECT_TRUE(refuses("hnsw", "--R", "8"));
    EXPECT_TRUE(refuses("nsg", "--M", "8"));
    EXPECT_TRUE(refuses("nndescent", "--base-level-only", ""));
    EXPECT_TRUE(refuses("hnsw", "--search-L", "8"));
    EXPECT_TRUE(refuses("nndescent", "--device", "cuda:0"));
    for (const std::string value : {"0", "-3", "5000", "x"}) EXPECT_TRUE(refuses("nsg", "--R", value));
    EXPECT_TRUE(failed(run({"index", graph(), base(), "--type", "hnws", "-o", file("x")}), 2,
                       "--type: unknown type 'hnws'; known are nsg, hnsw, nndescent"));
}

/// All rows of a file.
template <class T>
std::vector<T> rows_of_file(const std::string& path) {
    const io::VectorFile vectors(path);
    std::vector<T> rows(vectors.n() * vectors.d());
    vectors.read(0, vectors.n(), rows.data());
    return rows;
}

TEST_F(CliSearch, IndexesAreMadeOfVectorsAndGrow) {
    const std::string all = base(2000), made = file("made"), grown = file("grown"), truth = file("t.ivecs");
    good({"convert", all, file("old.u8bin"), "--count", "1500"});
    good({"convert", all, file("new.u8bin"), "--offset", "1500"});
    good({"exact", all, "--queries", all, "-k", "10", "-o", truth});
    for (const std::string description : {"GNND64,NSG32", "IDMap2,GNND20,HNSW16,Flat", "RR128,GNND,NSG,RFlat"}) {
        SCOPED_TRACE(description);
        const json report = good({"index", file("old.u8bin"), "--factory", description, "-o", made, "--device", "cpu",
                                  "--recall", "0.95", "--json"})
                                .parsed();
        EXPECT_EQ(report["n"], 1500);
        EXPECT_EQ(report["device"], "cpu");
        EXPECT_GE(report["recall"]["recall"], 0.95);
        const std::string before = read_bytes(made);
        const json after =
            good({"index", file("new.u8bin"), "--append", made, "-o", grown, "--device", "cpu", "--json"}).parsed();
        EXPECT_EQ(after["n"], 2000);
        EXPECT_EQ(after["added"], 500);
        EXPECT_EQ(read_bytes(made), before);
        EXPECT_GE(good({"search", grown, all, "--ef", "64", "--truth", truth, "--json"}).parsed()["recall"], 0.97);
    }
    EXPECT_TRUE(matches(good({"index", file("new.u8bin"), "--append", made, "-o", grown}).out,
                        "objects +2000 x 128, 500 of them added\n"));
    const std::string named = "PCA64,GNND32,HNSW16,RFlat", help = good({"index", "--help"}).out;
    EXPECT_NE(help.find(named), std::string::npos) << help;
    EXPECT_EQ(good({"index", file("old.u8bin"), "--factory", named, "-o", file("named"), "--json"}).parsed()["n"],
              1500);
    const std::vector<float> narrow(30, 1.0f);
    io::write_vectors(file("narrow.fvecs"), {narrow.data(), 10, 3});
    const auto refuses = [&](Arguments arguments, int code, const std::string& text) {
        arguments.insert(arguments.begin(), "index");
        arguments.insert(arguments.end(), {"-o", file("x")});
        EXPECT_TRUE(failed(run(arguments), code, text));
    };
    refuses({all, "--factory", "GNND9999,NSG32"}, 2, "--factory GNND9999,NSG32: the number of GNND9999");
    refuses({all, "--factory", "NONSENSE"}, 2, "--factory NONSENSE: ");
    refuses({all, "--factory", "GNND64,IVF4"}, 2, "behind GNND64 comes NSG or HNSW, not 'IVF4'");
    refuses({all, "--factory", "NSG32"}, 2, "names no GNND");
    refuses({all, all, "--factory", "GNND,NSG"}, 2, "one name too many");
    refuses({all, "--factory", "GNND,NSG", "--R", "8"}, 2, "--R");
    refuses({all, "--factory", "GNND,NSG", "--type", "nsg"}, 2, "--type");
    refuses({all, "--factory", "GNND,NSG", "--append", made}, 2, "--append");
    refuses({all, "--factory", "GNND,NSG", "--metric", "chi2"}, 2, "--metric chi2: ");
    refuses({all, "--append", made, "--metric", "l2"}, 2, "--metric");
    refuses({all, "--append", all}, 1, all);
    refuses({file("narrow.fvecs"), "--append", made}, 1, "3 components");
    refuses({graph(), all, "--type", "nsg", "--recall", "0.9"}, 2, "--recall");
    refuses({graph(), "--type", "nsg"}, 2, "BASE");
    EXPECT_TRUE(failed(run({"index", all, "--append", made, "-o", made}), 2, "would be overwritten"));
    EXPECT_FALSE(std::filesystem::exists(file("x")));
}

// FAISS's flat index and `gnnd exact` do the same in different ways; sums of squared bytes are exact in both.
TEST_F(CliSearch, ExactAnswersAreThoseOfAFlatIndex) {
    const io::VectorFile vectors(base());
    std::vector<float> x(2000 * 128);
    copy_as_f32(vectors.view(), 0, 2000, x.data());
    faiss::IndexFlatL2 flat(128);
    flat.add(2000, x.data());
    faiss::write_index(&flat, file("flat.faiss").c_str());
    good({"search", file("flat.faiss"), base(50), "-k", "7", "-o", file("a.ibin"), "--distances", file("a.fbin")});
    const Result result = good({"exact", base(), "--queries", base(50), "-k", "7", "-o", file("b.ivecs"), "--distances",
                                file("b.npy"), "--json"});
    EXPECT_EQ(result.parsed()["queries"], 50);
    const std::vector<float> distances = rows_of_file<float>(file("b.npy"));
    EXPECT_EQ(distances, rows_of_file<float>(file("a.fbin")));
    for (int i = 0; i < 50; ++i) EXPECT_EQ(distances[i * 7], 0) << "each is among those searched";
    EXPECT_EQ(good({"search", file("flat.faiss"), base(50), "-k", "7", "--truth", file("b.ivecs"), "--json"})
                  .parsed()["recall"],
              1.0);
}

TEST_F(CliSearch, MissingNeighboursAreInfinitelyFar) {
    good({"search", index("hnsw"), base(3), "-k", "2003", "--distances", file("d.fvecs"), "-o", file("i.ivecs")});
    const std::vector<float> distances = rows_of_file<float>(file("d.fvecs"));
    const std::vector<std::int32_t> ids = rows_of_file<std::int32_t>(file("i.ivecs"));
    for (std::size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i] < 0, std::isinf(distances[i])) << i;
    EXPECT_EQ(ids.back(), -1);
}

TEST_F(CliSearch, ExactRefusesQueriesThatDoNotFit) {
    const std::vector<float> narrow(30, 1.0f);
    io::write_vectors(file("narrow.fvecs"), {narrow.data(), 10, 3});
    EXPECT_TRUE(failed(run({"exact", base(), "--queries", file("narrow.fvecs"), "-o", file("x.ivecs")}), 1,
                       "narrow.fvecs has vectors of 3 components"));
    EXPECT_TRUE(failed(run({"exact", base(), "--queries", base(10), "-o", base(10)}), 2, "would be overwritten"));
    EXPECT_TRUE(failed(run({"exact", base(), "--distances", file("x.fvecs"), "-o", file("x")}), 2, "--queries"));
    EXPECT_TRUE(failed(run({"exact", base(), "--queries", base(10), "--device", "cuda:99", "-o", file("x.ivecs")}), 1,
                       "device cuda:99"));
}

}  // namespace
}  // namespace gnnd::test

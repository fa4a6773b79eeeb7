// SPDX-License-Identifier: MIT
#include "faiss_ext/check_index.h"

#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexNNDescent.h>
#include <faiss/IndexNSG.h>
#include <faiss/impl/io.h>
#include <faiss/index_factory.h>
#include <faiss/index_io.h>
#include <sys/resource.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <memory>

#include "faiss_ext/detail/checked_reader.h"
#include "faiss_ext/graph_builder.h"
#include "faiss_ext/graph_index.h"
#include "tests/faiss_helpers.h"

namespace {

using faiss_ext::check_index;
using faiss_ext::VectorSource;
using gnnd::Metric;
using gnnd::test::expect_faiss_error;
using gnnd::test::random_rows;
using gnnd::test::view_of;

constexpr int kRowsOfIndex = 200, kDimOfIndex = 6;

const std::vector<float>& indexed_rows() {
    static const std::vector<float> rows = random_rows(kRowsOfIndex, kDimOfIndex);
    return rows;
}

/// One of the graph indexes, or what FAISS's factory makes.
std::unique_ptr<faiss::Index> make_small(const std::string& name) {
    const VectorSource source(view_of(indexed_rows(), kDimOfIndex), Metric::L2);
    for (const auto& type : faiss_ext::graph_index_types())
        if (type.name == name)
            return type.make(source, faiss_ext::ExactGraphBuilder().build(source, 8), {}, faiss_ext::Gpu());
    std::unique_ptr<faiss::Index> index(faiss::index_factory(kDimOfIndex, name.c_str()));
    index->train(kRowsOfIndex, indexed_rows().data());
    if (dynamic_cast<faiss::IndexIDMap*>(index.get()) != nullptr) {
        std::vector<faiss_ext::idx_t> ids(kRowsOfIndex);
        for (int i = 0; i < kRowsOfIndex; ++i) ids[i] = 1000 + i;
        index->add_with_ids(kRowsOfIndex, indexed_rows().data(), ids.data());
    } else {
        index->add(kRowsOfIndex, indexed_rows().data());
    }
    return index;
}

std::vector<std::string> names_of_indexes() {
    std::vector<std::string> names{"Flat",         "HNSW8",      "SQ8",       "PQ3x4np",   "IVF4,Flat", "IVF4,SQ8",
                                   "IVF4,PQ3x4np", "IDMap,Flat", "PCA4,Flat", "SQ8,RFlat", "HNSW8,SQ8", "IDMap,HNSW8"};
    for (const auto& type : faiss_ext::graph_index_types()) names.push_back(type.name);
    return names;
}

class ReadIndexes : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(All, ReadIndexes, testing::ValuesIn(names_of_indexes()), [](const auto& info) {
    std::string name = info.param;
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    return name;
});

/// Reads what the bytes say, checks it, searches it; false where one of the first two found something wrong.
bool survives(const std::vector<std::uint8_t>& bytes) {
    faiss::VectorIOReader data;
    data.data = bytes;
    faiss_ext::detail::CheckedReader reader(data);
    std::unique_ptr<faiss::Index> index;
    try {
        index.reset(faiss::read_index(&reader));
        check_index(*index);
    } catch (const std::exception&) {
        return false;
    }
    constexpr int kQueries = 5, kFound = 3;
    if (index->d != kDimOfIndex) return false;  // the tool compares it with the queries'
    std::vector<float> distances(kQueries * kFound);
    std::vector<faiss_ext::idx_t> ids(kQueries * kFound);
    try {
        index->search(kQueries, indexed_rows().data(), kFound, distances.data(), ids.data());
    } catch (const faiss::FaissException&) {
        return false;
    }
    return true;
}

/// FAISS takes memory for as many elements as a file says before it reads them.
class LittleMemory {
  public:
    LittleMemory() {
        getrlimit(RLIMIT_AS, &before_);
        rlimit little = before_;
        little.rlim_cur = rlim_t(4) << 30;
        setrlimit(RLIMIT_AS, &little);
    }
    ~LittleMemory() { setrlimit(RLIMIT_AS, &before_); }

  private:
    rlimit before_{};
};

TEST_P(ReadIndexes, PassAsTheyAreAndEndNoSearchWhenDamaged) {
    faiss::VectorIOWriter writer;
    faiss::write_index(make_small(GetParam()).get(), &writer);
    ASSERT_TRUE(survives(writer.data));
#ifdef GNND_SANITIZED
    GTEST_SKIP() << "takes memory that sanitizers do not let go of";
#endif
    const LittleMemory little;
    const gnnd::test::OneFaissThread quiet;
    // Every byte of what is not rows of components, and some of those.
    int refused = 0;
    for (std::size_t at = 0; at < writer.data.size(); at += at < 400 ? 1 : 29) {
        for (const std::uint8_t flip : {0x40, 0xff}) {
            std::vector<std::uint8_t> damaged = writer.data;
            damaged[at] ^= flip;
            refused += !survives(damaged);
        }
    }
    EXPECT_GT(refused, 50);
}

template <class Index>
void expect_refused(const std::string& name, const std::string& part, const std::function<void(Index&)>& damage) {
    const auto index = make_small(name);
    damage(dynamic_cast<Index&>(*index));
    expect_faiss_error(part, [&] { check_index(*index); });
}

TEST(CheckIndex, SaysWhatIsWrong) {
    expect_refused<faiss::IndexFlat>("Flat", "IndexFlat is damaged: it has not all codes",
                                     [](faiss::IndexFlat& index) { index.codes.resize(7); });
    using faiss::IndexHNSW;
    expect_refused<IndexHNSW>("hnsw", "links object 3 to 200",
                              [](IndexHNSW& index) { index.hnsw.neighbors[index.hnsw.offsets[3]] = kRowsOfIndex; });
    expect_refused<IndexHNSW>("hnsw", "begins at -5", [](IndexHNSW& index) { index.hnsw.entry_point = -5; });
    expect_refused<IndexHNSW>("hnsw", "has object 9 on 0 levels", [](IndexHNSW& index) { index.hnsw.levels[9] = 0; });
    expect_refused<IndexHNSW>("hnsw", "a beam of 0", [](IndexHNSW& index) { index.hnsw.efSearch = 0; });
    expect_refused<IndexHNSW>("hnsw", "its storage 199", [](IndexHNSW& index) {
        auto& storage = dynamic_cast<faiss::IndexFlat&>(*index.storage);
        storage.codes.resize(199 * storage.code_size);
        storage.ntotal = 199;
    });
    using faiss::IndexNSG;
    expect_refused<IndexNSG>("nsg", "a beam of 201 among 200", [](IndexNSG& index) { index.nsg.search_L = 201; });
    expect_refused<IndexNSG>("nsg", "begins at 200", [](IndexNSG& index) { index.nsg.enterpoint = 200; });
    using faiss::IndexNNDescent;
    expect_refused<IndexNNDescent>("nndescent", "links object 1 to -1",
                                   [](IndexNNDescent& index) { index.nndescent.final_graph[8] = -1; });
}

}  // namespace

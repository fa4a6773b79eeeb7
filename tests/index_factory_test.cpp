// SPDX-License-Identifier: MIT
// Indexes with GNND by description.
#include "faiss_ext/index_factory.h"

#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/index_factory.h>
#include <faiss/index_io.h>

#include <numeric>

#include "faiss_ext/index_operations.h"
#include "tests/gnnd_indexes.h"
#include "tests/temp_dir.h"

namespace {

using faiss_ext::builder_of;
using faiss_ext::IndexHNSWGnnd;
using faiss_ext::IndexNSGGnnd;

constexpr int kComponents = 32;

/// The index that a description of FAISS's grammar stands for, as it nests them.
struct Described {
    const char* gnnd;
    const char* faiss;  ///< the same without GNND
    friend std::ostream& operator<<(std::ostream& out, const Described& d) { return out << d.gnnd; }
};

class FactoryTest : public testing::TestWithParam<Described> {};
INSTANTIATE_TEST_SUITE_P(
    All, FactoryTest,
    testing::Values(Described{"GNND64,NSG32", "NSG32"}, Described{"GNND,HNSW16", "HNSW16"},
                    Described{"GNND10,HNSW,Flat", "HNSW,Flat"}, Described{"PCA16,GNND32,NSG24", "PCA16,NSG24"},
                    Described{"RR16,GNND,NSG,RFlat", "RR16,NSG,RFlat"}, Described{"IDMap,GNND,NSG", "IDMap,NSG"},
                    Described{"GNND,HNSW16,IDMap2", "HNSW16,IDMap2"},
                    Described{"IDMap2,PCA16,GNND,HNSW8", "IDMap2,PCA16,HNSW8"},
                    Described{"PCA16,GNND,HNSW8,Refine(SQ8)", "PCA16,HNSW8,Refine(SQ8)"},
                    Described{"GNND64,HNSW16_SQ8", "HNSW16_SQ8"}, Described{"GNND,NSG,SQfp16", "NSG,SQfp16"},
                    Described{"PCA16,GNND32,NSG24_PQ8np,RFlat", "PCA16,NSG24_PQ8np,RFlat"},
                    Described{"IDMap,GNND,HNSW16,PQ16np", "IDMap,HNSW16,PQ16np"}));

/// The names of the classes from the outermost to the innermost index.
std::vector<std::string> nesting(const faiss::Index& index) {
    std::vector<std::string> names{typeid(index).name()};
    const auto inside = [&](const faiss::Index* inner) {
        for (const std::string& name : nesting(*inner)) names.push_back(name);
    };
    if (auto* map = dynamic_cast<const faiss::IndexIDMap*>(&index)) inside(map->index);
    if (auto* transform = dynamic_cast<const faiss::IndexPreTransform*>(&index)) inside(transform->index);
    if (auto* refine = dynamic_cast<const faiss::IndexRefine*>(&index)) inside(refine->base_index);
    return names;
}

std::vector<faiss_ext::idx_t> ids_from(faiss_ext::idx_t first, std::int64_t count) {
    std::vector<faiss_ext::idx_t> ids(count);
    std::iota(ids.begin(), ids.end(), first);
    return ids;
}

/// The class with GNND that comes in place of FAISS's.
std::string gnnd_class_of(const std::string& replaced) {
    std::string made;
    const auto match = [&]<class Gnnd>(const Gnnd*) {
        if (replaced == typeid(typename Gnnd::Replaced).name()) made = typeid(Gnnd).name();
    };
    match(static_cast<IndexNSGGnnd*>(nullptr));
    match(static_cast<faiss_ext::IndexNSGSQGnnd*>(nullptr));
    match(static_cast<faiss_ext::IndexNSGPQGnnd*>(nullptr));
    match(static_cast<IndexHNSWGnnd*>(nullptr));
    match(static_cast<faiss_ext::IndexHNSWSQGnnd*>(nullptr));
    match(static_cast<faiss_ext::IndexHNSWPQGnnd*>(nullptr));
    return made;
}

TEST_P(FactoryTest, MakesWhatFaissWouldAndGrowsIt) {
    const gnnd::test::OneFaissThread one_thread;
    const auto index = faiss_ext::index_factory(kComponents, GetParam().gnnd);
    const std::unique_ptr<faiss::Index> by_faiss(faiss::index_factory(kComponents, GetParam().faiss));
    std::vector<std::string> names = nesting(*index), expected = nesting(*by_faiss);
    ASSERT_EQ(names.size(), expected.size());
    const bool nsg = std::string(GetParam().faiss).find("NSG") != std::string::npos;
    const char* beam = nsg ? "search_L" : "efSearch";
    EXPECT_NE(builder_of(*index), nullptr);
    EXPECT_NE(names.back(), expected.back());
    EXPECT_EQ(gnnd_class_of(expected.back()), names.back());
    names.pop_back();
    expected.pop_back();
    EXPECT_EQ(names, expected);
    EXPECT_EQ(index->is_trained, by_faiss->is_trained);

    const std::vector<float> rows = gnnd::test::random_rows(1500, kComponents);
    builder_of(*index)->params.device.kind = gnnd::Device::Kind::cpu;
    index->train(1500, rows.data());
    const bool has_ids = dynamic_cast<faiss::IndexIDMap*>(index.get()) != nullptr;
    for (const auto& [begin, count] : {std::pair(0, 1100), {1100, 20}, {1120, 380}})
        if (has_ids)
            index->add_with_ids(count, rows.data() + begin * kComponents, ids_from(begin + 7, count).data());
        else
            index->add(count, rows.data() + begin * kComponents);
    faiss_ext::ParameterSpace space;
    space.set_index_parameter(index.get(), beam, 64);
    const std::vector<faiss_ext::idx_t> all = ids_from(has_ids ? 7 : 0, 1500);
    const auto found = gnnd::test::search_index(*index, rows, 1).ids;
    std::size_t right = 0;
    for (int i = 0; i < 1500; ++i) right += found[i] == all[i];
    EXPECT_GE(right, 1470);

    // An index that FAISS reads can be told to grow again.
    const gnnd::test::TempDir dir;
    faiss::write_index(index.get(), dir.file("index").c_str());
    const auto read = faiss_ext::with_gnnd(std::unique_ptr<faiss::Index>(faiss::read_index(dir.file("index").c_str())));
    EXPECT_EQ(nesting(*read).back(), nesting(*index).back());
    EXPECT_EQ(gnnd::test::search_index(*read, rows, 1).ids, found);
    builder_of(*read)->params.device.kind = gnnd::Device::Kind::cpu;
    if (has_ids)
        read->add_with_ids(1, rows.data(), ids_from(5000, 1).data());
    else
        read->add(1, rows.data());
    EXPECT_EQ(read->ntotal, 1501);
}

/// An NSG's beam is no wider than it has objects, in its file, too: one that was written while it was small searched
/// with a beam of so many ever after.
TEST(Factory, AnIndexThatWasWrittenWhileSmallGetsItsBeamBack) {
    const std::vector<float> rows = gnnd::test::random_rows(100, 8);
    const auto grown = [&](std::int64_t first, int set_by_hand) {
        const auto small = faiss_ext::index_factory(8, "GNND8,NSG8");
        builder_of(*small)->params.device.kind = gnnd::Device::Kind::cpu;
        small->add(std::max<std::int64_t>(1, first), rows.data());
        if (first == 0) small->reset();
        if (set_by_hand > 0) dynamic_cast<IndexNSGGnnd&>(*small).nsg.search_L = set_by_hand;
        const gnnd::test::TempDir dir;
        faiss::write_index(small.get(), dir.file("index").c_str());
        auto read = faiss_ext::with_gnnd(std::unique_ptr<faiss::Index>(faiss::read_index(dir.file("index").c_str())));
        builder_of(*read)->params.device.kind = gnnd::Device::Kind::cpu;
        for (std::int64_t begin = first; begin < 100; begin += 5)
            read->add(std::min<std::int64_t>(5, 100 - begin), rows.data() + begin * 8);
        return dynamic_cast<IndexNSGGnnd&>(*read).nsg.search_L;
    };
    const int usual = faiss::NSG().search_L;
    for (const std::int64_t first : {0, 1, 5, 15, 20})
        EXPECT_EQ(grown(first, 0), usual) << first << " objects at first";
    for (const std::int64_t first : {0, 20}) EXPECT_EQ(grown(first, 7), 7) << first << " objects at first";
    EXPECT_EQ(grown(20, 20), 20);
}

TEST(Factory, TakesNumbersFromTheDescription) {
    const auto nsg = faiss_ext::index_factory(8, "GNND48,NSG24", faiss::METRIC_INNER_PRODUCT);
    EXPECT_EQ(dynamic_cast<IndexNSGGnnd&>(*nsg).GK, 48);
    EXPECT_EQ(dynamic_cast<IndexNSGGnnd&>(*nsg).nsg.R, 24);
    EXPECT_EQ(nsg->metric_type, faiss::METRIC_INNER_PRODUCT);
    const auto hnsw = faiss_ext::index_factory(8, "GNND,HNSW");
    EXPECT_EQ(dynamic_cast<IndexHNSWGnnd&>(*hnsw).GK, 64);
    EXPECT_EQ(dynamic_cast<IndexHNSWGnnd&>(*hnsw).hnsw.nb_neighbors(0), 64);
    EXPECT_EQ(dynamic_cast<IndexNSGGnnd&>(*faiss_ext::index_factory(8, "GNND,NSG")).nsg.R, 32);
    const auto rotated = faiss_ext::index_factory(32, "OPQ8_16,GNND,NSG,RFlat");
    EXPECT_FALSE(rotated->is_trained);
    const auto& refined = dynamic_cast<faiss::IndexRefine&>(*rotated);
    EXPECT_EQ(dynamic_cast<faiss::IndexPreTransform&>(*refined.base_index).index->d, 16);
    const auto plain = faiss_ext::index_factory(8, "HNSW8");
    EXPECT_EQ(builder_of(*plain), nullptr);
}

TEST(Factory, NamesThePartThatItDoesNotUnderstand) {
    const auto refuses = [](const char* description, const char* part) {
        SCOPED_TRACE(description);
        gnnd::test::expect_faiss_error(part, [&] { faiss_ext::index_factory(16, description); });
    };
    refuses("GNND64", "behind GNND64 comes NSG or HNSW, not the end");
    refuses("GNND64,IVF16,Flat", "behind GNND64 comes NSG or HNSW, not 'IVF16'");
    refuses("GNND64,HNSW32,LSH", "'LSH' cannot stand behind GNND64");
    refuses("GNND64,HNSW32_SQ8,PQ4", "'PQ4' cannot stand behind GNND64");
    refuses("GNND64,NSG32_XY", "NSG32_XY");
    refuses("GNND64_SQ8,NSG32", "GNND64_SQ8");
    refuses("GNND64,NSG0_SQ8", "NSG0_SQ8 is none from 1 to 4096");
    refuses("GNNDx,NSG32", "GNNDx");
    refuses("GNND-3,NSG32", "GNND-3");
    refuses("GNND2000,NSG32", "the number of GNND2000 is none from 1 to 1024");
    refuses("GNND64,NSG99999999999", "NSG99999999999 is none from 1 to 4096");
    refuses("GNND64,HNSW1", "HNSW1 is none from 2 to 2048");
    refuses("GNND0,NSG32", "GNND0");
    refuses("GNND,NSG,GNND,NSG", "'GNND' cannot stand behind GNND");
    refuses("GNND,NSG,Refine(GNND,NSG)", "Refine(GNND,NSG)");
    refuses("IVF16,GNND,NSG", "could not parse code description NSG in IVF16,NSG");
    refuses("IVF16(GNND,NSG),Flat", "IVF16(GNND,NSG)");
    refuses("PCAx,GNND,NSG", "PCAx");
    refuses("PCA8,NSX", "NSX");
    gnnd::test::expect_faiss_error("IndexFlat", [] { faiss_ext::with_gnnd(std::make_unique<faiss::IndexFlatL2>(4)); });
    gnnd::test::expect_faiss_error("null", [] { faiss_ext::with_gnnd(nullptr); });
}

}  // namespace

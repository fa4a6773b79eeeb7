// SPDX-License-Identifier: MIT
// Indexes with GNND inside of FAISS's wrappers, cloned, merged and tuned.
#include "faiss_ext/index_operations.h"

#include <faiss/IndexIDMap.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>

#include "faiss_ext/index_factory.h"
#include "tests/gnnd_indexes.h"

namespace {

using faiss_ext::builder_of;

class OperationsTest : public testing::TestWithParam<gnnd::test::GnndKind> {};
INSTANTIATE_TEST_SUITE_P(All, OperationsTest, testing::ValuesIn(gnnd::test::kGnndKinds),
                         testing::PrintToStringParamName());

TEST_P(OperationsTest, ClonesGrowOnTheirOwn) {
    const std::vector<float> rows = gnnd::test::random_rows(500, 8);
    const auto made = GetParam().make(8, faiss::METRIC_L2);
    faiss::IndexIDMap2 map(made.index.get());
    map.add_with_ids(300, rows.data(), ids_from(50, 300).data());
    const auto copy = faiss_ext::clone_index(map);
    EXPECT_EQ(nesting(*copy), nesting(map));
    builder_of(*copy)->params.device.kind = gnnd::Device::Kind::cpu;
    copy->add_with_ids(200, rows.data() + 300 * 8, ids_from(1000, 200).data());
    EXPECT_EQ(map.ntotal, 300);
    EXPECT_EQ(copy->ntotal, 500);
    EXPECT_EQ(gnnd::test::search_index(*copy, {rows.end() - 8, rows.end()}, 1).ids[0], 1199);
}

/// FAISS's wrappers ask what they hold whether it may be merged before they merge it.
TEST(IndexFactory, WrappersMergeAsFaissDoes) {
    const std::vector<float> rows = gnnd::test::random_rows(900, 8);
    for (const char* description : {"IDMap2,GNND16,NSG16", "IDMap,GNND16,HNSW8", "RR8,GNND16,NSG16"}) {
        SCOPED_TRACE(description);
        const auto first = faiss_ext::index_factory(8, description), wider = faiss_ext::index_factory(9, description);
        first->train(900, rows.data());
        const auto second = faiss_ext::clone_index(*first);  // after the same rotation
        const bool has_ids = dynamic_cast<const faiss::IndexIDMap*>(first.get()) != nullptr;
        const auto add = [&](faiss::Index& index, faiss_ext::idx_t begin, faiss_ext::idx_t count) {
            const float* x = rows.data() + begin * 8;
            has_ids ? index.add_with_ids(count, x, ids_from(1000 + begin, count).data()) : index.add(count, x);
        };
        add(*first, 0, 500);
        add(*second, 500, 400);
        first->merge_from(*second);
        EXPECT_EQ(first->ntotal, 900);
        if (has_ids) {  // an IndexPreTransform forgets to count what it gave away
            EXPECT_EQ(second->ntotal, 0);
        }
        ASSERT_NO_THROW(faiss_ext::check_index(*first));
        for (const faiss_ext::idx_t object : {0, 499, 500, 899}) {
            float distance = -1;
            faiss_ext::idx_t id = -1;
            first->search(1, rows.data() + object * 8, 1, &distance, &id);
            EXPECT_EQ(id, has_ids ? 1000 + object : object);
        }
        EXPECT_THROW(first->merge_from(*wider), faiss::FaissException);
        EXPECT_THROW(first->merge_from(*first), faiss::FaissException);
        EXPECT_EQ(first->ntotal, 900);
    }
}

TEST_P(OperationsTest, MergesKeepIds) {
    const std::vector<float> rows = gnnd::test::random_rows(2000, 8),
                             queries = gnnd::test::random_rows(200, 8, false, 2);
    faiss::IndexFlatL2 flat(8);
    flat.add(2000, rows.data());
    const auto first = GetParam().make(8, faiss::METRIC_L2), second = GetParam().make(8, faiss::METRIC_L2);
    first.index->add(1200, rows.data());
    second.index->add(800, rows.data() + 1200 * 8);
    const auto both = faiss_ext::merge_indexes(*first.index, *second.index);
    EXPECT_EQ(second.index->ntotal, 800);
    EXPECT_EQ(typeid(*both), typeid(*first.index));
    EXPECT_EQ(gnnd::test::reachable(*both), 2000U);
    faiss_ext::ParameterSpace space;
    const char* beam = dynamic_cast<faiss::IndexNSG*>(both.get()) != nullptr ? "search_L" : "efSearch";
    space.set_index_parameter(both.get(), beam, 64);
    EXPECT_GE(gnnd::test::search_recall(*both, flat, queries, 10), 0.98);

    first.index->reset();
    second.index->reset();
    faiss::IndexIDMap2 map1(first.index.get());
    faiss::IndexIDMap map2(second.index.get());
    map1.add_with_ids(1200, rows.data(), ids_from(5000, 1200).data());
    map2.add_with_ids(800, rows.data() + 1200 * 8, ids_from(0, 800).data());
    const auto mapped = faiss_ext::merge_indexes(map1, map2);
    EXPECT_EQ(nesting(*mapped), nesting(map1));
    space.set_index_parameter(mapped.get(), beam, 64);
    std::vector<faiss_ext::idx_t> expected = ids_from(5000, 1200);
    for (const faiss_ext::idx_t id : ids_from(0, 800)) expected.push_back(id);
    EXPECT_EQ(gnnd::test::search_index(*mapped, rows, 1).ids, expected);
    std::vector<float> row(8);
    mapped->reconstruct(5003, row.data());
    EXPECT_EQ(row, std::vector(rows.begin() + 3 * 8, rows.begin() + 4 * 8));

    const auto twice = faiss_ext::merge_indexes(*first.index, *first.index);
    EXPECT_EQ(twice->ntotal, 2400);
    gnnd::test::expect_faiss_error("one has ids", [&] { faiss_ext::merge_indexes(map1, *second.index); });
    gnnd::test::expect_faiss_error("none of", [&] { faiss_ext::merge_indexes(flat, flat); });
    gnnd::test::expect_faiss_error("of its kind", [&] { faiss_ext::merge_indexes(*first.index, flat); });
}

// Whatever an index was told it does without objects, and so does what it is merged into.
TEST_P(OperationsTest, EmptyCopiesKeepSettings) {
    constexpr int kBeam = 40;  // of more than the first objects, so that an NSG searches with less in the meantime
    const std::vector<float> rows = gnnd::test::random_rows(500, 8);
    const auto first = GetParam().make(8, faiss::METRIC_INNER_PRODUCT),
               second = GetParam().make(8, faiss::METRIC_INNER_PRODUCT);
    const auto beam_of = [](const faiss::Index& index) {
        const auto* nsg = dynamic_cast<const faiss::IndexNSG*>(&index);
        return nsg != nullptr ? nsg->nsg.search_L : dynamic_cast<const faiss::IndexHNSW&>(index).hnsw.efSearch;
    };
    const auto expect_set = [&](faiss::Index& index) {
        EXPECT_EQ(typeid(index), typeid(*first.index));
        EXPECT_EQ(index.metric_type, faiss::METRIC_INNER_PRODUCT);
        EXPECT_EQ(dynamic_cast<faiss_ext::WithGnnd&>(index).graph_k(), 33);
        EXPECT_EQ(builder_of(index)->params.recall, 0.97f);
        EXPECT_EQ(beam_of(index), kBeam);
    };
    first.set_beam(kBeam);
    first.builder->params.recall = 0.97f;
    auto& with_gnnd = dynamic_cast<faiss_ext::WithGnnd&>(*first.index);
    with_gnnd.set_graph_k(33);
    first.index->add(20, rows.data());
    second.index->add(480, rows.data() + 20 * 8);
    const auto merged = faiss_ext::merge_indexes(*first.index, *second.index), empty = with_gnnd.empty_copy();
    EXPECT_EQ(first.index->ntotal, 20);
    EXPECT_EQ(merged->ntotal, 500);
    expect_set(*merged);
    ASSERT_EQ(empty->ntotal, 0);
    empty->add(500, rows.data());
    ASSERT_NO_THROW(faiss_ext::check_index(*empty));
    expect_set(*empty);
}

/// As somebody's who knows copy() only.
class NamedIndex : public faiss_ext::IndexHNSWGnnd {
  public:
    using IndexHNSWGnnd::IndexHNSWGnnd;
    std::unique_ptr<faiss::Index> copy() const override { return std::make_unique<NamedIndex>(*this); }
    std::string name = "mine";
};

TEST(IndexOperations, MergesKeepTheClassOfTheFirst) {
    const std::vector<float> rows = gnnd::test::random_rows(400, 8);
    NamedIndex first(8, 16);
    first.name = "ours";
    first.add(300, rows.data());
    faiss_ext::IndexHNSWGnnd second(8, 16);
    second.add(100, rows.data() + 300 * 8);
    for (const faiss::Index* other :
         {static_cast<const faiss::Index*>(&second), static_cast<const faiss::Index*>(&first)}) {
        const auto merged = faiss_ext::merge_indexes(first, *other);
        ASSERT_NO_THROW(faiss_ext::check_index(*merged));
        EXPECT_EQ(merged->ntotal, 300 + other->ntotal);
        const auto* same = dynamic_cast<const NamedIndex*>(merged.get());
        ASSERT_NE(same, nullptr);
        EXPECT_EQ(same->name, "ours");
    }
    EXPECT_EQ(first.ntotal, 300);
}

TEST_P(OperationsTest, ParametersGoToTheIndexInside) {
    const auto made = GetParam().make(8, faiss::METRIC_L2);
    faiss::IndexIDMap map(made.index.get());
    faiss_ext::ParameterSpace space;
    space.set_index_parameter(&map, "gnnd_recall", 0.875);
    EXPECT_EQ(made.builder->params.recall, 0.875f);
    space.set_index_parameters(&map, "gnnd_recall=0.5,verbose=0");
    EXPECT_EQ(made.builder->params.recall, 0.5f);
    gnnd::test::expect_faiss_error("gnnd_recall", [&] { space.set_index_parameter(&map, "gnnd_recall", 1.5); });
    gnnd::test::expect_faiss_error("nonsense", [&] { space.set_index_parameter(&map, "nonsense", 1); });
    faiss::IndexFlatL2 flat(8);
    gnnd::test::expect_faiss_error("no index with GNND", [&] { space.set_index_parameter(&flat, "gnnd_recall", 1); });
    space.initialize(&map);
    const bool nsg = dynamic_cast<faiss::IndexNSG*>(made.index.get()) != nullptr;
    const std::string beam = nsg ? "search_L" : "efSearch";
    EXPECT_EQ(
        std::count_if(space.parameter_ranges.begin(), space.parameter_ranges.end(),
                      [&](const faiss::ParameterRange& range) { return range.name == beam && !range.values.empty(); }),
        1);
    space.set_index_parameter(&map, beam, 77);
    EXPECT_EQ(nsg ? dynamic_cast<faiss::IndexNSG&>(*made.index).nsg.search_L
                  : dynamic_cast<faiss::IndexHNSW&>(*made.index).hnsw.efSearch,
              77);
    if (nsg) gnnd::test::expect_faiss_error("search_L", [&] { space.set_index_parameter(&map, beam, 0); });
}

}  // namespace

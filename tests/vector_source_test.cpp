// SPDX-License-Identifier: MIT
#include "faiss_ext/vector_source.h"

#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexNNDescent.h>
#include <faiss/IndexNSG.h>
#include <faiss/IndexPQ.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/VectorTransform.h>
#include <faiss/index_factory.h>
#include <faiss/invlists/OnDiskInvertedLists.h>

#include <memory>

#include "tests/faiss_helpers.h"
#include "tests/temp_dir.h"

namespace {

using faiss_ext::idx_t;
using faiss_ext::VectorSource;
using gnnd::test::expect_faiss_error;
using gnnd::test::random_rows;

constexpr int kDim = 16;
constexpr idx_t kRows = 640;

const std::vector<float>& rows() {
    static const std::vector<float> rows = random_rows(kRows, kDim);
    return rows;
}

/// The multiples of 3, descending: a permutation that differs from the order of adding.
std::vector<idx_t> own_ids() {
    std::vector<idx_t> ids(kRows);
    for (idx_t i = 0; i < kRows; ++i) ids[i] = 3 * (kRows - 1 - i);
    return ids;
}

std::unique_ptr<faiss::Index> made_by_factory(const char* description) {
    std::unique_ptr<faiss::Index> index(faiss::index_factory(kDim, description));
    index->train(kRows, rows().data());
    index->add(kRows, rows().data());
    return index;
}

void expect_rows(const VectorSource& source, const std::vector<float>& expected) {
    ASSERT_EQ(source.vectors().n, kRows);
    ASSERT_EQ(source.vectors().d, kDim);
    std::vector<float> got(expected.size());
    gnnd::copy_as_f32(source.vectors(), 0, kRows, got.data());
    EXPECT_EQ(got, expected);
}

TEST(VectorSource, ViewsFlatIndexesInPlace) {
    faiss::IndexFlatL2 l2(kDim);
    faiss::IndexFlatIP ip(kDim);
    faiss::IndexFlat l1(kDim, faiss::METRIC_L1);
    for (faiss::IndexFlat* index : std::initializer_list<faiss::IndexFlat*>{&l2, &ip, &l1}) {
        index->add(kRows, rows().data());
        const VectorSource source(index);
        EXPECT_EQ(source.vectors().data, index->get_xb());
        EXPECT_EQ(source.metric(), faiss_ext::to_gnnd_metric(index->metric_type));
        EXPECT_TRUE(source.ids().empty());
        EXPECT_EQ(source.id_of(7), 7);
        expect_rows(source, rows());
    }
}

class Decoded : public testing::TestWithParam<const char*> {};

TEST_P(Decoded, RowsAreWhatTheIndexReconstructs) {
    const auto index = made_by_factory(GetParam());
    const VectorSource source(index.get());
    EXPECT_TRUE(source.ids().empty());
    if (auto* ivf = dynamic_cast<faiss::IndexIVF*>(index.get())) {
        EXPECT_EQ(ivf->direct_map.type, faiss::DirectMap::NoMap);  // it was read without changing the index
        ivf->make_direct_map(true);
    }
    std::vector<float> expected(kRows * kDim);
    for (idx_t i = 0; i < kRows; ++i) index->reconstruct(i, expected.data() + i * kDim);
    expect_rows(source, expected);
}

INSTANTIATE_TEST_SUITE_P(Types, Decoded,
                         testing::Values("SQ8", "SQ4", "SQfp16", "PQ4x4np", "PQ4x4fs", "IVF8,Flat", "IVF8,SQ8",
                                         "IVF8,PQ4x4np", "SQ8,RFlat", "HNSW8", "HNSW8,SQ8", "NSG8,Flat"));

TEST(VectorSource, IvfRowsFollowTheIds) {
    faiss::IndexFlatL2 coarse(kDim);
    faiss::IndexIVFFlat index(&coarse, kDim, 8);
    index.train(kRows, rows().data());
    const std::vector<idx_t> ids = own_ids();
    index.add_with_ids(kRows, rows().data(), ids.data());
    const VectorSource source(&index);
    ASSERT_EQ(source.vectors().n, kRows);
    for (idx_t row = 0; row < kRows; ++row) {
        EXPECT_EQ(source.id_of(row), 3 * row);
        const float* got = reinterpret_cast<const float*>(source.vectors().row(row));
        EXPECT_TRUE(std::equal(got, got + kDim, rows().begin() + (kRows - 1 - row) * kDim));
    }
}

TEST(VectorSource, ReadsInvertedListsOnDisk) {
    const gnnd::test::TempDir dir;
    faiss::IndexFlatL2 coarse(kDim);
    faiss::IndexIVFFlat index(&coarse, kDim, 8);
    index.train(kRows, rows().data());
    index.replace_invlists(new faiss::OnDiskInvertedLists(index.nlist, index.code_size, dir.file("lists.ivf").c_str()),
                           true);
    index.add(kRows, rows().data());
    expect_rows(VectorSource(&index), rows());
}

TEST(VectorSource, UnwrapsIdMaps) {
    faiss::IndexFlatL2 flat(kDim);
    faiss::IndexIDMap map(&flat);
    faiss::IndexFlatL2 flat2(kDim);
    faiss::IndexIDMap2 map2(&flat2);
    const std::vector<idx_t> ids = own_ids();
    for (faiss::Index* index : std::initializer_list<faiss::Index*>{&map, &map2}) {
        index->add_with_ids(kRows, rows().data(), ids.data());
        const VectorSource source(index);
        EXPECT_EQ(source.ids(), ids);
        expect_rows(source, rows());
    }
}

TEST(VectorSource, ReadsPreTransformInTheInnerSpace) {
    faiss::RandomRotationMatrix rotation(kDim, kDim);
    rotation.init(5);
    faiss::IndexFlatL2 flat(kDim);
    faiss::IndexPreTransform index(&rotation, &flat);
    index.add(kRows, rows().data());
    const std::unique_ptr<float[]> rotated(rotation.apply(kRows, rows().data()));
    expect_rows(VectorSource(&index), {rotated.get(), rotated.get() + kRows * kDim});
}

TEST(VectorSource, ComposesWrappersAndTheirIds) {
    faiss::RandomRotationMatrix rotation(kDim, kDim);
    rotation.init(5);
    faiss::IndexFlatL2 coarse(kDim);
    faiss::IndexIVFFlat ivf(&coarse, kDim, 8);
    faiss::IndexPreTransform rotated(&rotation, &ivf);
    faiss::IndexIDMap map(&rotated);
    map.train(kRows, rows().data());
    const std::vector<idx_t> ids = own_ids();
    map.add_with_ids(kRows, rows().data(), ids.data());
    const VectorSource source(&map);
    EXPECT_EQ(source.ids(), ids);
    const std::unique_ptr<float[]> expected(rotation.apply(kRows, rows().data()));
    expect_rows(source, {expected.get(), expected.get() + kRows * kDim});
}

TEST(VectorSource, ReadsTheStorageOfGraphIndexes) {
    faiss::IndexNNDescentFlat descent(kDim, 8);
    descent.add(kRows, rows().data());
    const VectorSource source(&descent);
    EXPECT_EQ(source.vectors().data, dynamic_cast<const faiss::IndexFlat&>(*descent.storage).get_xb());
}

TEST(VectorSource, CopiesOutliveTheFirst) {
    const auto index = made_by_factory("SQ8");
    auto first = std::make_unique<VectorSource>(index.get());
    std::vector<float> expected(kRows * kDim), got(kRows * kDim);
    gnnd::copy_as_f32(first->vectors(), 0, kRows, expected.data());
    const VectorSource copy = *first;
    first.reset();
    gnnd::copy_as_f32(copy.vectors(), 0, kRows, got.data());
    EXPECT_EQ(got, expected);
}

/// An index of an unknown kind that can reconstruct all rows but one.
struct Homemade : faiss::Index {
    explicit Homemade(idx_t broken) : Index(kDim), broken(broken) { ntotal = kRows; }
    void add(idx_t, const float*) override {}
    void search(idx_t, const float*, idx_t, float*, idx_t*, const faiss::SearchParameters*) const override {}
    void reset() override {}
    void reconstruct(idx_t key, float* out) const override {
        if (key == broken) throw std::runtime_error("row is gone");
        std::copy_n(rows().begin() + key * kDim, kDim, out);
    }
    idx_t broken;
};

TEST(VectorSource, AsksUnknownIndexesRowByRow) {
    const Homemade whole(-1);
    expect_rows(VectorSource(&whole), rows());
    for (const idx_t broken : {idx_t(0), kRows / 2}) {
        const Homemade index(broken);
        expect_faiss_error("Homemade cannot reconstruct its vectors: row is gone",
                           [&] { VectorSource source(&index); });
    }
}

TEST(VectorSource, RefusesWhatHoldsNoVectors) {
    expect_faiss_error("null", [] { VectorSource source(nullptr); });
    const faiss::IndexFlatL2 empty(kDim);
    expect_faiss_error("IndexFlatL2 is empty", [&] { VectorSource source(&empty); });
    const faiss::IndexPQ untrained(kDim, 4, 8);
    expect_faiss_error("IndexPQ is not trained", [&] { VectorSource source(&untrained); });
    const faiss::IndexHNSW hollow(kDim, 8);
    expect_faiss_error("IndexHNSW has no index inside", [&] { VectorSource source(&hollow); });
    const faiss::IndexIDMap map;
    expect_faiss_error("has no index inside", [&] { VectorSource source(&map); });
}

TEST(VectorSource, RefusesWhatCannotReconstruct) {
    const auto index = made_by_factory("IVF8,FlatDedup");
    expect_faiss_error("IndexIVFFlatDedup cannot reconstruct", [&] { VectorSource source(index.get()); });
}

TEST(VectorSource, RefusesAnIdMapThatDoesNotFit) {
    faiss::IndexFlatL2 flat(kDim);
    faiss::IndexIDMap map(&flat);
    map.add_with_ids(kRows, rows().data(), own_ids().data());
    flat.add(1, rows().data());
    expect_faiss_error("maps 640 ids, the index inside has id 640", [&] { VectorSource source(&map); });
}

TEST(VectorSource, RefusesMetricsWithoutCounterpart) {
    faiss::IndexFlat canberra(kDim, faiss::METRIC_Canberra);
    canberra.add(kRows, rows().data());
    expect_faiss_error("metric number", [&] { VectorSource source(&canberra); });
    expect_faiss_error("FAISS has no metric chi2", [] { faiss_ext::to_faiss_metric(gnnd::Metric::ChiSquare); });
    expect_faiss_error("FAISS has no metric cosine: it is ip of normalised vectors",
                       [] { faiss_ext::to_faiss_metric(gnnd::Metric::Cosine); });
    using gnnd::Metric;
    for (const Metric metric : {Metric::L2, Metric::InnerProduct, Metric::L1, Metric::Linf})
        EXPECT_EQ(faiss_ext::to_gnnd_metric(faiss_ext::to_faiss_metric(metric)), metric);
}

TEST(VectorSource, RefusesViewsOfNothing) {
    expect_faiss_error("no vectors", [] { VectorSource source(gnnd::VectorView{}, gnnd::Metric::L2); });
    expect_faiss_error("null pointer", [] { VectorSource source(gnnd::VectorView{nullptr, 3, 4}, gnnd::Metric::L2); });
}

TEST(ToFaissIds, TranslatesThroughTheIdMap) {
    faiss::IndexFlatL2 flat(kDim);
    faiss::IndexIDMap map(&flat);
    const std::vector<idx_t> ids = {70, 50, 60};
    map.add_with_ids(3, rows().data(), ids.data());
    const VectorSource source(&map);
    gnnd::KnnGraph graph(3, 3, gnnd::Metric::L2);
    graph.ids()[0] = 2, graph.ids()[1] = 1, graph.ids()[3] = 0;
    EXPECT_EQ(faiss_ext::to_faiss_ids(graph, source), (std::vector<idx_t>{60, 50, -1, 70, -1, -1, -1, -1, -1}));
    graph.ids()[4] = 3;
    expect_faiss_error("entry 3 of row 1", [&] { faiss_ext::to_faiss_ids(graph, source); });
}

}  // namespace

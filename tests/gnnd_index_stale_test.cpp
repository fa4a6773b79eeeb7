// SPDX-License-Identifier: MIT
// IndexNSGGnnd and IndexHNSWGnnd that FAISS's own methods have changed: no call goes on with a graph of other vectors.
#include <faiss/impl/IDSelector.h>

#include <algorithm>

#include "faiss_ext/detail/faiss_links.h"
#include "tests/gnnd_indexes.h"

namespace {

using faiss_ext::IndexHNSWGnnd;
using faiss_ext::IndexHNSWSQGnnd;
using faiss_ext::IndexNSGGnnd;
using gnnd::test::any_index;
using gnnd::test::AnyGnndIndex;
using gnnd::test::expect_faiss_error;
using gnnd::test::expect_whole;
using gnnd::test::random_rows;

constexpr int kStaleDim = 12;
constexpr int kStaleRows = 2000;
constexpr int kFew = 5;  // after whose add() no recall is measured, which would mend the graph

template <class Gnnd>
class ChangedByFaiss : public testing::Test {
  protected:
    using Replaced = typename Gnnd::Replaced;

    void SetUp() override {
        made_ = any_index(std::make_unique<Gnnd>(kStaleDim, 16));
        made_.index->add(kStaleRows, random_rows(kStaleRows, kStaleDim).data());
    }
    Gnnd& index() { return dynamic_cast<Gnnd&>(*made_.index); }
    faiss::IndexFlat& storage() { return dynamic_cast<faiss::IndexFlat&>(*index().storage); }

    /// The same number of others, by the methods of FAISS's class.
    void replace() {
        const gnnd::test::OneFaissThread one_thread;
        index().Replaced::reset();
        index().Replaced::add(kStaleRows, random_rows(kStaleRows, kStaleDim, false, 7).data());
    }
    /// As IndexFlatCodes::permute_entries() of later versions does, of which the links know nothing.
    void reverse() {
        float* rows = storage().get_xb();
        for (int i = 0; i < kStaleRows / 2; ++i)
            std::swap_ranges(rows + i * kStaleDim, rows + (i + 1) * kStaleDim, rows + (kStaleRows - 1 - i) * kStaleDim);
    }
    void expect_right() {
        faiss::IndexFlatL2 flat(kStaleDim);
        flat.add(index().ntotal, storage().get_xb());
        expect_whole(made_, flat);
        const gnnd::KnnGraph& graph = made_.graph();
        std::vector<std::int32_t> owners(graph.n() * graph.k());
        for (std::size_t i = 0; i < owners.size(); ++i) owners[i] = std::int32_t(i / graph.k());
        std::vector<float> distances(owners.size());
        gnnd::pair_distances({flat.get_xb(), flat.ntotal, kStaleDim, gnnd::DType::f32, 0}, graph.metric(),
                             owners.data(), graph.ids(), std::int64_t(owners.size()), distances.data());
        for (std::size_t i = 0; i < owners.size(); ++i) ASSERT_FLOAT_EQ(graph.distances()[i], distances[i]) << i;
    }

    AnyGnndIndex made_;
};

using ChangedKinds = testing::Types<IndexNSGGnnd, IndexHNSWGnnd>;
TYPED_TEST_SUITE(ChangedByFaiss, ChangedKinds, );

TYPED_TEST(ChangedByFaiss, AddNoticesOtherVectors) {
    const std::vector<float> more = random_rows(kFew, kStaleDim, false, 3);
    this->replace();
    this->index().add(kFew, more.data());
    this->expect_right();
    this->index().remove_ids(faiss::IDSelectorRange(kStaleRows, kStaleRows + kFew));
    this->reverse();
    this->index().add(kFew, more.data());
    this->expect_right();
}

TYPED_TEST(ChangedByFaiss, RemovalNoticesOtherVectors) {
    this->reverse();
    EXPECT_EQ(this->index().remove_ids(faiss::IDSelectorRange(10, 20)), 10U);
    this->expect_right();
}

TYPED_TEST(ChangedByFaiss, MergeNoticesOtherVectorsOfBoth) {
    TypeParam other(this->index());
    this->reverse();
    other.merge_copy_of(this->index());
    this->index().merge_copy_of(other);
    EXPECT_EQ(this->index().ntotal, 3 * kStaleRows);
    this->expect_right();
}

TYPED_TEST(ChangedByFaiss, ACopyNoticesToo) {
    this->reverse();
    this->made_ = any_index(std::make_unique<TypeParam>(this->index()));
    this->index().add(kFew, random_rows(kFew, kStaleDim, false, 3).data());
    this->expect_right();
}

// The tree that holds all objects is one of links that are gone; the graph is not.
TYPED_TEST(ChangedByFaiss, OtherLinksAreChosenAnew) {
    TypeParam& index = this->index();
    for (int i = 0; i < kStaleRows; ++i) {
        const std::int32_t* links = faiss_ext::detail::links_of(index, i);
        std::fill_n(const_cast<std::int32_t*>(links), faiss_ext::detail::degree_of(index), -1);
    }
    const std::vector<std::int32_t> row(this->made_.graph().ids(), this->made_.graph().ids() + 10);
    index.add(1, random_rows(1, kStaleDim, false, 3).data());
    this->expect_right();
    EXPECT_EQ(std::vector(index.graph().ids(), index.graph().ids() + 10), row);
}

TYPED_TEST(ChangedByFaiss, StoragesAndLinksOfAnotherNumberAreRefused) {
    TypeParam& index = this->index();
    const std::vector<float> more = random_rows(kFew, kStaleDim, false, 3);
    const auto expect_refused = [&](const char* why) {
        expect_faiss_error(why, [&] { index.add(kFew, more.data()); });
        expect_faiss_error(why, [&] { index.remove_ids(faiss::IDSelectorRange(0, 5)); });
        TypeParam empty(kStaleDim, 16);
        expect_faiss_error(why, [&] { empty.merge_from(index); });
    };
    index.storage->add(kFew, more.data());
    expect_refused("does not fit its storage");
    index.ntotal += kFew;
    expect_refused("links of all objects");
    index.ntotal -= kFew;
    this->storage().ntotal -= kFew;
    expect_refused("does not fit its storage");  // for its rows are more than it says
    this->storage().codes.resize(kStaleRows * kStaleDim * sizeof(float));
    index.add(kFew, more.data());
    this->expect_right();
}

TEST(ChangedCodes, AreNoticed) {
    const gnnd::test::OneFaissThread one_thread;
    IndexHNSWSQGnnd index(kStaleDim, faiss::ScalarQuantizer::QT_8bit, 16);
    index.builder.params.device.kind = gnnd::Device::Kind::cpu;
    const std::vector<float> rows = random_rows(kStaleRows, kStaleDim),
                             other = random_rows(kStaleRows, kStaleDim, false, 7);
    index.train(kStaleRows, rows.data());
    index.add(kStaleRows, rows.data());
    index.faiss::IndexHNSWSQ::reset();
    index.faiss::IndexHNSWSQ::add(kStaleRows, other.data());
    index.add(1, rows.data());
    faiss::IndexFlatL2 flat(kStaleDim);
    flat.add(kStaleRows, other.data());
    flat.add(1, rows.data());
    EXPECT_GE(faiss_ext::recall(faiss_ext::VectorSource(&flat), index.graph(), 10).value, 0.9);
}

}  // namespace

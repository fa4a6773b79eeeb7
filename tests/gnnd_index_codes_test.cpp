// SPDX-License-Identifier: MIT
// Indexes with GNND whose storage compresses: graphs of the vectors, searches among the codes.
#include <faiss/impl/IDSelector.h>
#include <faiss/index_io.h>

#include <ostream>
#include <typeinfo>
#include <vector>

#include "tests/gnnd_indexes.h"
#include "tests/temp_dir.h"

namespace {

using gnnd::test::AnyGnndIndex;
using gnnd::test::expect_as_good;
using gnnd::test::expect_faiss_error;
using gnnd::test::GnndKind;
using gnnd::test::random_rows;
using gnnd::test::reachable;
using gnnd::test::sample_rows;
using gnnd::test::search_index;
using gnnd::test::search_recall;
using gnnd::test::sized;

constexpr int kD = 128;

const faiss::Index& storage_of(const faiss::Index& index) {
    if (auto* nsg = dynamic_cast<const faiss::IndexNSG*>(&index)) return *nsg->storage;
    return *dynamic_cast<const faiss::IndexHNSW&>(index).storage;
}

class CodedIndexTest : public testing::TestWithParam<GnndKind> {
  protected:
    static AnyGnndIndex trained() {
        const gnnd::test::OneFaissThread one_thread;
        AnyGnndIndex made = GetParam().make(kD, faiss::METRIC_L2);
        made.index->train(1000, sample_rows(0, 1000).data());
        made.set_beam(64);
        return made;
    }
    /// Searches find what comparing all codes finds.
    static void expect_found(const AnyGnndIndex& made, double recall = 0.95) {
        ASSERT_EQ(storage_of(*made.index).ntotal, made.index->ntotal);
        ASSERT_NO_THROW(faiss_ext::check_index(*made.index));
        EXPECT_EQ(reachable(*made.index), std::size_t(made.index->ntotal));
        ASSERT_EQ(made.graph().n(), made.index->ntotal);
        ASSERT_NO_THROW(gnnd::check_structure(made.graph()));
        EXPECT_GE(search_recall(*made.index, storage_of(*made.index), sample_rows(19000, 500), 10), recall);
    }
};
INSTANTIATE_TEST_SUITE_P(All, CodedIndexTest, testing::ValuesIn(gnnd::test::kCodedKinds),
                         testing::PrintToStringParamName());

TEST_P(CodedIndexTest, IsFaissIndexAndWrittenAsOne) {
    const AnyGnndIndex made = GetParam().make(kD, faiss::METRIC_L2);
    const std::int64_t n = sized(4000);
    const std::vector<float> rows = sample_rows(0, n), queries = sample_rows(19000, 200);
    EXPECT_FALSE(made.index->is_trained);
    expect_faiss_error("not trained", [&] { made.index->add(n, rows.data()); });
    const AnyGnndIndex ready = trained();
    EXPECT_TRUE(ready.index->is_trained);
    ready.index->add(n, rows.data());
    expect_found(ready);
    // The codes are those that FAISS makes, and the graph is that of the vectors.
    const std::unique_ptr<faiss::Index> read = [&] {
        const gnnd::test::TempDir dir;
        faiss::write_index(ready.index.get(), dir.file("index").c_str());
        return std::unique_ptr<faiss::Index>(faiss::read_index(dir.file("index").c_str()));
    }();
    EXPECT_EQ(typeid(*read), GetParam().faiss_type);
    EXPECT_EQ(search_index(*read, queries, 10), search_index(*ready.index, queries, 10));
    faiss::IndexFlatL2 flat(kD);
    flat.add(n, rows.data());
    EXPECT_GE(faiss_ext::recall(faiss_ext::VectorSource(&flat), ready.graph(), 10).value, 0.99);

    const AnyGnndIndex copy = GetParam().copy(ready);
    const gnnd::test::SearchResult before = search_index(*ready.index, queries, 10);
    ready.index->reset();
    EXPECT_EQ(ready.index->ntotal, 0);
    EXPECT_TRUE(ready.index->is_trained);
    EXPECT_EQ(search_index(*copy.index, queries, 10), before);
}

// Of what is stored already only codes are left.
TEST_P(CodedIndexTest, GrowsAlmostAsGoodAsOneBuild) {
    const std::int64_t n = sized(6000), first = n / 2;
    const std::vector<float> rows = sample_rows(0, n), queries = sample_rows(19000, 1000);
    faiss::IndexFlatL2 flat(kD);
    flat.add(n, rows.data());
    const AnyGnndIndex grown = trained(), built = trained();
    built.index->add(n, rows.data());
    grown.index->add(first, rows.data());
    for (std::int64_t begin = first, count = 100; begin < n; begin += count) {
        if (begin > n * 5 / 6) count = n - begin;  // is merged
        grown.index->add(count, rows.data() + begin * kD);
    }
    ASSERT_EQ(grown.index->ntotal, n);
    expect_found(grown);
    expect_as_good(grown, built, flat, queries, 0.01);
}

TEST_P(CodedIndexTest, MergesRemovesAndGoesOnWithWhatFaissHasRead) {
    const std::int64_t n = sized(2000);
    const AnyGnndIndex made = trained(), other = trained();
    made.index->add(n, sample_rows(0, n).data());
    other.index->add(n / 2, sample_rows(n, n / 2).data());
    made.index->merge_from(*other.index);
    EXPECT_EQ(other.index->ntotal, 0);
    EXPECT_EQ(made.index->ntotal, n + n / 2);
    expect_found(made);
    const std::int64_t first = n / 20, end = 2 * n / 5, removed = end - first, behind = end + first;
    std::vector<float> kept(kD), row(kD);
    made.index->reconstruct(behind, kept.data());
    EXPECT_EQ(made.index->remove_ids(faiss::IDSelectorRange(first, end)), std::size_t(removed));
    made.index->reconstruct(behind - removed, row.data());
    EXPECT_EQ(row, kept);
    expect_found(made);

    const gnnd::test::TempDir dir;
    faiss::write_index(made.index.get(), dir.file("index").c_str());
    const AnyGnndIndex read =
        GetParam().continued(std::unique_ptr<faiss::Index>(faiss::read_index(dir.file("index").c_str())));
    read.set_beam(64);
    read.index->add(200, sample_rows(10000, 200).data());
    EXPECT_EQ(read.index->ntotal, n + n / 2 - removed + 200);
    expect_found(read);

    const AnyGnndIndex untrained = GetParam().make(kD, faiss::METRIC_L2);
    expect_faiss_error("not trained", [&] { untrained.index->merge_from(*made.index); });
}

struct ReadCase {
    GnndKind kind;
    faiss::MetricType metric;
    friend std::ostream& operator<<(std::ostream& out, const ReadCase& c) {
        return out << c.kind << '_' << gnnd::name_of(faiss_ext::to_gnnd_metric(c.metric));
    }
};

/// Every storage under every metric that it compares under.
std::vector<ReadCase> read_cases() {
    std::vector<ReadCase> cases;
    for (const GnndKind& kind : gnnd::test::kGnndKinds)
        for (const faiss::MetricType metric :
             {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT, faiss::METRIC_L1, faiss::METRIC_Linf})
            cases.push_back({kind, metric});
    for (const GnndKind& kind : gnnd::test::kCodedKinds) {
        cases.push_back({kind, faiss::METRIC_L2});
        if (kind.make(8, faiss::METRIC_INNER_PRODUCT).index->metric_type == faiss::METRIC_INNER_PRODUCT)
            cases.push_back({kind, faiss::METRIC_INNER_PRODUCT});
    }
    return cases;
}

class ReadIndexTest : public testing::TestWithParam<ReadCase> {};
INSTANTIATE_TEST_SUITE_P(All, ReadIndexTest, testing::ValuesIn(read_cases()), testing::PrintToStringParamName());

TEST_P(ReadIndexTest, GrowsAfterItsLinksBecameAGraph) {
    const gnnd::test::OneFaissThread one_thread;
    const auto& [kind, metric] = GetParam();
    constexpr int d = 16, n = 3000, more = 60;
    const std::vector<float> rows = random_rows(n + more, d), queries = random_rows(100, d, false, 3);
    const AnyGnndIndex made = kind.make(d, metric);
    made.index->train(n, rows.data());
    made.index->add(n, rows.data());
    const gnnd::test::TempDir dir;
    faiss::write_index(made.index.get(), dir.file("index").c_str());
    const AnyGnndIndex read =
        kind.continued(std::unique_ptr<faiss::Index>(faiss::read_index(dir.file("index").c_str())));
    EXPECT_EQ(read.graph().n(), 0);
    for (int i = 0; i < more; i += more / 2) {
        read.index->add(more / 2, rows.data() + (n + i) * d);
        EXPECT_EQ(read.index->ntotal, n + i + more / 2);
        EXPECT_EQ(reachable(*read.index), std::size_t(read.index->ntotal));
        ASSERT_NO_THROW(gnnd::check_structure(read.graph()));
    }
    const faiss::Index& storage = storage_of(*read.index);
    EXPECT_GE(faiss_ext::recall(faiss_ext::VectorSource(&storage), read.graph(), 10).value,
              dynamic_cast<const faiss::IndexFlat*>(&storage) != nullptr ? 0.99 : 0.9);
    read.set_beam(128);
    EXPECT_GE(search_recall(*read.index, storage, queries, 10), 0.95);
}

TEST(CodedIndexes, RefuseWhatTheyCannotBe) {
    using faiss::ScalarQuantizer;
    expect_faiss_error("codes are compared under l2 and ip, not l1",
                       [] { faiss_ext::IndexNSGSQGnnd(8, ScalarQuantizer::QT_8bit, 16, faiss::METRIC_L1); });
    expect_faiss_error("M = 1", [] { faiss_ext::IndexHNSWSQGnnd(8, ScalarQuantizer::QT_8bit, 1); });
    expect_faiss_error("R = 0", [] { faiss_ext::IndexNSGPQGnnd(8, 4, 0); });
    expect_faiss_error("pq_m = 0", [] { faiss_ext::IndexNSGPQGnnd(8, 0); });
    expect_faiss_error("pq_m = 9", [] { faiss_ext::IndexHNSWPQGnnd(8, 9); });
    faiss_ext::IndexHNSWSQGnnd ip(8, ScalarQuantizer::QT_fp16, 16, faiss::METRIC_INNER_PRODUCT);
    ip.builder.params.device.kind = gnnd::Device::Kind::cpu;
    const std::vector<float> rows = random_rows(1000, 8);
    ip.train(1000, rows.data());
    ip.add(900, rows.data());
    ip.add(100, rows.data() + 900 * 8);
    ip.hnsw.efSearch = 64;
    EXPECT_GE(search_recall(ip, *ip.storage, random_rows(100, 8, false, 2), 10), 0.95);
    faiss::IndexHNSW lattice(new faiss::IndexFlatL2(8), 16);
    lattice.own_fields = true;
    expect_faiss_error("IndexFlatL2", [&] { ip.merge_from(*lattice.storage); });
}

}  // namespace

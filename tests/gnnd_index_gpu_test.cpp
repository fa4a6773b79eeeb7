// SPDX-License-Identifier: MIT
// Indexes with GNND that grow on a GPU, whatever FAISS is compiled for: what stays there from one add() to the next,
// and when it goes. Without a GPU all of it is skipped.
#include <faiss/impl/IDSelector.h>

#include <limits>

#include "faiss_ext/index_operations.h"
#include "tests/gnnd_indexes.h"
#include "tests/gpu.h"

namespace gnnd::test {
namespace {

faiss_ext::WithGnnd& with_gnnd(const AnyGnndIndex& made) {
    return dynamic_cast<faiss_ext::WithGnnd&>(*made.index);
}
std::size_t kept(const AnyGnndIndex& made) {
    return with_gnnd(made).kept_on_gpu();
}

class GnndIndexOnGpu : public testing::TestWithParam<GnndKind> {
  protected:
    void SetUp() override { SKIP_WITHOUT_GPU(); }

    static AnyGnndIndex make() {
        AnyGnndIndex made = GetParam().make(128, faiss::METRIC_L2);
        made.builder->params.device = {};  // `auto` finds the GPU
        return made;
    }
    /// One that has grown.
    struct Grown {
        AnyGnndIndex made = make();
        faiss::IndexFlatL2 flat{128};
        Grown() {
            add(0, 8000);
            EXPECT_EQ(kept(made), 0U);
            add(8000, 50);
            EXPECT_GT(kept(made), 0U);
        }
        void add(std::int64_t begin, std::int64_t count) { add_rows(*made.index, flat, sample_rows(begin, count)); }
    };
};

INSTANTIATE_TEST_SUITE_P(All, GnndIndexOnGpu, testing::ValuesIn(kGnndKinds), testing::PrintToStringParamName());

TEST_P(GnndIndexOnGpu, GrowsThere) {
    Grown grown;
    const AnyGnndIndex built = make();
    for (std::int64_t begin = 8050; begin < 13050; begin += 250) {
        grown.add(begin, 250);
        ASSERT_TRUE(grown.made.builder->on_gpu);
        ASSERT_GT(kept(grown.made), 0U);
        ASSERT_EQ(reachable(*grown.made.index), std::size_t(begin + 250));
    }
    expect_whole(grown.made, grown.flat);
    const std::vector<float> all = sample_rows(0, 13050), queries = sample_rows(18000, 2000);
    built.index->add(13050, all.data());
    expect_whole(built, grown.flat);
    expect_as_good(grown.made, built, grown.flat, queries, 0.02);
}

/// Links by gnnd/detail/far_links.h, for which the graph comes to the host first.
TEST_P(GnndIndexOnGpu, CopiesAreLinkedAsByTheHost) {
    std::vector<float> rows;
    for (int times = 0; times < 7; ++times) {
        const std::vector<float> all = sample_rows(0, 900);
        rows.insert(rows.end(), all.begin(), all.end());
    }
    const AnyGnndIndex there = make(), here = GetParam().make(128, faiss::METRIC_L2);
    faiss::IndexFlatL2 flat(128), again(128);
    add_rows(*there.index, flat, rows);
    ASSERT_TRUE(there.builder->on_gpu);
    expect_whole(there, flat);
    add_rows(*here.index, again, rows);
    expect_as_good(there, here, flat, sample_rows(18000, 1000), 0.03);
}

TEST_P(GnndIndexOnGpu, AFailedAddLeavesItAsItWas) {
    Grown grown;
    const std::vector<float> queries = sample_rows(18000, 500);
    const SearchResult before = search_index(*grown.made.index, queries, 5);
    for (const int count : {1, 70, 3000}) {  // the last are merged
        SCOPED_TRACE(testing::Message() << count << " rows");
        std::vector<float> bad = sample_rows(9000, count);
        bad.back() = std::numeric_limits<float>::infinity();
        expect_faiss_error("vector " + std::to_string(count - 1), [&] { grown.made.index->add(count, bad.data()); });
        EXPECT_EQ(kept(grown.made), 0U);
        bad.back() = 0;
        for (int allowed = 0; allowed < 4; ++allowed) {  // how often is asked depends on the time that the GPU takes
            const AnyGnndIndex other = GetParam().copy(grown.made);
            other.builder->params.device = {};
            int asked = 0;
            other.builder->callbacks.interrupt = [&] { return ++asked > allowed; };
            try {
                other.index->add(count, bad.data());
            } catch (const faiss::FaissException& error) {
                ASSERT_NE(std::string(error.what()).find("interrupted"), std::string::npos) << error.what();
                EXPECT_EQ(kept(other), 0U);
                EXPECT_EQ(other.index->ntotal, 8050);
                EXPECT_EQ(search_index(*other.index, queries, 5), before);
            }
        }
        grown.made.builder->callbacks.interrupt = [] { return true; };
        expect_faiss_error("interrupted", [&] { grown.made.index->add(count, bad.data()); });
        grown.made.builder->callbacks.interrupt = {};
        EXPECT_EQ(grown.made.index->ntotal, 8050);
        EXPECT_EQ(search_index(*grown.made.index, queries, 5), before);
    }
    grown.add(8050, 50);
    EXPECT_EQ(kept(grown.made), (8100 + 8100 / 4) * (4 * 128 + 16 * 64));
    expect_whole(grown.made, grown.flat);
}

TEST_P(GnndIndexOnGpu, LetsGoWhatOthersChange) {
    const std::vector<std::pair<const char*, std::function<void(Grown&)>>> changes{
        {"remove",
         [](Grown& grown) {
             const faiss::IDSelectorRange some(100, 300);
             grown.made.index->remove_ids(some);
             grown.flat.remove_ids(some);
         }},
        {"merge",
         [](Grown& grown) {
             const AnyGnndIndex other = make();
             const std::vector<float> rows = sample_rows(9000, 700);
             other.index->add(700, rows.data());
             grown.flat.add(700, rows.data());
             grown.made.index->merge_from(*other.index);
         }},
        {"reset",
         [](Grown& grown) {
             grown.made.index->reset();
             grown.flat.reset();
             grown.add(0, 3000);
         }},
        {"other columns",
         [](Grown& grown) {
             with_gnnd(grown.made).set_graph_k(40);
             with_gnnd(grown.made).keep_on_gpu(-1);
         }},
    };
    for (const auto& [name, change] : changes) {
        SCOPED_TRACE(name);
        Grown grown;
        change(grown);
        EXPECT_EQ(kept(grown.made), 0U);
        for (const std::int64_t begin : {16000, 16050}) {
            grown.add(begin, 50);
            expect_whole(grown.made, grown.flat);
        }
        EXPECT_GT(kept(grown.made), 0U);
    }
}

TEST_P(GnndIndexOnGpu, KeepsNoMoreThanItMay) {
    Grown grown;
    for (const std::int64_t most : {std::int64_t(0), std::int64_t(1000000), std::int64_t(-1)}) {
        SCOPED_TRACE(most);
        with_gnnd(grown.made).keep_on_gpu(most);
        EXPECT_EQ(kept(grown.made), 0U);
        grown.add(grown.flat.ntotal, 60);
        EXPECT_TRUE(grown.made.builder->on_gpu);
        EXPECT_EQ(kept(grown.made) > 0, most < 0);
        expect_whole(grown.made, grown.flat);
    }
    grown.made.builder->params.device_memory = std::int64_t(1) << 30;
    grown.add(grown.flat.ntotal, 60);
    EXPECT_EQ(kept(grown.made), 0U);
    expect_whole(grown.made, grown.flat);
}

TEST_P(GnndIndexOnGpu, CopiesGrowApart) {
    Grown grown;
    const AnyGnndIndex copy = GetParam().copy(grown.made);
    copy.builder->params.device = {};
    EXPECT_EQ(kept(copy), 0U);
    faiss::IndexFlatL2 flat(128);
    flat.add(grown.flat.ntotal, grown.flat.get_xb());
    grown.add(9000, 80);
    add_rows(*copy.index, flat, sample_rows(12000, 30));
    EXPECT_GT(kept(copy), 0U);
    expect_whole(grown.made, grown.flat);
    expect_whole(copy, flat);
}

// One that takes another in, and two that stay as they are.
TEST_P(GnndIndexOnGpu, MergesThereAsGoodAsOneBuild) {
    const std::vector<float> all = sample_rows(0, 12000), queries = sample_rows(18000, 2000);
    faiss::IndexFlatL2 flat(128);
    flat.add(12000, all.data());
    const AnyGnndIndex first = make(), second = make(), taker = make(), built = make();
    first.index->add(7000, all.data());
    second.index->add(5000, &all[7000 * 128]);
    taker.index->add(7000, all.data());
    built.index->add(12000, all.data());
    const SearchResult before[] = {search_index(*first.index, queries, 5), search_index(*second.index, queries, 5)};
    const AnyGnndIndex merged =
        GetParam().copy({faiss_ext::merge_indexes(*first.index, *second.index), nullptr, {}, {}});
    EXPECT_EQ(search_index(*first.index, queries, 5), before[0]);
    EXPECT_EQ(search_index(*second.index, queries, 5), before[1]);
    taker.index->merge_from(*second.index);
    EXPECT_EQ(second.index->ntotal, 0);
    for (const AnyGnndIndex* made : {&merged, &taker}) {
        expect_whole(*made, flat);
        expect_as_good(*made, built, flat, queries, 0.01);
    }
    EXPECT_TRUE(taker.builder->on_gpu);
    EXPECT_EQ(kept(taker), 0U);
    add_rows(*taker.index, flat, sample_rows(12000, 50));
    EXPECT_GT(kept(taker), 0U);
    expect_whole(taker, flat);
}

TEST(GnndIndexOfCodesOnGpu, IsBuiltThereAndKeepsNothing) {
    SKIP_WITHOUT_GPU();
    for (const GnndKind& kind : kCodedKinds) {
        SCOPED_TRACE(kind);
        const AnyGnndIndex made = kind.make(128, faiss::METRIC_L2);
        made.builder->params.device = {};
        const std::vector<float> rows = sample_rows(0, 6000), more = sample_rows(6000, 60);
        made.index->train(6000, rows.data());
        made.index->add(6000, rows.data());
        EXPECT_TRUE(made.builder->on_gpu);
        made.index->add(60, more.data());
        EXPECT_EQ(kept(made), 0U);
        ASSERT_NO_THROW(faiss_ext::check_index(*made.index));
        EXPECT_EQ(reachable(*made.index), 6060U);
    }
}

}  // namespace
}  // namespace gnnd::test

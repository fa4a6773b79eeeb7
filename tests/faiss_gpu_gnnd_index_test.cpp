// SPDX-License-Identifier: MIT
// IndexNSGGnnd and IndexHNSWGnnd whose graphs are built and grow on a GPU, with FAISS's resources and without.
#include <faiss/impl/IDSelector.h>

#include <limits>
#include <tuple>

#include "tests/faiss_gpu.h"
#include "tests/gnnd_indexes.h"

namespace gnnd::test {
namespace {

class GpuGnndIndex : public FaissGpu, public testing::WithParamInterface<std::tuple<GnndKind, bool>> {
  protected:
    AnyGnndIndex make(int d, faiss::MetricType metric) {
        const auto& [kind, with_resources] = GetParam();
        AnyGnndIndex made = kind.make(d, metric);
        made.builder->params.device = {};  // `auto` finds the GPU
        if (with_resources) made.builder->use(&*resources);
        return made;
    }
    static void expect_ran_on_gpu(const AnyGnndIndex& made) {
        EXPECT_TRUE(made.builder->on_gpu);
        EXPECT_EQ(made.builder->stats.device.name(), "cuda:0") << made.builder->stats.device_reason;
    }
};

INSTANTIATE_TEST_SUITE_P(All, GpuGnndIndex, testing::Combine(testing::ValuesIn(kGnndKinds), testing::Bool()),
                         [](const auto& info) {
                             return std::string(std::get<0>(info.param).name) +
                                    (std::get<1>(info.param) ? "_resources" : "_own_memory");
                         });

TEST_P(GpuGnndIndex, BuildsGrowsMergesAndRemoves) {
    const std::vector<float> queries = sample_rows(19000, 1000);
    faiss::IndexFlatL2 flat(128);
    const AnyGnndIndex made = make(128, faiss::METRIC_L2), other = make(128, faiss::METRIC_L2);
    add_rows(*made.index, flat, sample_rows(0, 10000));
    expect_ran_on_gpu(made);
    expect_whole(made, flat);
    for (std::int64_t begin = 10000; begin < 12000; begin += 100) {
        add_rows(*made.index, flat, sample_rows(begin, 100));  // searched for
        expect_ran_on_gpu(made);
        ASSERT_EQ(reachable(*made.index), std::size_t(begin + 100));
    }
    expect_whole(made, flat);
    add_rows(*made.index, flat, sample_rows(12000, 3000));  // merged
    expect_ran_on_gpu(made);
    expect_whole(made, flat);

    const std::vector<float> rest = sample_rows(15000, 4000);
    other.index->add(4000, rest.data());
    flat.add(4000, rest.data());
    made.index->merge_from(*other.index);
    expect_ran_on_gpu(made);
    expect_whole(made, flat);
    made.set_beam(64);
    EXPECT_GE(search_recall(*made.index, flat, queries, 10), 0.95);

    const faiss::IDSelectorRange some(3000, 8000);
    EXPECT_EQ(made.index->remove_ids(some), 5000U);
    flat.remove_ids(some);
    expect_ran_on_gpu(made);
    expect_whole(made, flat);
    EXPECT_GE(search_recall(*made.index, flat, queries, 10), 0.95);
    expect_usable();
}

TEST_P(GpuGnndIndex, SmallSetsOfEveryMetric) {
    for (const faiss::MetricType metric :
         {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT, faiss::METRIC_L1, faiss::METRIC_Linf}) {
        SCOPED_TRACE(testing::Message() << "metric " << int(metric));
        faiss::IndexFlat flat(kDim, metric);
        const AnyGnndIndex made = make(kDim, metric);
        for (const std::int64_t count : {1, 1, 5, 1000, 1, 20, 500}) {
            SCOPED_TRACE(testing::Message() << count << " more than " << flat.ntotal);
            add_rows(*made.index, flat, random_rows(count, kDim, false, unsigned(flat.ntotal) + 1));
            expect_whole(made, flat, 0.98);
        }
    }
}

TEST_P(GpuGnndIndex, AFailedAddLeavesItAsItWas) {
    const AnyGnndIndex made = make(kDim, faiss::METRIC_L2);
    made.index->add(2000, rows.data());
    const SearchResult before = search_index(*made.index, rows, 5);
    for (const int count : {1, 20, 1000}) {
        std::vector<float> bad = random_rows(count, kDim, false, 7);
        bad[(count - 1) * kDim] = std::numeric_limits<float>::infinity();
        expect_faiss_error("vector " + std::to_string(count - 1), [&] { made.index->add(count, bad.data()); });
        made.builder->callbacks.interrupt = [] { return true; };
        bad[(count - 1) * kDim] = 0;
        expect_faiss_error("interrupted", [&] { made.index->add(count, bad.data()); });
        made.builder->callbacks.interrupt = {};
        EXPECT_EQ(made.index->ntotal, 2000) << count << " rows";
        EXPECT_EQ(search_index(*made.index, rows, 5), before) << count << " rows";
    }
    expect_usable();
}

}  // namespace
}  // namespace gnnd::test

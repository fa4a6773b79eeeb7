// SPDX-License-Identifier: MIT
// An add() or a merge that fails on a GPU leaves the index as it was, whatever fails when. Without a GPU all of it is
// skipped; the same is tested on the CPU by gnnd_index_failures_test.cpp.
#include <memory>
#include <ostream>
#include <string>
#include <tuple>

#include "tests/failing_device_memory.h"
#include "tests/failing_memory.h"
#include "tests/gnnd_indexes.h"
#include "tests/gpu.h"
#include "tests/index_failures.h"

namespace gnnd::test {
namespace {

constexpr std::int64_t kOld = 3000, kWarm = 8;  // objects of the first add, and of one that takes the graph to the GPU

/// An add of so many rows to an index of `old`, whose graph lies on the GPU already or does not.
struct GpuAdd {
    const char* name;
    std::int64_t old;
    bool warm;
    std::int64_t count;
    friend std::ostream& operator<<(std::ostream& out, const GpuAdd& add) { return out << add.name; }
};

// Searched for, and whether the recall is measured; merged; and the first, which is built.
const GpuAdd kAdds[] = {{"first", 0, false, 2000},    {"few", kOld, true, 4},       {"few_cold", kOld, false, 4},
                        {"searched", kOld, true, 20}, {"measured", kOld, true, 60}, {"measured_cold", kOld, false, 60},
                        {"merged", kOld, true, 1500}};
// Those that take memory of the host less often, so that each time can be tried.
const GpuAdd kSmallAdds[] = {kAdds[1], kAdds[2]};

AnyGnndIndex on_gpu(AnyGnndIndex made) {
    made.builder->params.device = {Device::Kind::cuda, 0};
    made.builder->params.deterministic = true;
    return made;
}

class GnndIndexGpuFailures : public testing::TestWithParam<std::tuple<GnndKind, GpuAdd>> {
  protected:
    void SetUp() override { SKIP_WITHOUT_GPU(); }

    static FailedAdds failed_adds() {
        const auto& [kind, add] = GetParam();
        auto first = std::make_shared<AnyGnndIndex>(on_gpu(kind.make(128, faiss::METRIC_L2)));
        if (add.old > 0) first->index->add(add.old, sample_rows(0, add.old).data());
        const auto make = [copy = kind.copy, first, is_warm = add.warm, warm = sample_rows(add.old, kWarm)] {
            AnyGnndIndex made = on_gpu(copy(*first));
            if (is_warm) made.index->add(kWarm, warm.data());
            return made;
        };
        const std::int64_t begin = add.old + kWarm;
        return {make, sample_rows(begin, add.count), sample_rows(begin + add.count, add.old == 0 ? 1000 : 3)};
    }

  private:
    const OneFaissThread one_thread_;  // so that the GPU prunes rows that are few, too
};
class GnndIndexGpuHostMemory : public GnndIndexGpuFailures {};

std::string name_of_case(const testing::TestParamInfo<GnndIndexGpuFailures::ParamType>& info) {
    return std::string(std::get<0>(info.param).name) + "_" + std::get<1>(info.param).name;
}
INSTANTIATE_TEST_SUITE_P(All, GnndIndexGpuFailures,
                         testing::Combine(testing::ValuesIn(kGnndKinds), testing::ValuesIn(kAdds)), name_of_case);
INSTANTIATE_TEST_SUITE_P(Small, GnndIndexGpuHostMemory,
                         testing::Combine(testing::ValuesIn(kGnndKinds), testing::ValuesIn(kSmallAdds)), name_of_case);

TEST_P(GnndIndexGpuFailures, DeviceMemoryFromAnyMomentOn) {
    failed_adds().expect_no_trace(run_out_at<FailingDeviceMemory>);
}

TEST_P(GnndIndexGpuFailures, DeviceMemoryOnce) {
    failed_adds().expect_no_trace(run_out_at<FailingOnce>);
}

TEST_P(GnndIndexGpuHostMemory, AtAnyMoment) {
    if (!FailingMemory::possible()) GTEST_SKIP() << "the sanitizers have operator new to themselves";
    failed_adds().expect_no_trace(run_out_at<FailingMemory>);
}

// How often is asked depends on the time that the GPU takes, what is left afterwards does not.
TEST_P(GnndIndexGpuFailures, InterruptAtAnyQuestion) {
    failed_adds().expect_no_trace(interrupt_at);
}

TEST_P(GnndIndexGpuFailures, VectorsThatAreNoNumbers) {
    failed_adds().expect_no_trace_of_bad_rows();
}

class GnndIndexGpuMergeFailures : public testing::TestWithParam<GnndKind> {
  protected:
    void SetUp() override { SKIP_WITHOUT_GPU(); }

    /// Of an index that holds its graph on the GPU, with one of which nothing may change.
    static void expect_no_trace(const std::function<Ending(int step, const std::function<void()>& call)>& fail) {
        const GnndKind& kind = GetParam();
        const auto made_of = [&](std::int64_t begin, std::int64_t count) {
            AnyGnndIndex made = on_gpu(kind.make(128, faiss::METRIC_L2));
            made.index->add(count, sample_rows(begin, count).data());
            return made;
        };
        const AnyGnndIndex first = made_of(0, kOld), second = made_of(kOld, 1500);
        const IndexState before(second);
        const auto make = [&] {
            AnyGnndIndex made = on_gpu(kind.copy(first));
            made.index->add(kWarm, sample_rows(2 * kOld, kWarm).data());
            return made;
        };
        const auto merge = [&](const AnyGnndIndex& made) {
            dynamic_cast<faiss_ext::WithGnnd&>(*made.index).merge_copy_of(*second.index);
        };
        FailedChanges(make, merge, sample_rows(2 * kOld + kWarm, 3)).expect_no_trace(fail);
        EXPECT_EQ(IndexState(second), before);
    }
};
INSTANTIATE_TEST_SUITE_P(All, GnndIndexGpuMergeFailures, testing::ValuesIn(kGnndKinds),
                         testing::PrintToStringParamName());

TEST_P(GnndIndexGpuMergeFailures, DeviceMemoryFromAnyMomentOn) {
    expect_no_trace(run_out_at<FailingDeviceMemory>);
}

TEST_P(GnndIndexGpuMergeFailures, InterruptAtAnyQuestion) {
    expect_no_trace(interrupt_at);
}

}  // namespace
}  // namespace gnnd::test

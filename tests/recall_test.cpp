// SPDX-License-Identifier: MIT
// Recall floors on real SIFT descriptors (tests/data).
#include <gtest/gtest.h>

#include "gnnd/builder.h"
#include "gnnd/io/vector_file.h"
#include "tests/cpu.h"
#include "tests/paths.h"
#include "tests/reference.h"

namespace gnnd {
namespace {

struct Case {
    int k;
    Metric metric;
    Update update;
    Init init;
    double floor;  ///< of Recall@10
    friend std::ostream& operator<<(std::ostream& out, const Case& c) {
        return out << 'k' << c.k << '_' << name_of(c.metric) << '_' << name_of(c.update) << '_' << name_of(c.init);
    }
};

class RecallTest : public testing::TestWithParam<Case> {};

TEST_P(RecallTest, OnRealDescriptors) {
    const Case c = GetParam();
    const io::VectorFile file(test::kSampleFile);
    VectorView rows = file.view();
    rows.n = test::sized(rows.n);
    BuildParams params = test::cpu_params(c.k, c.metric);
    params.update = c.update;
    params.init = c.init;
    const BuildResult result = build(rows, params);
    EXPECT_EQ(result.stats.stop, StopReason::converged);
    const double value = test::Truth(rows, c.metric).recall_of(result.graph);
    RecordProperty("recall", std::to_string(value));
    EXPECT_GE(value, c.floor);
}

constexpr Update kAll = Update::all, kSelective = Update::selective;
INSTANTIATE_TEST_SUITE_P(All, RecallTest,
                         testing::Values(Case{10, Metric::L2, kAll, Init::projection, 0.99},
                                         Case{32, Metric::L2, kAll, Init::projection, 0.99},
                                         Case{32, Metric::L2, kAll, Init::random, 0.99},
                                         Case{32, Metric::L2, kSelective, Init::projection, 0.98},
                                         Case{32, Metric::L2, kSelective, Init::random, 0.98},
                                         Case{32, Metric::InnerProduct, kAll, Init::projection, 0.95},
                                         Case{32, Metric::Cosine, kAll, Init::projection, 0.99},
                                         Case{32, Metric::L1, kAll, Init::projection, 0.99},
                                         Case{32, Metric::Linf, kAll, Init::projection, 0.95},
                                         Case{32, Metric::ChiSquare, kAll, Init::projection, 0.99}),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace gnnd

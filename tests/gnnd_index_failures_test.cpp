// SPDX-License-Identifier: MIT
// A call that fails leaves IndexNSGGnnd and IndexHNSWGnnd as they were, whatever fails when.
#include <faiss/impl/IDSelector.h>

#include <limits>

#include "tests/failing_memory.h"
#include "tests/gnnd_indexes.h"
#include "tests/index_failures.h"

namespace {

using gnnd::test::any_index;
using gnnd::test::AnyGnndIndex;
using gnnd::test::Ending;
using gnnd::test::expect_faiss_error;
using gnnd::test::FailedAdds;
using gnnd::test::FailingMemory;
using gnnd::test::GnndKind;
using gnnd::test::IndexState;
using gnnd::test::interrupt_at;
using gnnd::test::kGnndKinds;
using gnnd::test::random_rows;

constexpr int kDim = 4;

/// An index, and another that it may take in.
struct Subject {
    AnyGnndIndex made, other;
    faiss::Index& index() const { return *made.index; }
};

void add(faiss::Index& index, int count, unsigned seed) {
    index.add(count, random_rows(count, kDim, false, seed).data());
}

/// The calls that change an index.
struct Call {
    const char* name;
    int before;  ///< objects that there are
    std::function<void(const Subject&)> run;
    friend std::ostream& operator<<(std::ostream& out, const Call& call) { return out << call.name; }
};

const Call kCalls[] = {
    {"build", 0, [](const Subject& s) { add(s.index(), 70, 2); }},
    {"one", 0, [](const Subject& s) { add(s.index(), 1, 2); }},
    {"append_by_searching", 1100, [](const Subject& s) { add(s.index(), 4, 2); }},
    {"append_by_merging", 200, [](const Subject& s) { add(s.index(), 50, 2); }},
    {"merge", 200, [](const Subject& s) { s.index().merge_from(*s.other.index); }},
    {"remove", 200, [](const Subject& s) { s.index().remove_ids(faiss::IDSelectorRange(20, 60)); }},
};

/// One that chooses links by gnnd/detail/far_links.h, which it tries for long.
const Call kBuildOfScales{"build_of_all_scales", 0, [](const Subject& s) { add(s.index(), 520, 2); }};

struct FailureCase {
    GnndKind kind;
    Call call;
    friend std::ostream& operator<<(std::ostream& out, const FailureCase& c) { return out << c.kind << '_' << c.call; }

    AnyGnndIndex index_of(int count) const {
        AnyGnndIndex made = kind.make(kDim, faiss::METRIC_L2);
        made.builder->params.threads = 1;  // that asks for all memory
        if (!made.index->is_trained) {
            const gnnd::test::OneFaissThread one_thread;
            made.index->train(2000, random_rows(2000, kDim, false, 3).data());
        }
        if (count > 0) add(*made.index, count, 1);
        return made;
    }
    Subject subject() const { return {index_of(call.before), index_of(70)}; }
};

std::vector<FailureCase> all_failures() {
    std::vector<FailureCase> cases{{kGnndKinds[0], kBuildOfScales}};
    for (const GnndKind& kind : kGnndKinds)
        for (const Call& call : kCalls) cases.push_back({kind, call});
    for (const GnndKind& kind : {gnnd::test::kCodedKinds[0], gnnd::test::kCodedKinds[3]})  // SQ and PQ, NSG and HNSW
        for (const Call& call : kCalls) cases.push_back({kind, call});
    return cases;
}

class GnndIndexFailures : public testing::TestWithParam<FailureCase> {};
INSTANTIATE_TEST_SUITE_P(All, GnndIndexFailures, testing::ValuesIn(all_failures()), testing::PrintToStringParamName());

/// Fails the call at the first, second, ... occasion, until it succeeds: `attempt` makes it with that occasion failing
/// and tells whether it did. After each failure all is as before, and in the end as where nothing ever failed.
void fail_at_every_step(const FailureCase& c, const std::function<bool(const Subject&, int)>& attempt) {
    const Subject subject = c.subject(), never_failed = c.subject();
    c.call.run(never_failed);
    const IndexState before(subject.made), other_before(subject.other);
    int step = 0;
    for (; attempt(subject, step); ++step) {
        ASSERT_EQ(IndexState(subject.made), before) << "step " << step;
        ASSERT_EQ(IndexState(subject.other), other_before) << "step " << step;
    }
    EXPECT_GE(step, 1);
    EXPECT_EQ(IndexState(subject.made), IndexState(never_failed.made));
    EXPECT_EQ(subject.other.index->ntotal, never_failed.other.index->ntotal);
}

TEST_P(GnndIndexFailures, MemoryAtAnyMoment) {
    if (!FailingMemory::possible()) GTEST_SKIP() << "the sanitizers have operator new to themselves";
    const gnnd::test::OneFaissThread one_thread;
    fail_at_every_step(GetParam(), [&](const Subject& subject, int step) {
        try {
            const FailingMemory failing(step);
            GetParam().call.run(subject);
        } catch (const faiss::FaissException& error) {
            EXPECT_NE(std::string(error.what()).find("out of memory"), std::string::npos) << error.what();
            return true;
        } catch (const std::bad_alloc&) {  // of the test's own
            return true;
        }
        return false;
    });
}

TEST(GnndIndexCopies, ThatFailLeaveTheOriginal) {
    if (!FailingMemory::possible()) GTEST_SKIP() << "the sanitizers have operator new to themselves";
    const gnnd::test::OneFaissThread one_thread;
    for (const GnndKind& kind : kGnndKinds) {
        const AnyGnndIndex made = kind.make(kDim, faiss::METRIC_L2);
        add(*made.index, 300, 1);
        const IndexState before(made);
        bool failed = true;
        int step = 0;
        for (; failed; ++step) {
            failed = false;
            try {
                const FailingMemory failing(step);
                kind.copy(made);
            } catch (const faiss::FaissException&) {
                failed = true;
            } catch (const std::bad_alloc&) {
                failed = true;
            }
            ASSERT_EQ(IndexState(made), before) << kind << ", step " << step;
        }
        EXPECT_GE(step, 5);
    }
}

TEST_P(GnndIndexFailures, InterruptAtAnyQuestion) {
    fail_at_every_step(GetParam(), [&](const Subject& subject, int step) {
        return interrupt_at(step, [&] { GetParam().call.run(subject); }) == Ending::failed;
    });
}

TEST_P(GnndIndexFailures, VectorsThatAreNoNumbers) {
    const AnyGnndIndex made = GetParam().index_of(GetParam().call.before);
    const IndexState before(made);
    for (const int count : {1, 3, 200})
        for (const int bad : {0, count / 2, count - 1})
            for (const float value :
                 {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
                std::vector<float> rows = random_rows(count, kDim, false, 5);
                rows[bad * kDim + 2] = value;
                expect_faiss_error("vector " + std::to_string(bad), [&] { made.index->add(count, rows.data()); });
                EXPECT_EQ(IndexState(made), before) << count << " rows, of which " << bad;
            }
}

/// The adds of gnnd_index_gpu_failures_test.cpp, on the CPU.
class GnndIndexAddsThatFail : public testing::TestWithParam<GnndKind> {
  protected:
    /// Of so many rows to an index of `old` and some more that it has grown by.
    static FailedAdds failed_adds(int old, int count) {
        const FailureCase of_kind{GetParam(), {}};
        const auto first = std::make_shared<AnyGnndIndex>(of_kind.index_of(old));
        const auto make = [first, old] {
            AnyGnndIndex made = GetParam().copy(*first);
            made.builder->params.threads = 1;
            if (old > 0) add(*made.index, 3, 6);
            return made;
        };
        return {make, random_rows(count, kDim, false, 7), random_rows(3, kDim, false, 8)};
    }

  private:
    const gnnd::test::OneFaissThread one_thread_;
};
INSTANTIATE_TEST_SUITE_P(All, GnndIndexAddsThatFail, testing::ValuesIn(kGnndKinds), testing::PrintToStringParamName());

TEST_P(GnndIndexAddsThatFail, LeaveNoTrace) {
    for (const auto& [old, count] : {std::pair(0, 90), std::pair(1100, 4), std::pair(1100, 300)}) {
        SCOPED_TRACE(testing::Message() << count << " to " << old);  // built, searched for, merged
        failed_adds(old, count).expect_no_trace(interrupt_at);
        failed_adds(old, count).expect_no_trace_of_bad_rows();
    }
    if (FailingMemory::possible()) failed_adds(1100, 4).expect_no_trace(gnnd::test::run_out_at<FailingMemory>);
}

// They came there past this class, which does not believe it.
TEST(GnndIndexMerges, OfVectorsThatAreNoNumbersLeaveBoth) {
    for (const GnndKind& kind : kGnndKinds) {
        const AnyGnndIndex made = kind.make(kDim, faiss::METRIC_L2), other = kind.make(kDim, faiss::METRIC_L2);
        add(*made.index, 200, 1);
        add(*other.index, 70, 2);
        const faiss_ext::VectorSource rows(&*other.index);
        static_cast<float*>(const_cast<void*>(rows.vectors().data))[7 * kDim] = std::numeric_limits<float>::quiet_NaN();
        const IndexState before(made);
        expect_faiss_error("vector 7 ", [&] { made.index->merge_from(*other.index); });
        EXPECT_EQ(IndexState(made), before) << kind;
        EXPECT_EQ(other.index->ntotal, 70);
        expect_faiss_error("vector 7 ", [&] { add(*other.index, 5, 3); });
        expect_faiss_error("vector 7 ", [&] { other.index->remove_ids(faiss::IDSelectorRange(0, 5)); });
        EXPECT_EQ(other.index->ntotal, 70);
    }
}

}  // namespace

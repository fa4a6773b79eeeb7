// SPDX-License-Identifier: MIT
#pragma once
/// \file index_failures.h
/// What a call that fails must leave of an index with GNND, for tests on the CPU and on GPUs.

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissException.h>
#include <faiss/impl/io.h>
#include <faiss/index_io.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tests/faiss_helpers.h"
#include "tests/gnnd_indexes.h"

namespace gnnd::test {

/// Everything that a search depends on, and what the next call starts from.
struct IndexState {
    std::vector<std::uint8_t> file;  ///< as FAISS writes the index: vectors, links, entry, settings
    std::vector<std::int32_t> graph;
    std::vector<float> distances;
    SearchResult found;
    bool operator==(const IndexState&) const = default;

    explicit IndexState(const AnyGnndIndex& made) {
        if (made.index->ntotal > 0) {  // an NSG that was not built cannot be written
            faiss::VectorIOWriter writer;
            faiss::write_index(&*made.index, &writer);
            file = std::move(writer.data);
        }
        const std::int64_t entries = made.graph().n() * made.graph().k();
        graph.assign(made.graph().ids(), made.graph().ids() + entries);
        distances.assign(made.graph().distances(), made.graph().distances() + entries);
        found = search_index(*made.index, random_rows(50, made.index->d, false, 9), 5);
    }
};
/// Megabytes are nothing that a message should show.
inline std::ostream& operator<<(std::ostream& out, const IndexState& state) {
    return out << "an index, " << state.file.size() << " bytes as a file";
}

/// Wants to end what runs after so many questions.
struct InterruptAt : faiss::InterruptCallback {
    explicit InterruptAt(int allowed) : allowed(allowed) {}
    bool want_interrupt() override { return --allowed < 0; }
    int allowed;
};

/// What became of a call of which some step was to fail.
enum class Ending {
    untouched,  ///< it has not so many steps
    survived,   ///< it went on without what it did not get
    failed
};

/// Makes a call at a question of which it is interrupted.
inline Ending interrupt_at(int question, const std::function<void()>& call) {
    faiss::InterruptCallback::instance = std::make_unique<InterruptAt>(question);
    Ending ending = Ending::untouched;
    try {
        call();
    } catch (const faiss::FaissException& error) {
        EXPECT_NE(std::string(error.what()).find("interrupted"), std::string::npos) << error.what();
        ending = Ending::failed;
    }
    faiss::InterruptCallback::clear_instance();
    return ending;
}

/// Makes a call at a step of which memory runs out.
/// \tparam Failing  of a number of steps that get memory: takes it from those that follow, as long as it lives, and
///                  tells by has_failed() whether there were any
template <class Failing>
Ending run_out_at(int step, const std::function<void()>& call) {
    bool has_failed = false;
    std::exception_ptr thrown;
    {
        const Failing failing(step);
        try {
            call();
        } catch (const faiss::FaissException&) {
            thrown = std::current_exception();
        } catch (const std::bad_alloc&) {  // of the test's own
            thrown = std::current_exception();
        }
        has_failed = failing.has_failed();
    }
    if (!thrown) return has_failed ? Ending::survived : Ending::untouched;
    EXPECT_TRUE(has_failed) << "another thing was thrown than that there is no memory";
    return Ending::failed;
}

/// Lets a change fail at its first, second, ... step until it has no more. An index of which it failed is what it was,
/// and what is added to it next comes to what it comes to where nothing ever failed.
class FailedChanges {
  public:
    /// \param make    the same index every time
    /// \param change  what is to fail
    /// \param later   rows that are added next
    FailedChanges(std::function<AnyGnndIndex()> make, std::function<void(const AnyGnndIndex&)> change,
                  std::vector<float> later)
        : make_(std::move(make)), change_(std::move(change)), later_(std::move(later)) {}

    /// \param fail  makes a call with some step failing
    void expect_no_trace(const std::function<Ending(int step, const std::function<void()>& call)>& fail) const {
        run([&](int step, const AnyGnndIndex& made) { return fail(step, [&] { change_(made); }); });
    }

  protected:
    static void add(const AnyGnndIndex& made, const std::vector<float>& rows) {
        made.index->add(faiss_ext::idx_t(rows.size()) / made.index->d, rows.data());
    }

    void run(const std::function<Ending(int step, const AnyGnndIndex& made)>& attempt) const {
        const AnyGnndIndex never_failed = make_(), again = make_();
        const IndexState before(never_failed);
        for (const AnyGnndIndex* made : {&never_failed, &again}) add(*made, later_);
        const IndexState after(never_failed);
        ASSERT_EQ(IndexState(again), after) << "this takes adds that give the same every time";
        int failures = 0, step = 0;
        for (; !testing::Test::HasFailure(); ++step) {
            const AnyGnndIndex made = make_();
            ASSERT_EQ(IndexState(made), before) << "this takes an index that is the same every time";
            const Ending ending = attempt(step, made);
            if (ending == Ending::untouched) break;
            if (ending == Ending::survived) {
                EXPECT_NO_THROW(faiss_ext::check_index(*made.index)) << "step " << step;
                EXPECT_EQ(reachable(*made.index), std::size_t(made.index->ntotal)) << "step " << step;
                continue;
            }
            ++failures;
            EXPECT_EQ(IndexState(made), before) << "step " << step;
            add(made, later_);
            EXPECT_EQ(IndexState(made), after) << "step " << step << ", what was added next";
        }
        EXPECT_GE(failures, 1) << "of " << step << " steps";
    }

    const std::function<AnyGnndIndex()> make_;

  private:
    const std::function<void(const AnyGnndIndex&)> change_;
    const std::vector<float> later_;
};

/// Adds that fail.
class FailedAdds : public FailedChanges {
  public:
    /// \param rows  that are to be added
    FailedAdds(std::function<AnyGnndIndex()> make, std::vector<float> rows, std::vector<float> later)
        : FailedChanges(
              std::move(make), [rows](const AnyGnndIndex& made) { add(made, rows); }, std::move(later)),
          rows_(std::move(rows)) {}

    /// Where a row is no number: each of some rows in turn.
    void expect_no_trace_of_bad_rows() const {
        const auto d = std::size_t(make_().index->d), count = rows_.size() / d;
        const std::size_t places[] = {0, count / 2, count - 1};
        run([&](int step, const AnyGnndIndex& made) {
            if (step == int(std::size(places))) return Ending::untouched;
            std::vector<float> bad = rows_;
            bad[places[step] * d + 1] = std::numeric_limits<float>::quiet_NaN();
            expect_faiss_error("vector " + std::to_string(places[step]), [&] { add(made, bad); });
            return Ending::failed;
        });
    }

  private:
    const std::vector<float> rows_;
};

}  // namespace gnnd::test

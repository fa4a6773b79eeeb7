// SPDX-License-Identifier: MIT
// Links of all scales: which sets need them, and that they are links whatever the vectors are. What searches find along
// them is tested with indexes, gnnd_index_scales_test.cpp.
#include "gnnd/detail/far_links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/hard_sets.h"
#include "tests/links.h"

namespace gnnd {
namespace {

using test::exact_graph;
using test::hard_sets;
using test::HardSet;
using test::kCpu;
using test::Vectors;
using test::vectors_of;

constexpr std::int64_t kRows = 1000;

const HardSet& set_of(const std::string& name) {
    static const std::vector<HardSet> sets = hard_sets();
    return *std::find_if(sets.begin(), sets.end(), [&](const HardSet& set) { return set.name == name; });
}

bool needs(const std::string& name, std::int64_t n, bool levels = false) {
    const Vectors vectors = vectors_of(set_of(name), n, DType::f32);
    const VectorView view = vectors;
    return detail::needs_far_links(vectors, exact_graph(vectors, Metric::L2, 64), levels ? &view : nullptr);
}

TEST(FarLinks, AreForSetsWhoseRowsLeadNowhereFar) {
    for (const char* name : {"line1", "plane2", "walk32", "copies32", "near64", "small32"})
        EXPECT_TRUE(needs(name, kRows)) << name;
    for (const char* name : {"gauss32", "gauss64", "gauss128"}) EXPECT_FALSE(needs(name, kRows)) << name;
    EXPECT_TRUE(needs("line1", 512));
    EXPECT_FALSE(needs("line1", 511)) << "which has all in its rows";
}

TEST(FarLinks, AreNotForLevelsWhoseSamplesAreLikeTheWhole) {
    constexpr std::int64_t kFewest = 4096;
    for (const char* name : {"plane2", "walk32"}) {
        EXPECT_TRUE(needs(name, kFewest)) << name;
        EXPECT_FALSE(needs(name, kFewest, true)) << name;
    }
    for (const char* name : {"line1", "copies32", "near64", "small32"}) EXPECT_TRUE(needs(name, kFewest, true)) << name;
    EXPECT_TRUE(needs("plane2", kFewest - 16, true)) << "of which samples are too small to tell";
}

/// Others, each once, -1 behind them.
void expect_links(const std::vector<std::int32_t>& links, std::int64_t n, int degree) {
    for (std::int64_t i = 0; i < n; ++i) {
        const auto begin = links.begin() + i * degree, end = std::find(begin, begin + degree, -1);
        ASSERT_EQ(std::count(end, begin + degree, -1), begin + degree - end) << "object " << i;
        std::vector<std::int32_t> row(begin, end);
        std::sort(row.begin(), row.end());
        ASSERT_TRUE(std::adjacent_find(row.begin(), row.end()) == row.end()) << "object " << i;
        ASSERT_FALSE(std::binary_search(row.begin(), row.end(), std::int32_t(i))) << "object " << i;
        ASSERT_TRUE(row.empty() || (row.front() >= 0 && row.back() < n)) << "object " << i;
    }
}

struct FarCase {
    std::string set;
    DType dtype;
    Metric metric;
    friend std::ostream& operator<<(std::ostream& out, const FarCase& c) {
        return out << c.set << '_' << name_of(c.dtype) << '_' << name_of(c.metric);
    }
};
class FarLinksOf : public testing::TestWithParam<FarCase> {};
INSTANTIATE_TEST_SUITE_P(All, FarLinksOf,
                         testing::Values(FarCase{"plane2", DType::f32, Metric::L2},
                                         FarCase{"copies32", DType::u8, Metric::L2},
                                         FarCase{"near64", DType::f16, Metric::Cosine},
                                         FarCase{"copies32", DType::f32, Metric::InnerProduct},
                                         FarCase{"walk32", DType::f32, Metric::L1}),
                         testing::PrintToStringParamName());

TEST_P(FarLinksOf, AreTheSameOnAnyNumberOfThreads) {
    const Vectors vectors = vectors_of(set_of(GetParam().set), kRows, GetParam().dtype);
    const KnnGraph graph = exact_graph(vectors, GetParam().metric, 64);
    for (const int degree : {1, 4, 32, 128}) {
        std::vector<std::int32_t> links(kRows * degree, -7), again(kRows * degree, -7);
        detail::choose_far_links(vectors, graph, {degree, kCpu, 1}, links.data());
        expect_links(links, kRows, degree);
        detail::choose_far_links(vectors, graph, {degree, kCpu, 2}, again.data());
        EXPECT_EQ(again, links) << "degree " << degree;
    }
}

TEST(FarLinks, OfEqualVectorsLeadToAFewCopies) {
    const Vectors vectors(600, 3, DType::f32);
    const KnnGraph graph = exact_graph(vectors, Metric::L2, 64);
    std::vector<std::int32_t> links(600 * 32, -7);
    detail::choose_far_links(vectors, graph, {32, kCpu, 2}, links.data());
    expect_links(links, 600, 32);
    for (std::size_t i = 0; i < 600; ++i) EXPECT_EQ(links[i * 32 + 2], -1);
}

TEST(FarLinks, OfTheEntryLeadAnywhere) {
    for (const std::int64_t n : {2, 9, 1000})
        for (const int degree : {1, 2, 8, 33}) {
            const auto entry = std::int32_t(n / 2);
            std::vector<std::int32_t> links(n * degree, -1), before;
            for (std::int64_t j = 0; j < std::min<std::int64_t>(degree, n - 1); ++j)
                links[entry * degree + j] = std::int32_t((entry + 1 + j) % n);
            before = links;
            detail::link_anywhere(true, n, degree, entry, links.data());
            expect_links(links, n, degree);
            const auto row = links.begin() + entry * degree, old = before.begin() + entry * degree;
            EXPECT_EQ(std::count(row, row + degree, -1), std::count(old, old + degree, -1)) << n << ", " << degree;
            const auto kept = std::count_if(row, row + degree, [&](std::int32_t id) {
                return id >= 0 && std::find(old, old + degree, id) != old + degree;
            });
            if (n == 1000) {
                EXPECT_GE(kept, degree - degree / 2) << degree;
                EXPECT_EQ(kept == degree, degree == 1) << degree;
            }
            std::copy_n(old, degree, row);
            EXPECT_EQ(links, before) << "others have changed";
        }
}

}  // namespace
}  // namespace gnnd

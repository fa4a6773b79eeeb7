// SPDX-License-Identifier: MIT
#include "gnnd/detail/orthonormal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace gnnd::detail {
namespace {

constexpr int kRows = 60, kColumns = 24;

/// Columns as they are, and made orthonormal.
struct Columns {
    std::vector<double> before, after;

    explicit Columns(const std::vector<double>& columns) : before(columns), after(std::size_t(kRows) * kColumns) {
        std::vector<double> gram(std::size_t(kColumns) * kColumns, 0.0);
        std::vector<float> turn(gram.size(), NAN);
        for (int i = 0; i < kColumns; ++i)
            for (int j = 0; j < kColumns; ++j) gram[i * kColumns + j] = product(before, before, i, j);
        orthonormalize(gram.data(), kColumns, turn.data());
        for (int r = 0; r < kRows; ++r)
            for (int j = 0; j < kColumns; ++j)
                for (int i = 0; i < kColumns; ++i) {
                    const double factor = double(turn[i * kColumns + j]);
                    if (factor != 0) after[r * kColumns + j] += before[r * kColumns + i] * factor;
                }
    }
    static double product(const std::vector<double>& a, const std::vector<double>& b, int i, int j) {
        double sum = 0;
        for (int r = 0; r < kRows; ++r) sum += a[r * kColumns + i] * b[r * kColumns + j];
        return sum;
    }
};

std::vector<double> random_columns() {
    std::mt19937 random(7);
    std::normal_distribution<double> normal;
    std::vector<double> columns(std::size_t(kRows) * kColumns);
    for (int r = 0; r < kRows; ++r)
        for (int j = 0; j < kColumns; ++j) columns[r * kColumns + j] = normal(random) * std::pow(10.0, j % 5 - 2);
    return columns;
}

TEST(Orthonormal, ColumnsAreAndSpanTheSame) {
    const Columns columns(random_columns());
    for (int i = 0; i < kColumns; ++i)
        for (int j = 0; j < kColumns; ++j)
            EXPECT_NEAR(Columns::product(columns.after, columns.after, i, j), i == j, 1e-5) << i << ' ' << j;
    for (int j = 0; j < kColumns; ++j) {  // nothing of a column is outside of them
        double inside = 0;
        for (int i = 0; i < kColumns; ++i) {
            const double part = Columns::product(columns.before, columns.after, j, i);
            inside += part * part;
        }
        const double whole = Columns::product(columns.before, columns.before, j, j);
        EXPECT_NEAR(inside, whole, 1e-5 * whole) << j;
    }
}

TEST(Orthonormal, DependentZeroAndInfiniteColumnsBecomeZero) {
    std::vector<double> given = random_columns();
    for (int r = 0; r < kRows; ++r) {
        given[r * kColumns + 4] = 2 * given[r * kColumns] - 3 * given[r * kColumns + 1];
        given[r * kColumns + 9] = 0;
    }
    given[kColumns + 15] = INFINITY;
    const Columns columns(given);
    for (int i = 0; i < kColumns; ++i)
        for (int j = 0; j < kColumns; ++j) {
            const bool gone = i == 4 || i == 9 || i == 15;
            EXPECT_NEAR(Columns::product(columns.after, columns.after, i, j), i == j && !gone, 1e-5) << i << ' ' << j;
        }
}

}  // namespace
}  // namespace gnnd::detail

// SPDX-License-Identifier: MIT
#include "gnnd/detail/orthonormal.h"

#include <cmath>
#include <cstddef>
#include <vector>

namespace gnnd::detail {

void orthonormalize(double* gram, int size, float* out) {
    // A rest of a column's square that is smaller is nearly the rounding of sums of floats: it says nothing, and makes
    // a column that is not orthogonal to the others.
    constexpr double kLeast = 1e-7;
    std::vector<double> squares(static_cast<std::size_t>(size)), row(static_cast<std::size_t>(size));
    for (int j = 0; j < size; ++j) squares[std::size_t(j)] = gram[std::size_t(j) * size + j];

    // Row j of R takes the place of row j of the Gram matrix, and what it explains of the rows below is taken off.
    for (int j = 0; j < size; ++j) {
        double* of_j = gram + std::size_t(j) * size;
        const bool kept = std::isfinite(of_j[j]) && of_j[j] > kLeast * squares[std::size_t(j)];
        const double diagonal = kept ? std::sqrt(of_j[j]) : 0;
        of_j[j] = diagonal;
        for (int c = j + 1; c < size; ++c) {
            of_j[c] = kept ? of_j[c] / diagonal : 0;
            if (!std::isfinite(of_j[c])) of_j[c] = 0;
        }
        for (int i = j + 1; i < size; ++i) {
            double* of_i = gram + std::size_t(i) * size;
            for (int c = i; c < size; ++c) of_i[c] -= of_j[i] * of_j[c];
        }
    }
    // Row i of the inverse, from the left to the right: `row` holds what the columns before add up to.
    for (int i = 0; i < size; ++i) {
        row.assign(std::size_t(size), 0.0);
        float* of_i = out + std::size_t(i) * size;
        for (int j = 0; j < size; ++j) {
            const double* of_j = gram + std::size_t(j) * size;
            const double value = of_j[j] == 0 || j < i ? 0 : ((j == i ? 1 : 0) - row[std::size_t(j)]) / of_j[j];
            of_i[j] = float(value);
            if (value == 0) continue;
            for (int c = j + 1; c < size; ++c) row[std::size_t(c)] += value * of_j[c];
        }
    }
}

}  // namespace gnnd::detail

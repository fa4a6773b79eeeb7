// SPDX-License-Identifier: MIT
#include "gnnd/io/detail/digits.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>

#include "gnnd/error.h"

namespace gnnd::io::detail {
namespace {

bool fits(const double* row, std::int64_t d) {
    return std::all_of(row, row + d, [](double value) { return std::fabs(value) <= FLT_MAX; });
}

}  // namespace

double median(std::vector<double>& values) {
    const auto middle = values.begin() + std::int64_t(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) return *middle;
    return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

std::string two_digits(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2g", value);
    return text;
}

void require_digits(const std::string& name, const double* rows, std::int64_t n, std::int64_t d) {
    std::vector<const double*> finite;
    double scale = 0;  // squares of very large and very small numbers are none
    for (std::int64_t i = 0; i < n; ++i) {
        if (!fits(rows + i * d, d)) continue;
        finite.push_back(rows + i * d);
        for (std::int64_t c = 0; c < d; ++c) scale = std::max(scale, std::fabs(rows[i * d + c]));
    }
    if (finite.empty() || scale == 0) return;
    std::vector<double> column(finite.size()), spread(finite.size()), lost(finite.size());
    for (std::int64_t c = 0; c < d; ++c) {
        for (std::size_t i = 0; i < finite.size(); ++i) column[i] = finite[i][c];
        const double middle = median(column);
        for (std::size_t i = 0; i < finite.size(); ++i) {
            const double value = finite[i][c];
            const double away = (value - middle) / scale, error = (double(float(value)) - value) / scale;
            spread[i] += away * away;
            lost[i] += error * error;
        }
    }
    const double typical = std::sqrt(median(spread)) * scale, error = std::sqrt(median(lost)) * scale;
    if (!(error > typical / 256 && typical > 0)) return;
    throw InvalidArgument(name + " is of float64, and differs by less than float32 has digits for: the vectors lie " +
                          two_digits(typical) + " from their median, and float32, in which vectors are compared, " +
                          "moves them by " + two_digits(error) + ". Subtract their mean, which changes no l2, l1 and " +
                          "linf, or scale them");
}

std::int64_t digits_step(std::int64_t n, std::int64_t d) {
    constexpr std::int64_t kVectors = 1000, kComponents = std::int64_t(1) << 22;
    return std::max({std::int64_t(1), n / kVectors, n * d / kComponents});
}

void require_digits(const std::string& path, const MappedFile& file, const FileShape& shape) {
    // The first rows where those of a column lie together, which a sample from everywhere would read one by one.
    const std::int64_t apart = digits_step(shape.n, shape.d);
    const std::int64_t count = (shape.n + apart - 1) / apart, step = shape.fortran_order ? 1 : apart;
    std::vector<double> rows(std::size_t(count * shape.d));
    if (step == 1) {
        read_stored(file, shape, 0, count, reinterpret_cast<std::byte*>(rows.data()));
    } else {
        for (std::int64_t i = 0; i < count; ++i)
            read_stored(file, shape, i * step, 1, reinterpret_cast<std::byte*>(rows.data() + i * shape.d));
    }
    require_digits(path, rows.data(), count, shape.d);
}

}  // namespace gnnd::io::detail

// SPDX-License-Identifier: MIT
#include "gnnd/cpu/codes.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "gnnd/cpu/pack.h"

namespace gnnd::cpu {
namespace {

constexpr int kLargest = 127;
/// Rows that the step is chosen by, and how often half of it is tried: few components that are far larger than the rest
/// are better cut off, for their rows alone, than a step that is coarse for all.
constexpr std::int64_t kSampled = 1024;
constexpr int kHalvings = 5;
/// More than what sums of floats are rounded by.
constexpr double kRounding = 1e-4;

int code_of(float value, float step) {
    const float steps = std::clamp(value / step, float(-kLargest), float(kLargest));
    return int(steps + (steps < 0 ? -0.5F : 0.5F));
}

}  // namespace

bool CodedRows::pay(Metric metric, DType dtype, std::int64_t d) {
    return may_pack(metric, dtype, d) && kernels(metric, DType::i8, d, supported_isas().back()).element == 1;
}

CodedRows::CodedRows(const Space& exact, const Team& team, Resources& resources)
    : metric_(exact.metric),
      origin_(exact.vectors.d, 0),
      rows_(resources, exact.vectors.n * exact.vectors.d),
      errors_(resources, exact.vectors.n),
      lengths_(resources, exact.vectors.n) {
    const std::int64_t n = exact.vectors.n, d = exact.vectors.d;
    if (!is_normalized(metric_)) find_step(exact);
    team.for_chunks(n, 256, [&](int, std::int64_t begin, std::int64_t end) {
        std::vector<float> row(d);
        for (std::int64_t i = begin; i < end; ++i) encode(exact, i, row.data());
    });
    space_.emplace(VectorView{rows_.data(), n, d, DType::i8, 0}, metric_, team, resources);
}

void CodedRows::find_step(const Space& exact) {
    const std::int64_t n = exact.vectors.n, d = exact.vectors.d, count = std::min(n, kSampled);
    std::vector<float> rows(count * d);
    for (std::int64_t i = 0; i < count; ++i) copy_as_f32(exact.vectors, i * n / count, 1, rows.data() + i * d);
    if (is_translation_invariant(metric_))
        for (std::int64_t c = 0; c < d; ++c) {
            double sum = 0;
            for (std::int64_t i = 0; i < count; ++i) sum += rows[i * d + c];
            origin_[c] = float(sum / double(count));
        }
    float largest = 0;
    for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t c = 0; c < d; ++c) {
            rows[i * d + c] -= origin_[c];
            largest = std::max(largest, std::abs(rows[i * d + c]));
        }
    if (!(largest > 0)) return;
    double least = HUGE_VAL;
    for (int halvings = 0; halvings <= kHalvings; ++halvings) {
        const float step = std::ldexp(largest / kLargest, -halvings);
        if (!(step > 0)) break;
        double error = 0;
        for (std::int64_t i = 0; i < count; ++i) {
            double squares = 0;
            for (std::int64_t c = 0; c < d; ++c) {
                const float value = rows[i * d + c];
                const double rest = value - step * float(code_of(value, step));
                squares += rest * rest;
            }
            error += std::sqrt(squares);
        }
        if (error >= least) break;
        least = error;
        step_ = step;
    }
}

void CodedRows::encode(const Space& exact, std::int64_t i, float* row) {
    const std::int64_t d = exact.vectors.d;
    copy_as_f32(exact.vectors, i, 1, row);
    float step = step_;
    if (is_normalized(metric_)) {
        float largest = 0;
        for (std::int64_t c = 0; c < d; ++c) largest = std::max(largest, std::abs(row[c]));
        step = largest / kLargest;
    }
    std::int8_t* code = rows_.data() + i * d;
    double squares = 0, of_code = 0, of_row = 0, both = 0;
    for (std::int64_t c = 0; c < d; ++c) {
        const float value = row[c] - origin_[c];
        const int here = code_of(value, step);
        code[c] = std::int8_t(here);
        const double rest = double(value) - double(step) * here;
        squares += rest * rest;
        of_code += double(here) * here;
        of_row += double(value) * value;
        both += double(here) * value;
    }
    if (is_normalized(metric_)) {  // of unit vectors: |x - y|^2 = 2 - 2 x y
        errors_[i] = float(std::sqrt(std::max(0.0, 2 - 2 * both / std::sqrt(of_code * of_row))));
        lengths_[i] = 1;
    } else {
        errors_[i] = float(std::sqrt(squares));
        lengths_[i] = float(double(step) * std::sqrt(of_code));
    }
    errors_[i] += float(kRounding) * (errors_[i] + lengths_[i]);  // for the origin was subtracted in floats
}

CodedRows::Extent CodedRows::extent(const std::int32_t* objects, int count) const {
    Extent all;
    for (int i = 0; i < count; ++i) {
        all.error = std::max(all.error, errors_[objects[i]]);
        all.length = std::max(all.length, lengths_[objects[i]]);
    }
    return all;
}

float CodedRows::reach(std::int32_t i, float key, const Extent& others) const {
    if (key == HUGE_VALF) return key;
    // Each term of a key is rounded by less than float's smallest number. Products of tiny floats are none: doubles.
    const double rounded = double(key) + double(origin_.size()) * double(std::numeric_limits<float>::denorm_min());
    const double error = errors_[i], length = lengths_[i], step = step_;
    if (is_translation_invariant(metric_)) {  // the triangle inequality of the roots
        const double root = (std::sqrt(std::max(rounded, 0.0)) + error + others.error) / step;
        return float(root * root * (1 + kRounding));
    }
    const double others_rows = double(others.length) + others.error;
    const double off = length * others.error + error * others_rows + kRounding * (length + error) * others_rows;
    const double largest = (rounded + off) / (is_normalized(metric_) ? 1 : step * step);
    return float(largest + kRounding * std::abs(largest));
}

}  // namespace gnnd::cpu

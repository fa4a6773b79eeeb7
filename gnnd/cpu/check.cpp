// SPDX-License-Identifier: MIT
// Values that no metric can work with are refused before anything is built on them.
#include <algorithm>
#include <atomic>
#include <cfloat>
#include <cmath>
#include <string>
#include <vector>

#include "gnnd/cpu/backend.h"
#include "gnnd/cpu/parallel.h"

namespace gnnd::cpu {
namespace {

/// The metric's demands on components.
struct Needs {
    std::string_view metric;
    bool normalized, nonnegative;
};

Needs needs_of(Metric metric) {
    return visit(metric, [](auto m) { return Needs{m.name, m.normalized, m.nonnegative}; });
}

/// Says in words why the metric cannot work with a row; empty where it can.
std::string fault_of(const float* row, std::int64_t d, const Needs& needs) {
    float sum = 0, least = 0;
    for (std::int64_t c = 0; c < d; ++c) {
        sum += row[c] * row[c];
        least = std::min(least, row[c]);
    }
    if (!(sum <= FLT_MAX / 4)) {  // negated, so that NaN gets here
        for (std::int64_t c = 0; c < d; ++c)
            if (!std::isfinite(row[c])) return std::isnan(row[c]) ? "holds NaN" : "holds an infinite component";
        return "is too large: its squared norm must stay below 8.5e37";
    }
    // FLT_MIN: below it the squares lose their digits, and the direction with them.
    if (needs.normalized && sum < FLT_MIN) return "is zero (or its norm is below 1e-19), which has no cosine";
    if (needs.nonnegative && least < 0)
        return "holds a negative component, for which " + std::string(needs.metric) + " is not defined";
    return {};
}

}  // namespace

std::string fault_of_row(const VectorView& vectors, Metric metric) {
    std::vector<float> row(vectors.d);
    copy_as_f32(vectors, 0, 1, row.data());
    return fault_of(row.data(), vectors.d, needs_of(metric));
}

void check_vectors(const VectorView& vectors, Metric metric, int threads, const Callbacks& callbacks,
                   std::int64_t first) {
    const Needs needs = needs_of(metric);
    const bool has_signs = vectors.dtype != DType::u8;
    if (is_byte(vectors.dtype) && !needs.normalized && !(needs.nonnegative && has_signs)) return;

    const Team team{Team::resolve(threads), &callbacks.interrupt};
    std::vector<std::vector<float>> rows(team.threads, std::vector<float>(vectors.d));
    const auto fault_of_row = [&](int thread, std::int64_t i) {
        float* row = rows[thread].data();
        copy_as_f32(vectors, i, 1, row);
        return fault_of(row, vectors.d, needs);
    };
    std::atomic<std::int64_t> bad{vectors.n};  // of several always the first is named
    team.for_chunks(vectors.n, 256, [&](int thread, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < std::min<std::int64_t>(end, bad); ++i)
            if (!fault_of_row(thread, i).empty())
                for (std::int64_t seen = bad; i < seen && !bad.compare_exchange_weak(seen, i);) continue;
    });
    if (bad < vectors.n) throw InvalidArgument("vector " + std::to_string(first + bad) + " " + fault_of_row(0, bad));
}

}  // namespace gnnd::cpu

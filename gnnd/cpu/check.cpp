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

/// What is wrong with a row, or null.
const char* fault_of(const float* row, std::int64_t d, bool normalized, bool needs_nonnegative) {
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
    if (normalized && sum < FLT_MIN) return "is zero (or its norm is below 1e-19), which has no cosine";
    if (needs_nonnegative && least < 0) return "holds a negative component, for which chi2 is not defined";
    return nullptr;
}

}  // namespace

std::string fault_of_row(const VectorView& vectors, Metric metric) {
    std::vector<float> row(vectors.d);
    copy_as_f32(vectors, 0, 1, row.data());
    const char* fault = fault_of(row.data(), vectors.d, visit(metric, [](auto m) { return m.normalized; }),
                                 metric == Metric::ChiSquare);
    return fault != nullptr ? fault : "";
}

void check_vectors(const VectorView& vectors, Metric metric, int threads, const Callbacks& callbacks) {
    const bool normalized = visit(metric, [](auto m) { return m.normalized; });
    const bool needs_nonnegative = metric == Metric::ChiSquare;
    const bool small_integers = vectors.dtype == DType::u8 || (vectors.dtype == DType::i8 && !needs_nonnegative);
    if (small_integers && !normalized) return;

    const Team team{Team::resolve(threads), &callbacks.interrupt};
    std::vector<std::vector<float>> rows(team.threads, std::vector<float>(vectors.d));
    const auto fault_of_row = [&](int thread, std::int64_t i) {
        float* row = rows[thread].data();
        copy_as_f32(vectors, i, 1, row);
        return fault_of(row, vectors.d, normalized, needs_nonnegative);
    };
    std::atomic<std::int64_t> first{vectors.n};  // of several bad rows always the first is named
    team.for_chunks(vectors.n, 256, [&](int thread, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < std::min<std::int64_t>(end, first); ++i)
            if (fault_of_row(thread, i) != nullptr)
                for (std::int64_t seen = first; i < seen && !first.compare_exchange_weak(seen, i);) continue;
    });
    if (first < vectors.n) throw InvalidArgument("vector " + std::to_string(first) + " " + fault_of_row(0, first));
}

}  // namespace gnnd::cpu

// SPDX-License-Identifier: MIT
#include "faiss_ext/detail/flat_search.h"

#include <faiss/utils/distances.h>

#include <algorithm>
#include <cmath>

#include "faiss_ext/detail/rows.h"

namespace faiss_ext::detail {

namespace {

double length(const float* row, std::int64_t d) {
    double sum = 0;
    for (std::int64_t c = 0; c < d; ++c) sum += double(row[c]) * row[c];
    return std::sqrt(sum);
}

bool is_integer(gnnd::DType dtype) {
    return dtype == gnnd::DType::u8 || dtype == gnnd::DType::i8;
}

}  // namespace

void Found::search(faiss::MetricType metric, const float* queries, std::int64_t count, const float* base,
                   std::int64_t n, std::int64_t d) {
    if (metric == faiss::METRIC_L2)
        faiss::knn_L2sqr(queries, base, d, count, n, m, distances.data(), ids.data());
    else if (metric == faiss::METRIC_INNER_PRODUCT)
        faiss::knn_inner_product(queries, base, d, count, n, m, distances.data(), ids.data());
    else
        knn_extra_metrics(queries, base, d, count, n, metric, m, distances.data(), ids.data());
}

bool Found::doubtful(std::int64_t row, const std::int32_t* kept, const float* values, std::int64_t count, double bound,
                     bool similarity) const {
    const idx_t* begin = ids.data() + row * m;
    const float* reported = distances.data() + row * m;
    double error = bound;
    for (std::int64_t j = 0; j < count; ++j) {
        const idx_t* position = std::find(begin, begin + m, idx_t(kept[j]));
        if (position == begin + m) return true;  // FAISS found too few
        error = std::max(error, std::fabs(double(reported[position - begin]) - values[j]));
    }
    const double last = values[count - 1], next = reported[m - 1];
    return similarity ? !(last - error >= next) : !(last + error <= next);
}

Rounding::Rounding(const VectorSource& source, faiss::MetricType searched, gnnd::DType queries)
    : searched_(searched), d_(source.vectors().d) {
    const bool normalized = is_normalized(source.metric());
    constexpr double kMostSquares = 255 * 255 * 2.0, kExact = 1 << 24;
    if (is_integer(source.vectors().dtype) && is_integer(queries) && !normalized && double(d_) * kMostSquares < kExact)
        return;
    unit_ = double(d_ + 4) * 0x1p-24;
    if (normalized || searched != faiss::METRIC_INNER_PRODUCT) return;
    for_float_rows(source, kBlock, [&](std::int64_t, std::int64_t count, const float* rows) {
        for (std::int64_t i = 0; i < count; ++i) longest_ = std::max(longest_, length(rows + i * d_, d_));
    });
}

double Rounding::bound(const float* query, double last) const {
    if (unit_ == 0) return 0;
    if (searched_ != faiss::METRIC_L2 && searched_ != faiss::METRIC_INNER_PRODUCT) return unit_ * last;
    if (searched_ == faiss::METRIC_INNER_PRODUCT) return unit_ * length(query, d_) * longest_;
    // No such object is longer than the query by more than their distance.
    const double sum = 2 * length(query, d_) + std::sqrt(last);
    return unit_ * sum * sum;
}

}  // namespace faiss_ext::detail

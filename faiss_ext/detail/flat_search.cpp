// SPDX-License-Identifier: MIT
#include "faiss_ext/detail/flat_search.h"

#include <faiss/utils/distances.h>

#include <algorithm>
#include <cmath>

#include "faiss_ext/detail/rows.h"
#include "gnnd/dtype.h"

namespace faiss_ext::detail {

namespace {

double length(const float* row, std::int64_t d) {
    double sum = 0;
    for (std::int64_t c = 0; c < d; ++c) sum += double(row[c]) * row[c];
    return std::sqrt(sum);
}

}  // namespace

FlatSearch::FlatSearch(const VectorSource& source, std::int64_t m, const Gpu& gpu, std::int64_t device_memory)
    : source_(source), metric_(search_metric(source.metric(), "FlatSearch")), found_{m, {}, {}} {
    if (gpu.resources)
        on_gpu_ = std::make_unique<GpuFlatSearch>(gpu, source, m, device_memory);
    else
        rows_ = std::make_unique<FloatMatrix>(source);
}

const Found& FlatSearch::search(const VectorSource& asked, const std::int32_t* objects, std::int64_t count) {
    const std::int64_t n = source_.vectors().n, d = source_.vectors().d, m = found_.m;
    found_.ids.resize(std::size_t(count * m));
    found_.distances.resize(std::size_t(count * m));
    idx_t* ids = found_.ids.data();
    float* distances = found_.distances.data();
    if (on_gpu_) {
        on_gpu_->search(asked, objects, count, distances, ids);
        return found_;
    }
    queries_.resize(std::size_t(count * d));
    float_objects(asked, objects, count, queries_.data());
    if (metric_ == faiss::METRIC_L2)
        faiss::knn_L2sqr(queries_.data(), rows_->data(), d, count, n, m, distances, ids);
    else if (metric_ == faiss::METRIC_INNER_PRODUCT)
        faiss::knn_inner_product(queries_.data(), rows_->data(), d, count, n, m, distances, ids);
    else
        knn_extra_metrics(queries_.data(), rows_->data(), d, count, n, metric_, m, distances, ids);
    return found_;
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
    if (gnnd::is_byte(source.vectors().dtype) && gnnd::is_byte(queries) && !normalized &&
        double(d_) * kMostSquares < kExact)
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

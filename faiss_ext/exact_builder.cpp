// SPDX-License-Identifier: MIT
#include <faiss/utils/distances.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/gpu.h"
#include "faiss_ext/detail/print.h"
#include "faiss_ext/detail/rows.h"
#include "faiss_ext/detail/timer.h"
#include "faiss_ext/graph_builder.h"

namespace faiss_ext {

namespace {

constexpr std::int64_t kSpare = 8;  // asked for beyond k and self, to see how far off the next ones are

/// What FAISS's flat search reports for a batch of queries: ids and distances, queries x m, best first.
struct Found {
    std::int64_t m;
    std::vector<idx_t> ids;
    std::vector<float> distances;

    void search(faiss::MetricType metric, const float* queries, std::int64_t count, const float* base, std::int64_t n,
                std::int64_t d) {
        if (metric == faiss::METRIC_L2)
            faiss::knn_L2sqr(queries, base, d, count, n, m, distances.data(), ids.data());
        else if (metric == faiss::METRIC_INNER_PRODUCT)
            faiss::knn_inner_product(queries, base, d, count, n, m, distances.data(), ids.data());
        else
            knn_extra_metrics(queries, base, d, count, n, metric, m, distances.data(), ids.data());
    }

    /// Whether rounding can have kept a nearer object out of a finished row: what FAISS did not report is no better
    /// than its last, less what both values may be off by.
    /// \param values  the true distances of the row, `count`
    /// \param bound   the most by which a reported value differs from the true one
    bool doubtful(std::int64_t row, const std::int32_t* kept, const float* values, std::int64_t count, double bound,
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
};

/// How far FAISS's values can be from the true ones. It expands |x-y|^2 to |x|^2 + |y|^2 - 2xy, whose rounding grows
/// with the vectors' lengths, however near they are to each other: sums of d products err by less than d units in the
/// last place of the sum of their absolute values. Integers that float32 holds are not rounded.
class Rounding {
  public:
    Rounding(const VectorSource& source, faiss::MetricType searched)
        : source_(source), searched_(searched), row_(source.vectors().d) {
        const gnnd::VectorView& x = source.vectors();
        const bool cosine = detail::is_normalized(source.metric());
        const bool integers = x.dtype == gnnd::DType::u8 || x.dtype == gnnd::DType::i8;
        constexpr double kMostSquares = 255 * 255 * 2.0, kExact = 1 << 24;
        if (integers && !cosine && double(x.d) * kMostSquares < kExact) return;
        unit_ = double(x.d + 4) * 0x1p-24;
        if (cosine || searched != faiss::METRIC_INNER_PRODUCT) return;
        detail::for_float_rows(source, detail::kBlock, [&](std::int64_t, std::int64_t count, const float* rows) {
            for (std::int64_t i = 0; i < count; ++i) longest_ = std::max(longest_, length(rows + i * x.d));
        });
    }

    /// For what may be nearer to the object than `last`.
    double bound(std::int32_t object, double last) {
        if (unit_ == 0) return 0;
        if (searched_ != faiss::METRIC_L2 && searched_ != faiss::METRIC_INNER_PRODUCT) return unit_ * last;
        detail::float_rows(source_, object, 1, row_.data());
        if (searched_ == faiss::METRIC_INNER_PRODUCT) return unit_ * length(row_.data()) * longest_;
        // No such object is longer than this one by more than their distance.
        const double sum = 2 * length(row_.data()) + std::sqrt(last);
        return unit_ * sum * sum;
    }

  private:
    double length(const float* row) const {
        double sum = 0;
        for (std::size_t c = 0; c < row_.size(); ++c) sum += double(row[c]) * row[c];
        return std::sqrt(sum);
    }

    const VectorSource& source_;
    const faiss::MetricType searched_;
    std::vector<float> row_;
    double unit_ = 0;     // what a value of 1 errs by
    double longest_ = 1;  // of all vectors, where it matters
};

}  // namespace

gnnd::KnnGraph ExactGraphBuilder::build(const VectorSource& source, int k) {
    return detail::with_faiss_errors([&] {
        std::vector<std::int32_t> objects(source.vectors().n);
        std::iota(objects.begin(), objects.end(), 0);
        return search(source, objects, k);
    });
}

gnnd::KnnGraph ExactGraphBuilder::search(const VectorSource& source, const std::vector<std::int32_t>& objects, int k) {
    return detail::with_faiss_errors([&] {
        const gnnd::VectorView& x = source.vectors();
        const gnnd::Metric metric = source.metric();
        detail::check_request(source, k);
        if (device_memory < 0)
            detail::fail("ExactGraphBuilder: device_memory is " + std::to_string(device_memory) +
                         ", allowed is 0 and more");
        if (batch < 0) detail::fail("ExactGraphBuilder: batch is " + std::to_string(batch) + ", allowed is 0 and more");
        for (const std::int32_t object : objects)
            if (object < 0 || object >= x.n)
                detail::fail("ExactGraphBuilder: object " + std::to_string(object) + " is not in 0 to " +
                             std::to_string(x.n - 1));
        const gnnd::Callbacks hooks = detail::interrupt_hooks();
        const std::int64_t total = std::int64_t(objects.size());
        const std::optional<faiss::MetricType> in_faiss = searched_metric(metric);
        on_gpu = gpu.resources != nullptr && in_faiss.has_value();
        timing.clear();
        detail::Timer timer;
        if (!in_faiss) {
            gnnd::KnnGraph graph = gnnd::exact_neighbors(source.on_host(), objects.data(), total, k, metric, 0, hooks);
            timing.push_back({"search", timer.lap()});
            return graph;
        }
        const faiss::MetricType searched = *in_faiss;
        const std::int64_t wanted = std::min<std::int64_t>(k, x.n - 1);
        std::int64_t step = on_gpu ? detail::gpu_block(x.d) : detail::kBlock;
        if (batch != 0) step = on_gpu ? std::min<std::int64_t>(batch, step) : std::int64_t(batch);
        step = std::min(step, total);
        Found found{std::min<std::int64_t>(k + 1 + kSpare, x.n), {}, {}};
        found.ids.resize(step * found.m);
        found.distances.resize(step * found.m);
        std::unique_ptr<detail::GpuFlatSearch> searcher;
        std::unique_ptr<detail::FloatMatrix> rows;
        std::vector<float> queries;
        if (on_gpu) {
            searcher = std::make_unique<detail::GpuFlatSearch>(gpu, source, found.m, device_memory);
        } else {
            rows = std::make_unique<detail::FloatMatrix>(source);
            queries.resize(step * x.d);
        }
        Rounding rounding(source, searched);
        std::vector<std::int64_t> doubts;  // rows to search again

        gnnd::KnnGraph graph(total, k, metric);
        for (std::int64_t begin = 0; begin < total; begin += step) {
            detail::check_interrupt();
            const std::int64_t count = std::min(step, total - begin);
            if (on_gpu) {
                searcher->search(objects.data() + begin, count, found.distances.data(), found.ids.data());
            } else {
                for (std::int64_t r = 0; r < count; ++r)
                    std::copy_n(rows->row(objects[begin + r]), x.d, queries.data() + r * x.d);
                found.search(searched, queries.data(), count, rows->data(), x.n, x.d);
            }
            detail::finish_rows(source, objects.data() + begin, count, found.ids.data(), found.m, k, 0,
                                graph.ids() + begin * k, graph.distances() + begin * k);
            for (std::int64_t r = 0; r < count && found.m < x.n; ++r) {
                const float* distances = graph.distances_of(begin + r);
                const double bound = rounding.bound(objects[begin + r], distances[wanted - 1]);
                if (found.doubtful(r, graph.ids_of(begin + r), distances, wanted, bound, gnnd::is_similarity(metric)))
                    doubts.push_back(begin + r);
            }
            if (verbose)
                detail::print_line("exact: " + std::to_string(begin + count) + " of " + std::to_string(total) +
                                   " rows");
        }
        timing.push_back({"search", timer.lap()});
        if (doubts.empty()) return graph;

        std::vector<std::int32_t> again(doubts.size());
        std::transform(doubts.begin(), doubts.end(), again.begin(), [&](std::int64_t row) { return objects[row]; });
        const gnnd::KnnGraph sure =
            gnnd::exact_neighbors(source.on_host(), again.data(), std::int64_t(again.size()), k, metric, 0, hooks);
        for (std::size_t i = 0; i < doubts.size(); ++i) {
            std::copy_n(sure.ids_of(std::int64_t(i)), k, graph.ids() + doubts[i] * k);
            std::copy_n(sure.distances_of(std::int64_t(i)), k, graph.distances() + doubts[i] * k);
        }
        timing.push_back({"check", timer.lap()});
        if (verbose) detail::print_line("exact: " + std::to_string(doubts.size()) + " rows searched again");
        return graph;
    });
}

}  // namespace faiss_ext

#include "faiss_ext/detail/rows.h"

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/utils/distances.h>

#include <algorithm>
#include <string>

#include "faiss_ext/detail/errors.h"
#include "gnnd/builder.h"
#include "gnnd/random.h"

namespace faiss_ext::detail {

namespace {

constexpr std::int64_t kBlock = 4096;  // rows converted at once

}  // namespace

void check_interrupt() {
    faiss::InterruptCallback::check();
}

gnnd::Callbacks interrupt_hooks() {
    return {{}, faiss::InterruptCallback::is_interrupted};
}

faiss::MetricType search_metric(gnnd::Metric metric, const char* what) {
    if (metric == gnnd::Metric::Cosine) return faiss::METRIC_INNER_PRODUCT;
    if (metric == gnnd::Metric::ChiSquare) fail(std::string(what) + ": FAISS has no metric chi2");
    return to_faiss_metric(metric);
}

void float_rows(const VectorSource& source, std::int64_t begin, std::int64_t count, float* out) {
    gnnd::copy_as_f32(source.vectors(), begin, count, out);
    if (source.metric() == gnnd::Metric::Cosine) faiss::fvec_renorm_L2(source.vectors().d, count, out);
}

FloatMatrix::FloatMatrix(const VectorSource& source) : d_(source.vectors().d) {
    const gnnd::VectorView& x = source.vectors();
    const std::int64_t contiguous = x.d * std::int64_t(sizeof(float));
    if (x.dtype == gnnd::DType::f32 && x.row_bytes() == contiguous && source.metric() != gnnd::Metric::Cosine) {
        data_ = static_cast<const float*>(x.data);
        return;
    }
    copy_.resize(std::size_t(x.n) * x.d);
    float_rows(source, 0, x.n, copy_.data());
    data_ = copy_.data();
}

void for_float_rows(const VectorSource& source,
                    const std::function<void(std::int64_t, std::int64_t, const float*)>& use) {
    const gnnd::VectorView& x = source.vectors();
    std::vector<float> rows(std::min(kBlock, x.n) * x.d);
    for (std::int64_t begin = 0; begin < x.n; begin += kBlock) {
        check_interrupt();
        const std::int64_t count = std::min(kBlock, x.n - begin);
        float_rows(source, begin, count, rows.data());
        use(begin, count, rows.data());
    }
}

void check_request(const VectorSource& source, int k) {
    // The rows of no objects: nothing is searched, but the arguments and all vectors are checked.
    gnnd::exact_neighbors(source.vectors(), nullptr, 0, k, source.metric(), 0, interrupt_hooks());
}

void finish_rows(const VectorSource& source, const std::int32_t* objects, std::int64_t count, const idx_t* candidates,
                 std::int64_t m, int k, std::uint64_t seed, std::int32_t* ids, float* distances) {
    const gnnd::VectorView& x = source.vectors();
    const std::int64_t wanted = std::min<std::int64_t>(k, x.n - 1);
    const std::int64_t width = std::max(m, wanted);
    std::vector<std::int32_t> owners(count * width), found(count * width, -1);
    for (std::int64_t r = 0; r < count; ++r) {
        const std::int32_t self = objects[r];
        std::fill_n(owners.begin() + r * width, width, self);
        const auto begin = found.begin() + r * width;
        auto end = std::copy_if(candidates + r * m, candidates + (r + 1) * m, begin,
                                [&](idx_t id) { return id >= 0 && id < x.n && id != self; });
        std::sort(begin, end);
        const auto known = std::unique(begin, end);
        std::fill(known, end, -1);
        end = known;
        // Consecutive ids from a random one: all distinct, and never more steps than the row has entries.
        std::int64_t id = gnnd::Random(seed, self).below(std::uint32_t(x.n));
        for (; end - begin < wanted; id = (id + 1) % x.n)
            if (id != self && !std::binary_search(begin, known, std::int32_t(id))) *end++ = std::int32_t(id);
    }
    std::vector<float> values(count * width);
    gnnd::pair_distances(x, source.metric(), owners.data(), found.data(), count * width, values.data());

    const bool similarity = gnnd::is_similarity(source.metric());
    std::vector<std::pair<float, std::int32_t>> order(width);  // smaller keys are nearer
    for (std::int64_t r = 0; r < count; ++r) {
        order.clear();
        for (std::int64_t j = r * width; j < (r + 1) * width && found[j] >= 0; ++j)
            order.emplace_back(similarity ? -values[j] : values[j], found[j]);
        std::partial_sort(order.begin(), order.begin() + wanted, order.end());
        for (std::int64_t j = 0; j < k; ++j) {
            const bool there = j < wanted;
            ids[r * k + j] = there ? order[j].second : -1;
            distances[r * k + j] = !there       ? gnnd::worst_value(source.metric())
                                   : similarity ? 0 - order[j].first
                                                : order[j].first;
        }
    }
}

}  // namespace faiss_ext::detail

// SPDX-License-Identifier: MIT
#include "gnnd/detail/tune_sample.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "gnnd/cpu/backend.h"
#include "gnnd/detail/recall.h"
#include "gnnd/error.h"

namespace gnnd::detail {

TuneSample::TuneSample(const VectorView& vectors, std::int64_t rows, Metric metric, std::uint64_t seed)
    : view_(vectors), metric_(metric), seed_(seed) {
    const bool all = rows >= vectors.n;
    const std::vector<std::int32_t> ids = sample_objects(vectors.n, rows, seed);
    const std::size_t bytes = std::size_t(vectors.d) * size_of(vectors.dtype);
    if (!all) rows_.resize(ids.size() * bytes);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const VectorView row{vectors.row(ids[i]), 1, vectors.d, vectors.dtype, 0};
        if (const std::string fault = cpu::fault_of_row(row, metric); !fault.empty())
            throw InvalidArgument("vector " + std::to_string(ids[i]) + " " + fault);
        if (!all) std::memcpy(rows_.data() + i * bytes, row.data, bytes);
    }
    if (!all) view_ = {rows_.data(), std::int64_t(ids.size()), vectors.d, vectors.dtype, 0};
}

void TuneSample::find_truth(std::int64_t objects, const BuildParams& given, const Callbacks& callbacks,
                            Resources* resources) {
    at_ = int(std::min<std::int64_t>(recall_at_of(given), view_.n - 1));
    objects_ = sample_objects(view_.n, objects, seed_ + 1);
    const auto count = std::int64_t(objects_.size());
    BuildParams params = given;
    params.k = at_;
    const KnnGraph truth = exact_neighbors(view_, objects_.data(), count, params, callbacks, resources);
    std::vector<std::int32_t> last(objects_.size());
    for (std::int64_t i = 0; i < count; ++i) last[std::size_t(i)] = truth.ids()[i * at_ + at_ - 1];
    limits_.resize(objects_.size());
    pair_distances(view_, metric_, objects_.data(), last.data(), count, limits_.data());
}

RecallEstimate TuneSample::recall_of(const KnnGraph& graph) const {
    const std::size_t at = std::size_t(at_);
    std::vector<std::int32_t> from(objects_.size() * at, 0), to(from.size());
    for (std::size_t i = 0; i < objects_.size(); ++i) {
        std::fill_n(from.data() + i * at, at, objects_[i]);
        std::copy_n(graph.ids() + std::int64_t(objects_[i]) * graph.k(), at, to.data() + i * at);
    }
    // A device's values may have been rounded otherwise than the limits.
    std::vector<float> values(from.size());
    const double equal = rounding_factor(metric_, view_.d);
    pair_distances(view_, metric_, from.data(), to.data(), std::int64_t(from.size()), values.data());
    RecallCount count{view_.n, std::int64_t(objects_.size()), at_};
    for (std::size_t i = 0; i < objects_.size(); ++i) {
        int found = 0;
        for (std::size_t j = i * at; j < (i + 1) * at; ++j)
            if (to[j] >= 0)
                found += is_similarity(metric_) ? values[j] >= equal * limits_[i] : values[j] <= equal * limits_[i];
        count.add(found);
    }
    return estimate_recall(count);
}

}  // namespace gnnd::detail

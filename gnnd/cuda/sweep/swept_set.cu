// SPDX-License-Identifier: MIT
#include "gnnd/cuda/algorithm.h"
#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/memory/fetch.h"
#include "gnnd/cuda/memory/layout.h"
#include "gnnd/cuda/space/bad_row.h"
#include "gnnd/cuda/sweep/swept_set.h"

namespace gnnd::cuda {
namespace {

struct SetLayout {
    VectorForm form;
    Part vectors, rows, norms, mean, info;
    std::size_t total;

    SetLayout(const detail::Input& input, bool in_place, Metric metric)
        : form(form_of(input.vectors[0], in_place, metric)) {
        const std::int64_t n = input.n(), d = input.d();
        Layout layout;
        if (!in_place) vectors = layout.take(n * d * std::int64_t(size_of(input.dtype())));
        if (!form.vectors_in_place) rows = layout.take(n * form.row_bytes);
        norms = layout.take(n * 4);
        mean = layout.take(2 * d * 4);
        info = layout.take(sizeof(SpaceInfo));
        total = layout.end_;
    }
};

}  // namespace

std::size_t SweptSet::bytes(const detail::Input& input, bool in_place, Metric metric) {
    return SetLayout(input, in_place, metric).total;
}

SweepSpace SweptSet::shape(const detail::Input& input, bool in_place, Metric metric) {
    const VectorForm form = form_of(input.vectors[0], in_place, metric);
    return {.raw = {nullptr, input.n(), input.d(), 0, input.dtype()},
            .metric = metric,
            .packed = form.packed,
            .rows = {nullptr, input.n(), form.row_bytes},
            .norms = nullptr,
            .info = nullptr,
            .columns = input.n()};
}

SweptSet::SweptSet(const detail::Input& input, Metric metric, Resources& resources, cudaStream_t stream)
    : input_(input), stream_(stream), drain_(stream) {
    const bool in_place = on_device(input.vectors[0].data) && input.adjoining();
    SetLayout layout(input, in_place, metric);
    memory_ = DeviceMemory(resources, layout.total, stream);
    const auto at = [&](const Part& part) { return memory_.data() + part.offset; };
    const RawVectors raw = upload(input, in_place, at(layout.vectors), resources, stream);
    auto* info = reinterpret_cast<SpaceInfo*>(at(layout.info));
    auto* norms = reinterpret_cast<u32*>(at(layout.norms));
    VectorForm& form = layout.form;
    find_integers(raw, metric, form, &info->largest, stream);
    auto* packed = form.vectors_in_place ? nullptr : reinterpret_cast<std::uint8_t*>(at(layout.rows));
    prepare_space(raw, metric, form, packed, norms, reinterpret_cast<float*>(at(layout.mean)), info, stream);
    const auto* rows = packed != nullptr ? packed : reinterpret_cast<const std::uint8_t*>(raw.data);
    space_ = {.raw = raw,
              .metric = metric,
              .packed = form.packed,
              .rows = {rows, raw.n, form.row_bytes},
              .norms = norms,
              .info = info,
              .columns = raw.n};
}

void SweptSet::check(std::int64_t rows) const {
    const SpaceInfo info = fetch(space_.info, stream_);
    if (info.first_bad < static_cast<unsigned long long>(rows)) check_rows(info, input_, space_.metric);
}

}  // namespace gnnd::cuda

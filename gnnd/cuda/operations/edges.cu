// SPDX-License-Identifier: MIT
#include <vector>

#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/operations/edges.cuh"
#include "gnnd/detail/checks.h"

namespace gnnd::cuda {
namespace {

/// A warp a row: the order of entries, and ids that no row may hold.
/// \param first_bad  1: the first row that is bad, which must be more before
__global__ void __launch_bounds__(kRowThreads) check_rows_kernel(Edges edges, u64* first_bad) {
    const std::int64_t i = warp_number();
    if (i >= edges.n) return;
    const std::int32_t* ids = edges.ids_of(i);
    const float* values = edges.values_of(i);
    const float sign = edges.larger_is_nearer ? -1.f : 1.f;
    bool bad = false;
    for (std::int64_t j = lane_id(); j < edges.columns; j += kWarp) {
        bad |= ids[j] < -1 || ids[j] >= edges.n || ids[j] == i || isnan(values[j]);
        if (j > 0) bad |= (ids[j - 1] < 0 && ids[j] >= 0) || !(sign * values[j - 1] <= sign * values[j]);
    }
    if (__any_sync(kAllLanes, bad) && lane_id() == 0) atomicMin(first_bad, u64(i));
}

/// A thread an entry. Bad values stay as they are. `out` may be `values`.
/// \param values, out  count
/// \param first_bad    1: the first entry without a distance
template <class M>
__global__ void __launch_bounds__(kRowThreads)
    convert_kernel(const float* values, std::int64_t count, float* out, u64* first_bad) {
    const std::int64_t e = thread_number();
    if (e >= count) return;
    const float value = values[e];
    const bool bad = detail::has_no_distance<M>(value);
    if (bad) atomicMin(first_bad, u64(e));
    out[e] = bad ? value : M::true_distance(value);
}

/// A thread a row.
/// \param full  1: rows whose entry in column `last` counts
__global__ void __launch_bounds__(kRowThreads) count_full_kernel(Edges edges, std::int64_t last, u64* full) {
    const std::int64_t i = thread_number();
    const bool counts = i < edges.n && edges.counts(edges.ids_of(i)[last], edges.values_of(i)[last]);
    const u32 those = __ballot_sync(kAllLanes, counts);
    if (lane_id() == 0 && those != 0) atomicAdd(full, u64(__popc(those)));
}

}  // namespace

DeviceEdges::DeviceEdges(const char* who, const KnnGraphView& graph, int neighbors, Work& work)
    : edges(detail::edges_of_shape(who, graph, neighbors)) {
    int index = 0;
    GNND_CUDA(cudaGetDevice(&index));
    detail::check_reach({Device::Kind::cuda, index}, {graph.ids, graph.distances});
    const auto copy = [&]<class T>(DeviceArray<T>& array, const T*& from) {
        if (on_device(from)) return;
        array = DeviceArray<T>(work, places_of(edges));
        const std::size_t row = std::size_t(edges.k) * sizeof(T);
        copy_in(array, from, edges.n, row, row, work.resources, work.stream);
        from = array;
    };
    const Drain drain(work.stream);
    copy(ids_, edges.ids);
    copy(values_, edges.values);
    const First bad(work);
    launch_warps("check_rows_kernel", check_rows_kernel, edges.n, work.stream, edges, bad.get());
    const std::int64_t i = bad.read(work);
    if (i < 0) return;
    std::vector<std::int32_t> ids(std::size_t(edges.columns));
    std::vector<float> values(ids.size());
    work.read(ids.data(), edges.ids_of(i), edges.columns);
    work.read(values.data(), edges.values_of(i), edges.columns);
    detail::refuse_row(who, edges, i, ids.data(), values.data());
}

DeviceEdges::DeviceEdges(const char* who, const KnnGraphView& graph, const EdgeParams& params, Work& work)
    : DeviceEdges((detail::check_cut(who, params), who), graph, params.neighbors, work) {
    if (params.values == GraphValues::distance) convert(who, graph.metric, work);
    if (params.radius) (edges.larger_is_nearer ? edges.low : edges.high) = *params.radius;
}

void DeviceEdges::convert(const char* who, Metric metric, Work& work) {
    edges.larger_is_nearer = false;
    const float* given = edges.values;
    if (values_.get() == nullptr) values_ = DeviceArray<float>(work, places_of(edges));
    edges.values = values_;
    const First bad(work);
    visit(metric, [&](auto m) {
        launch_threads("convert_kernel", convert_kernel<decltype(m)>, places_of(edges), work.stream, given,
                       places_of(edges), values_.get(), bad.get());
    });
    if (const std::int64_t e = bad.read(work); e >= 0)
        detail::refuse_value(who, metric, work.read(values_.get() + e), e, edges.k);
}

std::int64_t count_full(const Edges& edges, Work& work) {
    if (edges.n < 2) return 0;
    DeviceArray<u64> full(work, 1);
    full.fill(0, work);
    launch_threads("count_full_kernel", count_full_kernel, edges.n, work.stream, edges,
                   std::min(edges.columns, edges.n - 1) - 1, full.get());
    return std::int64_t(work.read(full.get()));
}

}  // namespace gnnd::cuda

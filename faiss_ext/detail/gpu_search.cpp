// SPDX-License-Identifier: MIT
// Exact search on a GPU, FAISS's brute force.
#include <cuda_runtime_api.h>
#include <faiss/gpu/GpuDistance.h>
#include <faiss/gpu/GpuResources.h>
#include <faiss/gpu/utils/DeviceUtils.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/gpu.h"
#include "faiss_ext/detail/rows.h"
#include "faiss_ext/faiss_resources.h"

namespace faiss_ext::detail {
namespace {

constexpr double kShare = 0.7;  // of the free memory that vectors may take; FAISS needs the rest

void check(cudaError_t error, const char* call) {
    if (error == cudaSuccess) return;
    cudaGetLastError();
    fail(std::string("GPU search: ") + call + ": " + cudaGetErrorString(error));
}

/// True where FAISS can read the rows where they are.
bool is_searchable(const VectorSource& source, int device) {
    const gnnd::VectorView& x = source.vectors();
    return source.device() == device && x.dtype == gnnd::DType::f32 &&
           x.row_bytes() == x.d * std::int64_t(sizeof(float)) && !is_normalized(source.metric());
}

}  // namespace

struct GpuFlatSearch::State {
    State(const Gpu& gpu, const VectorSource& source, std::int64_t neighbours, std::int64_t device_memory)
        : gpu(gpu),
          source(source),
          n(source.vectors().n),
          d(source.vectors().d),
          m(neighbours),
          metric(search_metric(source.metric(), "GpuFlatSearch")),
          resources(gpu) {
        in_place = is_searchable(source, gpu.device);
        // FAISS 1.7.3 counts components in int.
        part_rows = std::min(n, std::numeric_limits<int>::max() / d);
        if (in_place) return;
        std::size_t free = 0, total = 0;
        check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
        const auto room = (device_memory != 0 ? device_memory : std::int64_t(kShare * double(free))) / (d * 4);
        part_rows = std::max<std::int64_t>(1, std::min(part_rows, room));
        // Not from the temporary memory, which the searches themselves use.
        memory = gpu.resources->getResources()->allocMemoryHandle(
            faiss::gpu::AllocRequest(faiss::gpu::AllocType::FlatData, gpu.device, faiss::gpu::MemorySpace::Device,
                                     resources.stream(), std::size_t(part_rows * d) * sizeof(float)));
        copy = static_cast<float*>(memory.get());
    }

    /// Rows [begin, begin + count) on the device.
    const float* part(std::int64_t begin, std::int64_t count) {
        if (in_place) return static_cast<const float*>(source.vectors().data) + begin * d;
        if (loaded != begin) {
            loaded = -1;
            const std::int64_t block = gpu_block(d);
            std::vector<float> rows(std::size_t(std::min(block, count)) * d);
            for (std::int64_t at = 0; at < count; at += block) {
                check_interrupt();
                const std::int64_t now = std::min(block, count - at);
                float_rows(source, begin + at, now, rows.data());
                check(cudaMemcpyAsync(copy + at * d, rows.data(), std::size_t(now * d) * sizeof(float),
                                      cudaMemcpyHostToDevice, resources.stream()),
                      "cudaMemcpyAsync");
            }
            loaded = begin;
        }
        return copy;
    }

    void search_part(const float* queries, std::int64_t count, std::int64_t begin, std::int64_t rows, std::int64_t k,
                     float* distances, idx_t* ids) {
        faiss::gpu::GpuDistanceParams params;
        params.metric = metric;
        params.k = int(k);
        params.dims = int(d);
        params.vectors = part(begin, rows);
        params.numVectors = int(rows);
        params.queries = queries;
        params.numQueries = int(count);
        params.outDistances = distances;
        params.outIndices = ids;
        faiss::gpu::bfKnn(gpu.resources, params);
        gpu.resources->getResources()->syncDefaultStream(gpu.device);
        for (std::int64_t i = 0; begin > 0 && i < count * k; ++i)
            if (ids[i] >= 0) ids[i] += begin;
    }

    /// Joins the results for another part, k columns, with those so far.
    void merge(std::int64_t count, std::int64_t k, float* distances, idx_t* ids) {
        const bool similarity = gnnd::is_similarity(source.metric());
        const auto better = [&](const std::pair<float, idx_t>& a, const std::pair<float, idx_t>& b) {
            return similarity ? a.first > b.first : a.first < b.first;
        };
        std::vector<std::pair<float, idx_t>> all(m + k);
        for (std::int64_t q = 0; q < count; ++q) {
            for (std::int64_t j = 0; j < m; ++j) all[j] = {distances[q * m + j], ids[q * m + j]};
            for (std::int64_t j = 0; j < k; ++j) all[m + j] = {part_distances[q * k + j], part_ids[q * k + j]};
            std::inplace_merge(all.begin(), all.begin() + m, all.end(), better);
            for (std::int64_t j = 0; j < m; ++j) {
                distances[q * m + j] = all[j].first;
                ids[q * m + j] = all[j].second;
            }
        }
    }

    const Gpu gpu;
    const VectorSource& source;
    const std::int64_t n, d, m;
    const faiss::MetricType metric;
    FaissResources resources;
    bool in_place = false;
    std::int64_t part_rows = 0, loaded = -1;
    faiss::gpu::GpuMemoryReservation memory;
    float* copy = nullptr;  // part_rows x d, the rows from `loaded` on
    std::vector<float> queries, part_distances;
    std::vector<idx_t> part_ids;
};

GpuFlatSearch::GpuFlatSearch(const Gpu& gpu, const VectorSource& source, std::int64_t neighbours,
                             std::int64_t device_memory) {
    check_gpu(gpu, "GpuFlatSearch");
    const faiss::gpu::DeviceScope scope(gpu.device);
    state_ = std::make_unique<State>(gpu, source, neighbours, device_memory);
}

GpuFlatSearch::~GpuFlatSearch() = default;

void GpuFlatSearch::search(const VectorSource& asked, const std::int32_t* objects, std::int64_t count, float* distances,
                           idx_t* ids) {
    State& s = *state_;
    const faiss::gpu::DeviceScope scope(s.gpu.device);
    const float* queries = nullptr;
    if (is_searchable(asked, s.gpu.device) && is_consecutive(objects, count)) {
        queries = static_cast<const float*>(asked.vectors().data) + objects[0] * s.d;
    } else {
        s.queries.resize(std::size_t(count * s.d));
        float_objects(asked, objects, count, s.queries.data());
        queries = s.queries.data();
    }
    for (std::int64_t begin = 0; begin < s.n; begin += s.part_rows) {
        check_interrupt();
        const std::int64_t rows = std::min(s.part_rows, s.n - begin);
        if (rows == s.n) {
            s.search_part(queries, count, 0, rows, s.m, distances, ids);
            return;
        }
        const std::int64_t k = std::min(s.m, rows);
        s.part_distances.resize(std::size_t(count * k));
        s.part_ids.resize(std::size_t(count * k));
        s.search_part(queries, count, begin, rows, k, s.part_distances.data(), s.part_ids.data());
        if (begin == 0) {
            std::fill_n(distances, count * s.m, gnnd::worst_value(s.source.metric()));
            std::fill_n(ids, count * s.m, idx_t(-1));
        }
        s.merge(count, k, distances, ids);
    }
}

}  // namespace faiss_ext::detail

// SPDX-License-Identifier: MIT
#include <faiss/IndexFlat.h>
#include <faiss/IndexIVFPQ.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/gpu.h"
#include "faiss_ext/detail/rows.h"
#include "faiss_ext/detail/timer.h"
#include "faiss_ext/evaluate.h"
#include "faiss_ext/graph_builder.h"

namespace faiss_ext {

namespace {

constexpr std::int64_t kLeastPointsPerCentroid = 39;  // FAISS's own
constexpr std::int64_t kLeastPoints = 1 << 16;        // for the codes' own centroids, 256 of them

/// The training rows: a sample as large as FAISS uses of the whole set, so that it need not be copied.
std::vector<float> training_rows(const VectorSource& source, std::int64_t count, std::uint64_t seed) {
    const std::vector<std::int32_t> sample = sample_objects(source.vectors().n, count, seed);
    std::vector<float> rows(sample.size() * source.vectors().d);
    for (std::size_t i = 0; i < sample.size(); ++i)
        detail::float_rows(source, sample[i], 1, rows.data() + i * source.vectors().d);
    return rows;
}

detail::Ivfpq make_cpu_ivfpq(const detail::IvfpqShape& shape, int bits) {
    auto coarse = std::make_unique<faiss::IndexFlat>(shape.d, shape.metric);
    auto index =
        std::make_unique<faiss::IndexIVFPQ>(coarse.get(), shape.d, shape.nlist, shape.code_bytes, bits, shape.metric);
    detail::configure(*index, shape);
    return detail::with_nprobe(std::move(coarse), std::move(index));
}

}  // namespace

void detail::configure(faiss::ClusteringParameters& clustering, std::uint64_t seed) {
    clustering.min_points_per_centroid = 1;  // else FAISS warns on standard error about small sets
    clustering.seed = int(seed & std::numeric_limits<int>::max());
}

/// The index that all of some vectors were added to, and what that took.
struct IvfpqGraphBuilder::Filled {
    gnnd::VectorView vectors;
    detail::IvfpqShape shape;
    Gpu gpu;
    detail::Ivfpq ivfpq;
    std::vector<StepTime> timing;

    bool is_of(const gnnd::VectorView& x, const detail::IvfpqShape& other, const Gpu& there) const {
        return vectors.data == x.data && vectors.dtype == x.dtype && vectors.row_bytes() == x.row_bytes() &&
               shape == other && gpu.resources == there.resources && gpu.device == there.device;
    }
};

std::shared_ptr<const IvfpqGraphBuilder::Filled> IvfpqGraphBuilder::fill(const VectorSource& source,
                                                                         const detail::IvfpqShape& shape,
                                                                         int bits) const {
    const gnnd::VectorView& x = source.vectors();
    auto filled = std::make_shared<Filled>();
    detail::Timer timer;
    filled->vectors = x;
    filled->shape = shape;
    filled->gpu = gpu;
    filled->ivfpq = on_gpu ? detail::make_gpu_ivfpq(gpu, shape) : make_cpu_ivfpq(shape, bits);
    faiss::Index& index = *filled->ivfpq.index;
    index.verbose = verbose;
    {
        const std::int64_t count = std::max<std::int64_t>(shape.points_per_centroid * shape.nlist, kLeastPoints);
        const std::vector<float> rows = training_rows(source, std::min(count, x.n), shape.seed);
        index.train(std::int64_t(rows.size()) / x.d, rows.data());
    }
    filled->timing.push_back({"train", timer.lap()});
    detail::for_float_rows(source, on_gpu ? detail::gpu_add_block(x.d) : detail::kBlock,
                           [&](std::int64_t, std::int64_t count, const float* rows) { index.add(count, rows); });
    filled->timing.push_back({"add", timer.lap()});
    return filled;
}

gnnd::KnnGraph IvfpqGraphBuilder::build(const VectorSource& source, int k) {
    return detail::with_faiss_errors([&] {
        const gnnd::VectorView& x = source.vectors();
        detail::check_request(source, k);
        if (!gnnd::is_unnormalized_product(source.metric()))
            detail::fail("IvfpqGraphBuilder: metric " + std::string(gnnd::name_of(source.metric())) +
                         " is not supported, l2 and ip are");
        if (params.nlist < 0 || params.code_bytes < 1 || params.nprobe < 1 || params.points_per_centroid < 1)
            detail::fail("IvfpqGraphBuilder: nlist " + std::to_string(params.nlist) + ", code_bytes " +
                         std::to_string(params.code_bytes) + ", nprobe " + std::to_string(params.nprobe) +
                         ", points_per_centroid " + std::to_string(params.points_per_centroid) +
                         "; allowed are nlist >= 0 and the others >= 1");
        constexpr int kMostGpuProbes = 2048;  // FAISS's
        if (gpu.resources != nullptr) {
            detail::check_gpu(gpu, "IvfpqGraphBuilder");
            if (params.nprobe > kMostGpuProbes)
                detail::fail("IvfpqGraphBuilder: nprobe " + std::to_string(params.nprobe) +
                             ", on a GPU allowed are 1 to " + std::to_string(kMostGpuProbes));
        }
        const faiss::MetricType metric = to_faiss_metric(source.metric());
        const idx_t proposed =
            params.nlist > 0 ? params.nlist : std::min<idx_t>(65536, std::llround(4 * std::sqrt(double(x.n))));
        const idx_t nlist = std::max<idx_t>(1, std::min<idx_t>(proposed, x.n / kLeastPointsPerCentroid));
        int bits = 8;
        while (bits > 1 && (std::int64_t(1) << bits) > x.n) --bits;
        on_gpu = gpu.resources != nullptr && bits == 8;
        std::int64_t bytes = std::min<std::int64_t>(params.code_bytes, x.d);
        while (x.d % bytes != 0 || (on_gpu && !detail::gpu_has_code_bytes(bytes))) --bytes;

        const detail::IvfpqShape shape{x.d, metric, nlist, int(bytes), params.points_per_centroid, params.seed, x.n};
        std::shared_ptr<const Filled> filled = std::move(filled_);
        if (filled == nullptr || !filled->is_of(x, shape, gpu)) {
            filled.reset();
            filled = fill(source, shape, bits);
        }
        if (keep_index) filled_ = filled;
        timing = filled->timing;
        filled->ivfpq.set_nprobe(int(std::min<idx_t>(params.nprobe, nlist)));
        const faiss::Index& index = *filled->ivfpq.index;
        detail::Timer timer;

        const std::int64_t m = std::min<std::int64_t>(k + 1, x.n);
        gnnd::KnnGraph graph(x.n, k, source.metric());
        std::vector<float> distances;
        std::vector<idx_t> found;
        std::vector<std::int32_t> objects;
        const std::int64_t block = on_gpu ? detail::gpu_block(x.d) : detail::kBlock;
        detail::for_float_rows(source, block, [&](std::int64_t begin, std::int64_t count, const float* rows) {
            distances.resize(count * m);
            found.resize(count * m);
            objects.resize(count);
            std::iota(objects.begin(), objects.end(), std::int32_t(begin));
            index.search(count, rows, m, distances.data(), found.data());
            detail::finish_rows(source, objects.data(), count, found.data(), m, k, params.seed, graph.ids() + begin * k,
                                graph.distances() + begin * k);
        });
        timing.push_back({"search", timer.lap()});
        return graph;
    });
}

}  // namespace faiss_ext

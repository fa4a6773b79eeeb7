#include <faiss/IndexFlat.h>
#include <faiss/IndexIVFPQ.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/rows.h"
#include "faiss_ext/detail/timer.h"
#include "faiss_ext/evaluate.h"
#include "faiss_ext/graph_builder.h"

namespace faiss_ext {

namespace {

constexpr std::int64_t kLeastPointsPerCentroid = 39, kMostPointsPerCentroid = 256;  // FAISS's own

/// The training rows: a sample as large as FAISS uses of the whole set, so that it need not be copied.
std::vector<float> training_rows(const VectorSource& source, std::int64_t count, std::uint64_t seed) {
    const std::vector<std::int32_t> sample = sample_objects(source.vectors().n, count, seed);
    std::vector<float> rows(sample.size() * source.vectors().d);
    for (std::size_t i = 0; i < sample.size(); ++i)
        detail::float_rows(source, sample[i], 1, rows.data() + i * source.vectors().d);
    return rows;
}

void configure(faiss::ClusteringParameters& clustering, std::uint64_t seed) {
    clustering.min_points_per_centroid = 1;  // else FAISS warns on standard error about small sets
    clustering.seed = int(seed & std::numeric_limits<int>::max());
}

}  // namespace

gnnd::KnnGraph IvfpqGraphBuilder::build(const VectorSource& source, int k) {
    return detail::with_faiss_errors([&] {
        const gnnd::VectorView& x = source.vectors();
        detail::check_request(source, k);
        if (source.metric() != gnnd::Metric::L2 && source.metric() != gnnd::Metric::InnerProduct)
            detail::fail("IvfpqGraphBuilder: metric " + std::string(gnnd::name_of(source.metric())) +
                         " is not supported, l2 and ip are");
        if (params.nlist < 0 || params.code_bytes < 1 || params.nprobe < 1)
            detail::fail("IvfpqGraphBuilder: nlist " + std::to_string(params.nlist) + ", code_bytes " +
                         std::to_string(params.code_bytes) + ", nprobe " + std::to_string(params.nprobe) +
                         "; allowed are nlist >= 0 and the others >= 1");
        const faiss::MetricType metric = to_faiss_metric(source.metric());
        const idx_t proposed =
            params.nlist > 0 ? params.nlist : std::min<idx_t>(65536, std::llround(4 * std::sqrt(double(x.n))));
        const idx_t nlist = std::max<idx_t>(1, std::min<idx_t>(proposed, x.n / kLeastPointsPerCentroid));
        std::int64_t bytes = std::min<std::int64_t>(params.code_bytes, x.d);
        while (x.d % bytes != 0) --bytes;
        int bits = 8;
        while (bits > 1 && (std::int64_t(1) << bits) > x.n) --bits;

        timing.clear();
        detail::Timer timer;
        faiss::IndexFlat coarse(x.d, metric);
        faiss::IndexIVFPQ index(&coarse, x.d, nlist, bytes, bits, metric);
        index.verbose = verbose;
        configure(index.cp, params.seed);
        configure(index.pq.cp, params.seed);
        {
            const std::int64_t count = kMostPointsPerCentroid * std::max<std::int64_t>(nlist, 256);
            const std::vector<float> rows = training_rows(source, std::min(count, x.n), params.seed);
            index.train(std::int64_t(rows.size()) / x.d, rows.data());
        }
        detail::append_seconds(timing, "train", timer.lap());
        detail::for_float_rows(source,
                               [&](std::int64_t, std::int64_t count, const float* rows) { index.add(count, rows); });
        detail::append_seconds(timing, "add", timer.lap());

        index.nprobe = std::min<idx_t>(params.nprobe, nlist);
        const std::int64_t m = std::min<std::int64_t>(k + 1, x.n);
        gnnd::KnnGraph graph(x.n, k, source.metric());
        std::vector<float> distances;
        std::vector<idx_t> found;
        std::vector<std::int32_t> objects;
        detail::for_float_rows(source, [&](std::int64_t begin, std::int64_t count, const float* rows) {
            distances.resize(count * m);
            found.resize(count * m);
            objects.resize(count);
            std::iota(objects.begin(), objects.end(), std::int32_t(begin));
            index.search(count, rows, m, distances.data(), found.data());
            detail::finish_rows(source, objects.data(), count, found.data(), m, k, params.seed, graph.ids() + begin * k,
                                graph.distances() + begin * k);
        });
        detail::append_seconds(timing, "search", timer.lap());
        return graph;
    });
}

}  // namespace faiss_ext

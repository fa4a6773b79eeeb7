// SPDX-License-Identifier: MIT
#include <faiss/IndexFlat.h>
#include <faiss/impl/DistanceComputer.h>
#include <faiss/impl/NNDescent.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/print.h"
#include "faiss_ext/detail/rows.h"
#include "faiss_ext/detail/timer.h"
#include "faiss_ext/graph_builder.h"

namespace faiss_ext {

namespace {

/// FAISS's NN-Descent takes smaller for nearer.
struct Negated : faiss::DistanceComputer {
    explicit Negated(faiss::DistanceComputer& base) : base(base) {}
    void set_query(const float* x) override { base.set_query(x); }
    float operator()(idx_t i) override { return -base(i); }
    float symmetric_dis(idx_t i, idx_t j) override { return -base.symmetric_dis(i, j); }
    faiss::DistanceComputer& base;
};

}  // namespace

gnnd::KnnGraph NNDescentGraphBuilder::build(const VectorSource& source, int k) {
    return detail::with_faiss_errors([&] {
        const gnnd::VectorView& x = source.vectors();
        detail::check_request(source, k);
        const faiss::MetricType metric = detail::search_metric(source.metric(), "NNDescentGraphBuilder");
        const int L = params.L == 0 ? k + 50 : params.L;
        if (params.S < 2 || params.R < 2 || L < std::max(k, params.S) || params.iterations < 0)
            detail::fail("NNDescentGraphBuilder: S " + std::to_string(params.S) + ", R " + std::to_string(params.R) +
                         ", L " + std::to_string(L) + ", iterations " + std::to_string(params.iterations) +
                         "; allowed are S >= 2, R >= 2, L >= k and L >= S, iterations >= 0");
        timing.clear();
        if (x.n <= 2 * std::int64_t(params.S) + 1) {
            ExactGraphBuilder exact;
            gnnd::KnnGraph graph = exact.build(source, k);
            timing = exact.timing;
            return graph;
        }
        detail::Timer timer;
        faiss::IndexFlat storage(x.d, metric);
        detail::fill_storage(storage, source);
        const std::unique_ptr<faiss::DistanceComputer> computer(storage.get_distance_computer());
        Negated negated(*computer);
        faiss::DistanceComputer& distances =
            metric == faiss::METRIC_INNER_PRODUCT ? static_cast<faiss::DistanceComputer&>(negated) : *computer;
        timing.push_back({"add", timer.lap()});

        // NNDescent::build() also compares 100 objects with all others to report its recall, which fails on small sets,
        // and cannot be interrupted; these are the steps it is made of.
        faiss::NNDescent descent(int(x.d), k);
        descent.S = params.S;
        descent.R = params.R;
        descent.L = L;
        descent.random_seed = int(params.seed & std::numeric_limits<int>::max());
        descent.ntotal = int(x.n);
        descent.init_graph(distances);
        timing.push_back({"init", timer.lap()});
        for (int iteration = 0; iteration < params.iterations; ++iteration) {
            detail::check_interrupt();
            descent.join(distances);
            descent.update();
            if (verbose)
                detail::print_line("nndescent: iteration " + std::to_string(iteration + 1) + " of " +
                                   std::to_string(params.iterations));
        }
        timing.push_back({"iterations", timer.lap()});

        gnnd::KnnGraph graph(x.n, k, source.metric());
        std::vector<idx_t> candidates;
        std::vector<std::int32_t> objects;
        for (std::int64_t begin = 0; begin < x.n; begin += detail::kBlock) {
            const std::int64_t count = std::min(detail::kBlock, x.n - begin);
            objects.resize(count);
            std::iota(objects.begin(), objects.end(), std::int32_t(begin));
            candidates.assign(count * k, -1);
            for (std::int64_t r = 0; r < count; ++r) {
                std::vector<faiss::nndescent::Neighbor>& pool = descent.graph[begin + r].pool;
                std::sort(pool.begin(), pool.end());
                const std::int64_t kept = std::min<std::int64_t>(k, pool.size());
                for (std::int64_t j = 0; j < kept; ++j) candidates[r * k + j] = pool[j].id;
            }
            detail::finish_rows(source, objects.data(), count, candidates.data(), k, k, params.seed,
                                graph.ids() + begin * k, graph.distances() + begin * k);
        }
        timing.push_back({"finish", timer.lap()});
        return graph;
    });
}

}  // namespace faiss_ext

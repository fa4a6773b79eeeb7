// SPDX-License-Identifier: MIT
#include <algorithm>
#include <numeric>
#include <optional>

#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/flat_search.h"
#include "faiss_ext/detail/print.h"
#include "faiss_ext/detail/rows.h"
#include "faiss_ext/detail/timer.h"
#include "faiss_ext/graph_builder.h"

namespace faiss_ext {

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
        detail::FlatSearch flat(source, std::min<std::int64_t>(k + 1 + detail::kSpare, x.n), gpu, device_memory);
        std::int64_t step = flat.block();
        if (batch != 0) step = on_gpu ? std::min<std::int64_t>(batch, step) : std::int64_t(batch);
        step = std::min(step, total);
        std::vector<float> query(x.d);
        const detail::Rounding rounding(source, searched, x.dtype);
        std::vector<std::int64_t> doubts;  // rows to search again

        gnnd::KnnGraph graph(total, k, metric);
        for (std::int64_t begin = 0; begin < total; begin += step) {
            detail::check_interrupt();
            const std::int64_t count = std::min(step, total - begin);
            const detail::Found& found = flat.search(source, objects.data() + begin, count);
            detail::finish_rows(source, objects.data() + begin, count, found.ids.data(), found.m, k, 0,
                                graph.ids() + begin * k, graph.distances() + begin * k);
            for (std::int64_t r = 0; r < count && found.m < x.n; ++r) {
                const float* distances = graph.distances_of(begin + r);
                detail::float_rows(source, objects[begin + r], 1, query.data());
                const double bound = rounding.bound(query.data(), distances[wanted - 1]);
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

// SPDX-License-Identifier: MIT
#include "grow_index.h"

#include <faiss/IndexIDMap.h>
#include <faiss/impl/FaissException.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "build_options.h"
#include "common.h"
#include "faiss_ext/index_factory.h"
#include "faiss_ext/vector_source.h"
#include "files.h"
#include "gnnd/io/vector_file.h"
#include "index_file.h"
#include "interrupt.h"
#include "messages.h"
#include "threads.h"

namespace cli {

namespace {

/// \throws CLI::ValidationError for a description, or a metric, that FAISS or GNND cannot follow
std::unique_ptr<faiss::Index> make_index(const GrowOptions& options, int d) {
    const auto of_option = [](const std::string& option, const auto& make) {
        try {
            return make();
        } catch (const faiss::FaissException& error) {
            constexpr std::string_view kWho = "index_factory: ";
            const std::string message = message_of(error);
            throw CLI::ValidationError(option, message.starts_with(kWho) ? message.substr(kWho.size()) : message);
        }
    };
    const faiss::MetricType metric = of_option("--metric " + std::string(name_of(options.metric)),
                                               [&] { return faiss_ext::to_faiss_metric(options.metric); });
    const std::string factory = "--factory " + options.factory;
    std::unique_ptr<faiss::Index> index =
        of_option(factory, [&] { return faiss_ext::index_factory(d, options.factory, metric); });
    if (faiss_ext::builder_of(*index) == nullptr)
        throw CLI::ValidationError(factory, "names no GNND; for instance GNND64,NSG32 does");
    return index;
}

std::unique_ptr<faiss::Index> open_index(const GrowOptions& options, const gnnd::io::VectorFile& base) {
    if (!options.factory.empty()) return make_index(options, int(base.d()));
    std::unique_ptr<faiss::Index> older = read_index_file(options.older);
    if (older->d != base.d())
        throw gnnd::InvalidArgument(options.base + " has vectors of " + std::to_string(base.d()) + " components, " +
                                    options.older + " of " + std::to_string(older->d));
    return faiss_ext::with_gnnd(std::move(older));
}

/// Ids of a map go on from the largest.
void add_rows(faiss::Index& index, std::int64_t n, const float* rows) {
    auto* map = dynamic_cast<faiss::IndexIDMap*>(&index);
    if (map == nullptr) return index.add(n, rows);
    std::vector<faiss_ext::idx_t> ids(n);
    const faiss_ext::idx_t first =
        map->id_map.empty() ? 0 : *std::max_element(map->id_map.begin(), map->id_map.end()) + 1;
    std::iota(ids.begin(), ids.end(), first);
    index.add_with_ids(n, rows, ids.data());
}

}  // namespace

void grow_index(const GrowOptions& options) {
    require_outputs({options.output}, {options.base, options.older});
    use_blas();
    const gnnd::io::VectorFile base(options.base);
    const std::unique_ptr<faiss::Index> index = open_index(options, base);
    faiss_ext::GnndGraphBuilder* builder = faiss_ext::builder_of(*index);
    builder->params.device = options.device;
    builder->params.recall = options.recall;
    builder->params.threads = allowed_threads(0);
    std::vector<float> rows(std::size_t(base.n()) * base.d());
    with_row_names({&base}, [&] { gnnd::copy_as_f32(base.view(), 0, base.n(), rows.data()); });
    const auto start = std::chrono::steady_clock::now();
    with_row_names({&base}, [&] {
        if (!index->is_trained) index->train(base.n(), rows.data());
        add_rows(*index, base.n(), rows.data());
    });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    stop_if_interrupted();
    base.require_unchanged();
    write_index_file(options.output, *index);

    const gnnd::BuildStats& stats = builder->stats;
    warn(warning_of(builder->params, stats));
    if (options.json) {
        print({{"index", options.output},
               {"n", index->ntotal},
               {"d", index->d},
               {"added", base.n()},
               {"device", stats.device.name()},
               {"recall", to_json(stats.recall)},
               {"graph_seconds", stats.seconds},
               {"seconds", seconds.count()}});
        return;
    }
    std::printf("objects     %lld x %d, %lld of them added\n", static_cast<long long>(index->ntotal), index->d,
                static_cast<long long>(base.n()));
    if (stats.recall.objects > 0) std::printf("recall      %s\n", gnnd::to_text(stats.recall).c_str());
    std::printf("seconds     %.3f, of which the graph %.3f\n", seconds.count(), stats.seconds);
    std::printf("index       %s\n", options.output.c_str());
}

}  // namespace cli

// SPDX-License-Identifier: MIT
// GNND inside FAISS on a GPU, and FAISS's own ways to the same: the builder through GpuIndexFlat against the bare one,
// exact search, IVFPQ, and what it takes from vectors to a graph index that is ready to search. Prints JSON lines.
//
//   faiss_bench photosift1m.u8bin builder exact ivfpq nsg hnsw
//   faiss_bench photosift1m.u8bin own_nsg own_hnsw     (FAISS's own construction, on all cores: minutes)
#include <cuda_runtime_api.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexNSG.h>
#include <faiss/gpu/GpuIndexFlat.h>
#include <faiss/gpu/StandardGpuResources.h>
#include <omp.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "benchs/device_array.h"
#include "benchs/merge_by_search.h"
#include "benchs/settings.h"
#include "faiss_ext/adapters.h"
#include "faiss_ext/evaluate.h"
#include "faiss_ext/graph_builder.h"
#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/error.h"
#include "gnnd/io/vector_file.h"
#include "gnnd/merge.h"

namespace {

using faiss_ext::idx_t;
using gnnd::benchs::DeviceArray;
using nlohmann::json;

double seconds_of(const std::function<void()>& f) {
    const auto start = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// After one run that is not timed.
double median_of(int repeat, const std::function<void()>& f) {
    f();
    std::vector<double> seconds(repeat);
    for (double& s : seconds) s = seconds_of(f);
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
}

struct Bench {
    gnnd::io::VectorFile file;
    int k, repeat;
    std::int64_t queries;
    gnnd::BuildParams params;
    faiss::gpu::StandardGpuResources resources;

    std::int64_t n() const { return file.n(); }
    std::int64_t d() const { return file.d(); }
    /// All but the last rows, which are the queries of the graph indexes.
    gnnd::VectorView base() const {
        gnnd::VectorView view = file.view();
        view.n -= queries;
        return view;
    }
    std::vector<float> floats(std::int64_t begin, std::int64_t count) const {
        std::vector<float> rows(std::size_t(count * d()));
        gnnd::copy_as_f32(file.view(), begin, count, rows.data());
        return rows;
    }
    void print(const char* what, json more) const {
        json line = gnnd::benchs::describe(file.path(), file.view(), gnnd::Metric::L2, k, what);
        line.update(more);
        std::printf("%s\n", line.dump().c_str());
        std::fflush(stdout);
    }
    double recall(const gnnd::KnnGraph& graph) {
        return faiss_ext::recall({file.view(), gnnd::Metric::L2}, graph, 10, 10000, 1, {&resources, 0}).value;
    }
    faiss_ext::GnndGraphBuilder builder() { return faiss_ext::GnndGraphBuilder(&resources, {params}); }
};

/// GNND over the same float32 rows on the device, bare and through GpuIndexFlat; then from host to host.
void run_builder(Bench& bench) {
    const std::int64_t n = bench.n();
    faiss::gpu::GpuIndexFlatL2 index(&bench.resources, int(bench.d()));
    {
        const std::vector<float> rows = bench.floats(0, n);
        index.add(n, rows.data());
    }
    const faiss_ext::VectorSource source(&index), on_host(bench.file.view(), gnnd::Metric::L2);
    const auto size = std::size_t(n * bench.k);
    const DeviceArray<std::int32_t> ids(size);
    const DeviceArray<float> distances(size);
    gnnd::BuildParams bare = bench.params;
    bare.k = bench.k;
    bare.device = {gnnd::Device::Kind::cuda, 0};
    faiss_ext::GnndGraphBuilder builder = bench.builder();
    double bare_seconds = 0, seconds = 0;
    for (int round = 0; round < 2; ++round) {  // in turn, so that clocks and caches favour neither
        bare_seconds = median_of(bench.repeat, [&] { gnnd::build_into(source.vectors(), bare, ids, distances); });
        seconds = median_of(bench.repeat, [&] { builder.build_into(source, bench.k, ids, distances); });
    }
    bench.print("bare builder, float32 on the device", {{"seconds", bare_seconds}});
    bench.print("GnndGraphBuilder, GpuIndexFlat", {{"seconds", seconds}, {"ratio", seconds / bare_seconds}});

    gnnd::KnnGraph graph;
    seconds = median_of(bench.repeat, [&] { graph = builder.build(source, bench.k); });
    bench.print("GnndGraphBuilder, GpuIndexFlat to a KnnGraph",
                {{"seconds", seconds}, {"recall@10", bench.recall(graph)}});
    seconds = median_of(bench.repeat, [&] { graph = builder.build(on_host, bench.k); });
    bench.print("GnndGraphBuilder, host vectors to a KnnGraph",
                {{"seconds", seconds}, {"recall@10", bench.recall(graph)}});
    seconds = median_of(bench.repeat, [&] { graph = gnnd::build(bench.file.view(), bare).graph; });
    bench.print("gnnd::build, host vectors to a KnnGraph", {{"seconds", seconds}, {"recall@10", bench.recall(graph)}});
    std::vector<std::int32_t> host_ids(size);
    std::vector<float> host_distances(size);
    seconds =
        median_of(bench.repeat, [&] { builder.build_into(on_host, bench.k, host_ids.data(), host_distances.data()); });
    bench.print("GnndGraphBuilder, host vectors to host arrays", {{"seconds", seconds}});
    seconds = median_of(bench.repeat,
                        [&] { gnnd::build_into(bench.file.view(), bare, host_ids.data(), host_distances.data()); });
    bench.print("bare builder, host vectors to host arrays", {{"seconds", seconds}});
}

void run_baseline(Bench& bench, const char* what, faiss_ext::GraphBuilder& builder) {
    const faiss_ext::VectorSource source(bench.file.view(), gnnd::Metric::L2);
    gnnd::KnnGraph graph;
    const double seconds = seconds_of([&] { graph = builder.build(source, bench.k); });
    json more{{"seconds", seconds}, {"recall@10", bench.recall(graph)}};
    for (const auto& [step, time] : builder.timing) more["timing"][step] = time;
    bench.print(what, more);
}

/// The exact ten nearest of the queries, their distances.
std::vector<float> truth_of(const Bench& bench, const std::vector<float>& rows, const std::vector<float>& queries) {
    faiss::IndexFlatL2 flat(bench.d());
    flat.add(bench.base().n, rows.data());
    std::vector<float> distances(bench.queries * 10);
    std::vector<idx_t> labels(distances.size());
    flat.search(bench.queries, queries.data(), 10, distances.data(), labels.data());
    return distances;
}

/// Recall@10 and queries a second for some beams.
json judge(const Bench& bench, const faiss::Index& index, const std::vector<float>& queries,
           const std::vector<float>& truth, const std::function<void(int)>& set_beam) {
    json beams = json::array();
    for (const int beam : {16, 32, 64, 128, 256}) {
        set_beam(beam);
        std::vector<float> distances(bench.queries * 10);
        std::vector<idx_t> labels(distances.size());
        const double seconds =
            median_of(3, [&] { index.search(bench.queries, queries.data(), 10, distances.data(), labels.data()); });
        std::int64_t hits = 0;
        for (std::size_t i = 0; i < distances.size(); ++i) hits += distances[i] <= truth[i / 10 * 10 + 9];
        beams.push_back({{"beam", beam},
                         {"recall@10", double(hits) / double(distances.size())},
                         {"queries_per_second", double(bench.queries) / seconds}});
    }
    return beams;
}

json judge(const Bench& bench, faiss::IndexNSG& index, const std::vector<float>& queries,
           const std::vector<float>& truth) {
    return judge(bench, index, queries, truth, [&](int beam) { index.nsg.search_L = beam; });
}
json judge(const Bench& bench, faiss::IndexHNSW& index, const std::vector<float>& queries,
           const std::vector<float>& truth) {
    return judge(bench, index, queries, truth, [&](int beam) { index.hnsw.efSearch = beam; });
}

/// From vectors on the host to graph indexes. `types` names them.
void run_indexes(Bench& bench, const std::vector<std::string>& types) {
    const std::vector<float> rows = bench.floats(0, bench.base().n);
    const std::vector<float> queries = bench.floats(bench.base().n, bench.queries);
    const std::vector<float> truth = truth_of(bench, rows, queries);
    const faiss_ext::VectorSource source({rows.data(), bench.base().n, bench.d(), gnnd::DType::f32, 0},
                                         gnnd::Metric::L2);
    faiss_ext::GnndGraphBuilder builder = bench.builder();
    const auto times = [](double graph, double index) {
        return json{{"graph_seconds", graph}, {"index_seconds", index}, {"seconds", graph + index}};
    };
    for (const std::string& type : types) {
        gnnd::KnnGraph graph;
        double graph_seconds = 0;
        if (type.rfind("own_", 0) != 0) {
            builder.build(source, bench.k);  // loads the kernels
            graph_seconds = seconds_of([&] { graph = builder.build(source, bench.k); });
        }
        if (type == "nsg") {
            faiss_ext::NsgParams params;
            params.gpu = {&bench.resources, 0};
            std::unique_ptr<faiss::IndexNSGFlat> index;
            const double seconds = seconds_of([&] { index = faiss_ext::to_nsg(source, graph, params); });
            json more = times(graph_seconds, seconds);
            more["beams"] = judge(bench, *index, queries, truth);
            bench.print("GNND, to_nsg R=32", more);
            // The graph's own first columns instead of links chosen from it.
            for (std::int64_t i = 0; i < graph.n(); ++i)
                std::copy_n(graph.ids_of(i), 32, index->nsg.final_graph->data + i * 32);
            bench.print("GNND, the raw graph's first 32 columns as an NSG",
                        {{"beams", judge(bench, *index, queries, truth)}});
        } else if (type == "hnsw" || type == "hnsw_base") {
            faiss_ext::HnswParams params;
            params.gpu = {&bench.resources, 0};
            params.base_level_only = type == "hnsw_base";
            std::unique_ptr<faiss::IndexHNSWFlat> index;
            const double seconds = seconds_of([&] { index = faiss_ext::to_hnsw(source, graph, params); });
            json more = times(graph_seconds, seconds);
            more["beams"] = judge(bench, *index, queries, truth);
            bench.print(params.base_level_only ? "GNND, to_hnsw M=16 of one level" : "GNND, to_hnsw M=16", more);
        } else if (type == "own_nsg") {
            faiss::IndexNSGFlat index(int(bench.d()), 32);
            index.build_type = 1;  // by FAISS's NNDescent
            const double seconds = seconds_of([&] { index.add(bench.base().n, rows.data()); });
            json more = times(0, seconds);
            more["threads"] = omp_get_max_threads();
            more["beams"] = judge(bench, index, queries, truth);
            bench.print("FAISS's own NSG, R=32", more);
        } else if (type == "own_hnsw") {
            faiss::IndexHNSWFlat index(int(bench.d()), 16);
            const double seconds = seconds_of([&] { index.add(bench.base().n, rows.data()); });
            json more = times(0, seconds);
            more["threads"] = omp_get_max_threads();
            more["beams"] = judge(bench, index, queries, truth);
            bench.print("FAISS's own HNSW, M=16", more);
        } else
            throw gnnd::InvalidArgument("there is no experiment '" + type + "'");
    }
}

/// The graphs of two halves become one: by GGM, and as GGNN does it, by searching the graph of either half, here as an
/// NSG, with the vectors of the other.
void run_merge(Bench& bench) {
    const std::int64_t first = bench.n() / 2, counts[2] = {first, bench.n() - first}, begins[2] = {0, first};
    gnnd::BuildParams params = bench.params;
    params.k = bench.k;
    params.device = {gnnd::Device::Kind::cuda, 0};
    std::vector<float> rows[2];
    gnnd::VectorView views[2];
    gnnd::KnnGraph graphs[2];
    for (int half = 0; half < 2; ++half) {
        rows[half] = bench.floats(begins[half], counts[half]);
        views[half] = {rows[half].data(), counts[half], bench.d(), gnnd::DType::f32, 0};
        graphs[half] = gnnd::build(views[half], params).graph;
    }
    for (const int iterations : {2, 3}) {
        params.iterations = iterations;
        gnnd::KnnGraph graph;
        const double seconds = median_of(
            bench.repeat, [&] { graph = gnnd::merge(views[0], graphs[0], views[1], graphs[1], params).graph; });
        bench.print(("GGM, host to host, " + std::to_string(iterations) + " iterations").c_str(),
                    {{"seconds", seconds}, {"recall@10", bench.recall(graph)}});
    }
    const gnnd::benchs::SearchedMerge joined = gnnd::benchs::merge_by_search(
        views, graphs, gnnd::Metric::L2, [&](const faiss_ext::VectorSource& source, const gnnd::KnnGraph& graph) {
            faiss_ext::NsgParams nsg;
            nsg.gpu = {&bench.resources, 0};
            auto index = faiss_ext::to_nsg(source, graph, nsg);
            index->nsg.search_L = bench.k;
            return index;
        });
    bench.print("both NSGs searched with the other half, a beam of k", {{"index_seconds", joined.index_seconds},
                                                                        {"fold_seconds", joined.fold_seconds},
                                                                        {"seconds", joined.search_seconds},
                                                                        {"recall@10", bench.recall(joined.graph)}});
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{
        "GNND inside FAISS on a GPU, and FAISS's own ways; prints JSON lines. Experiments: builder, exact, ivfpq, nsg, "
        "hnsw, hnsw_base, own_nsg, own_hnsw, merge."};
    std::string base, settings;
    int k = 64, repeat = 5;
    std::int64_t queries = 1000;
    std::vector<std::string> experiments;
    app.add_option("base", base, "vector file")->required();
    app.add_option("experiments", experiments, "what to run, in this order")->required();
    app.add_option("-k", k, "neighbours")->capture_default_str();
    app.add_option("--gnnd", settings,
                   "GNND's parameters as name=value,...: p, list, iterations, delta, seed, trees, "
                   "init, update; default: iterations=3");
    app.add_option("--repeat", repeat, "timed builds, after one that is not")->capture_default_str();
    app.add_option("--queries", queries, "rows held out as queries of graph indexes")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    try {
        Bench bench{gnnd::io::VectorFile(base), k, std::max(1, repeat), queries, {}, {}};
        gnnd::benchs::Settings given(settings.empty() ? "iterations=3" : settings);
        given.take(bench.params);
        given.end("faiss_bench");
        std::vector<std::string> indexes;
        for (const std::string& experiment : experiments) {
            if (experiment == "builder") {
                run_builder(bench);
            } else if (experiment == "exact") {
                faiss_ext::ExactGraphBuilder exact({&bench.resources, 0});
                run_baseline(bench, "exact, GPU", exact);
            } else if (experiment == "ivfpq") {
                for (const int nprobe : {8, 32, 64}) {
                    faiss_ext::IvfpqGraphBuilder ivfpq({}, {&bench.resources, 0});
                    ivfpq.params.nprobe = nprobe;
                    run_baseline(bench, ("ivfpq, GPU, nprobe=" + std::to_string(nprobe)).c_str(), ivfpq);
                }
            } else if (experiment == "merge") {
                run_merge(bench);
            } else
                indexes.push_back(experiment);
        }
        if (!indexes.empty()) run_indexes(bench, indexes);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "faiss_bench: %s\n", error.what());
        return 1;
    }
}

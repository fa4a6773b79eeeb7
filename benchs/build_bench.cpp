// SPDX-License-Identifier: MIT
// Whole builds, side by side: GNND with any parameters, the baselines of faiss_ext, and graphs made of parts. Prints
// one JSON line per build.
//
//   build_bench base.u8bin --rows 100000 -k 32 --repeat 3 method=gnnd method=gnnd,init=random method=nndescent
//   build_bench base.u8bin -k 32 merge=50000 merge=50000,by=nsg,beam=64 parts=4    (see merges.h)
#include <faiss/Index.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "benchs/merges.h"
#include "benchs/settings.h"
#include "faiss_ext/evaluate.h"
#include "faiss_ext/gpu.h"
#include "faiss_ext/graph_builder.h"
#include "gnnd/detail/process_memory.h"
#include "gnnd/io/graph_file.h"
#include "gnnd/io/vector_file.h"

namespace {

using gnnd::benchs::describe;
using gnnd::benchs::PeakMemory;
using gnnd::benchs::Settings;
using nlohmann::json;

std::string machine() {
    std::ifstream cpuinfo("/proc/cpuinfo");
    std::string model = "unknown processor";
    int cores = 0;
    for (std::string line; std::getline(cpuinfo, line);)
        if (line.starts_with("model name")) {
            model = line.substr(line.find(':') + 2);
            ++cores;
        }
    return model + ", " + std::to_string(cores) + " cores";
}

std::string take_method(Settings& settings) {
    std::string method = "gnnd";
    settings.take("method", [&](const std::string& v) { method = v; });
    return method;
}

std::unique_ptr<faiss_ext::GraphBuilder> make_builder(Settings& settings, int threads, const gnnd::Device& device,
                                                      const faiss_ext::Gpu& gpu) {
    const std::string method = take_method(settings);
    auto builder = faiss_ext::make_graph_builder(method, gpu);
    if (auto* gnnd_builder = dynamic_cast<faiss_ext::GnndGraphBuilder*>(builder.get())) {
        gnnd_builder->use(nullptr);  // memory of its own: FAISS's pool would be held for nothing
        gnnd_builder->params.threads = threads;
        gnnd_builder->params.device = device;
        settings.take(gnnd_builder->params);
    } else if (auto* nndescent = dynamic_cast<faiss_ext::NNDescentGraphBuilder*>(builder.get())) {
        settings.take("S", [&](const std::string& v) { nndescent->params.S = std::stoi(v); });
        settings.take("R", [&](const std::string& v) { nndescent->params.R = std::stoi(v); });
        settings.take("L", [&](const std::string& v) { nndescent->params.L = std::stoi(v); });
        settings.take("iterations", [&](const std::string& v) { nndescent->params.iterations = std::stoi(v); });
    } else if (auto* ivfpq = dynamic_cast<faiss_ext::IvfpqGraphBuilder*>(builder.get())) {
        settings.take("nlist", [&](const std::string& v) { ivfpq->params.nlist = std::stoll(v); });
        settings.take("nprobe", [&](const std::string& v) { ivfpq->params.nprobe = std::stoi(v); });
        settings.take("code", [&](const std::string& v) { ivfpq->params.code_bytes = std::stoi(v); });
        settings.take("points", [&](const std::string& v) { ivfpq->params.points_per_centroid = std::stoi(v); });
    }
    settings.end("method " + method);
    return builder;
}

struct Options {
    std::string path, metric = "l2", graphs;
    gnnd::Device device;
    faiss_ext::Gpu gpu;  ///< of FAISS's builders
    std::int64_t rows = 0, queries = 10000;
    int k = 32, repeat = 1, threads = 0;
    std::vector<int> at{10};
    std::vector<std::string> configurations{"method=gnnd"};
};

/// A build, and what it says of itself.
struct Built {
    gnnd::KnnGraph graph;
    double seconds = 0;
    json line;
};

void describe_stats(json& line, const gnnd::BuildStats& stats) {
    line["p"] = stats.choices.samples;
    line["list_size"] = stats.choices.list_size;
    line["threads"] = stats.threads;
    line["device"] = stats.device.name();
    line["stop"] = gnnd::name_of(stats.stop);
    line["iterations"] = stats.iterations.size();
    for (const auto& s : stats.iterations) {
        line["phi"].push_back(s.phi);
        line["iteration_seconds"].push_back(s.seconds);
        line["distances"].push_back(s.distances);
    }
    if (stats.recall.objects != 0)
        line["measured"] = {{"recall", stats.recall.value},
                            {"low", stats.recall.low},
                            {"high", stats.recall.high},
                            {"objects", stats.recall.objects}};
}

double sum_of(const std::vector<faiss_ext::StepTime>& timing) {
    double seconds = 0;
    for (const auto& step : timing) seconds += step.seconds;
    return seconds;
}

/// \param kept  builds those of IVFPQ: ones in a row that differ in nprobe alone share an index, and each counts as if
///              it had made its own
Built build(const Options& options, const faiss_ext::VectorSource& source, const std::string& configuration,
            faiss_ext::IvfpqGraphBuilder& kept) {
    Settings settings(configuration);
    gnnd::benchs::Parts parts;
    parts.take_from(settings);
    const auto made = make_builder(settings, options.threads, options.device, options.gpu);
    auto* gnnd_builder = dynamic_cast<faiss_ext::GnndGraphBuilder*>(made.get());
    faiss_ext::GraphBuilder* builder = made.get();
    if (const auto* ivfpq = dynamic_cast<const faiss_ext::IvfpqGraphBuilder*>(builder)) {
        kept.params = ivfpq->params;
        kept.keep_index = true;
        builder = &kept;
    } else {
        kept = faiss_ext::IvfpqGraphBuilder({}, options.gpu);  // without an index, whose memory others may need
    }
    Built built;
    if (parts.any()) {
        if (gnnd_builder == nullptr) throw gnnd::InvalidArgument("merge and parts are of method gnnd");
        gnnd::BuildParams params = gnnd_builder->params;
        params.k = options.k;
        params.metric = source.metric();
        gnnd::benchs::PartsResult result = gnnd::benchs::build_of_parts(source.vectors(), parts, params);
        built.graph = std::move(result.graph);
        built.seconds = result.seconds;
        built.line["method"] = parts.merge != 0 ? "merge by " + parts.by : "parts";
        for (const auto& [step, seconds] : result.timing) built.line["timing"][step] = seconds;
        if (result.timing.count("search") == 0) describe_stats(built.line, result.stats);
        return built;
    }
    const auto start = std::chrono::steady_clock::now();
    built.graph = builder->build(source, options.k);
    built.seconds = builder == &kept ? sum_of(kept.timing)
                                     : std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    built.line["method"] = builder->name();
    built.line["device"] = builder->on_gpu ? "cuda:" + std::to_string(options.gpu.device) : "cpu";
    for (const auto& [step, seconds] : builder->timing) built.line["timing"][step] = seconds;
    if (gnnd_builder != nullptr) describe_stats(built.line, gnnd_builder->stats);
    return built;
}

/// Sum of all distances: phi(G) of what is returned, whoever made it.
double phi_of(const gnnd::KnnGraph& graph) {
    double phi = 0;
    for (std::int64_t i = 0; i < graph.n() * graph.k(); ++i)
        if (graph.ids()[i] >= 0) phi += graph.distances()[i];
    return phi;
}

void run(const Options& options) {
    const gnnd::io::VectorFile file(options.path);
    const std::int64_t n = options.rows > 0 ? std::min(options.rows, file.n()) : file.n();
    const int k = options.k;
    std::vector<std::byte> bytes(n * file.d() * gnnd::size_of(file.dtype()));
    file.read(0, n, bytes.data());
    const gnnd::VectorView vectors{bytes.data(), n, file.d(), file.dtype(), 0};
    const gnnd::Metric metric = gnnd::parse_metric(options.metric);
    const faiss_ext::VectorSource source(vectors, metric);
    const int most_at = *std::max_element(options.at.begin(), options.at.end());
    if (*std::min_element(options.at.begin(), options.at.end()) < 1 || most_at > k)
        throw gnnd::InvalidArgument("--at: allowed are 1 to k");

    const auto objects = faiss_ext::sample_objects(n, options.queries, 1);
    const gnnd::KnnGraph truth = faiss_ext::ExactGraphBuilder(options.gpu).search(source, objects, most_at);
    const std::string where = machine(), version = gnnd::benchs::commit();
    if (!options.graphs.empty()) std::filesystem::create_directories(options.graphs);

    faiss_ext::IvfpqGraphBuilder kept({}, options.gpu);
    // The first build in a process takes longer on a GPU, by less than IVFPQ's would show, and FAISS's searches are not
    // there.
    if (options.device.kind == gnnd::Device::Kind::cuda)
        for (const std::string& configuration : options.configurations) {
            Settings settings(configuration);
            gnnd::benchs::Parts parts;
            parts.take_from(settings);
            if (take_method(settings) != "ivfpq" && !parts.by_faiss()) build(options, source, configuration, kept);
        }
    // Round by round, so that what slows the machine down for a while slows all of them.
    for (int round = 0; round < options.repeat; ++round)
        for (std::size_t number = 0; number < options.configurations.size(); ++number) {
            const std::string& configuration = options.configurations[number];
            const PeakMemory memory;
            Built built = build(options, source, configuration, kept);
            const std::int64_t peak = memory.bytes();
            json line = describe(options.path, vectors, metric, k, configuration);
            line.update(built.line);
            for (const int at : options.at)
                line["recall@" + std::to_string(at)] =
                    faiss_ext::recall_against(source, built.graph, objects, truth, at);
            line["recall_objects"] = objects.size();
            line["phi_graph"] = phi_of(built.graph);
            line["seconds"] = built.seconds;
            line["vector_bytes"] = bytes.size();
            line["graph_bytes"] = n * k * 8;
            line["peak_bytes"] = peak;
            line["peak_over_graph"] = double(peak) / double(n * k * 8);
            line["machine"] = where;
            line["commit"] = version;
            line["faiss"] = std::to_string(FAISS_VERSION_MAJOR) + "." + std::to_string(FAISS_VERSION_MINOR) + "." +
                            std::to_string(FAISS_VERSION_PATCH);
            if (!options.graphs.empty()) {
                const std::string path = options.graphs + "/" + std::to_string(number) + ".gnnd";
                gnnd::io::write_graph(path, built.graph, vectors.dtype);
                line["graph"] = path;
            }
            std::printf("%s\n", line.dump().c_str());
            std::fflush(stdout);
        }
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{
        "Times whole builds; prints one JSON line each. A configuration is a list of name=value: method "
        "(gnnd, exhaustive, exact, ivfpq, nndescent); for gnnd p, list, iterations, delta, recall, seed, trees, init, "
        "update, device, and merge (so many first vectors and the others have graphs, whose merge is timed), by (of "
        "merge: ggm, append, nsg or hnsw), beam (of nsg and hnsw), parts (so many are added one after the other); for "
        "nndescent S, R, L, iterations; for ivfpq nlist, nprobe, code, points."};
    Options options;
    app.add_option("base", options.path, "vector file")->required();
    app.add_option("configurations", options.configurations, "what to build")->capture_default_str();
    app.add_option("--rows", options.rows, "use the first so many rows; 0: all")->capture_default_str();
    app.add_option("-k", options.k, "neighbours")->capture_default_str();
    app.add_option("--at", options.at, "k of Recall@k, one or more, as in 1,10")->delimiter(',')->capture_default_str();
    app.add_option("--metric", options.metric)->capture_default_str();
    app.add_option("--queries", options.queries, "objects sampled for the recall; 0: all")->capture_default_str();
    app.add_option("--repeat", options.repeat, "rounds over all configurations")->capture_default_str();
    app.add_option("--threads", options.threads, "CPU threads of gnnd; 0: all")->capture_default_str();
    app.add_option("--graphs", options.graphs, "folder for the graph of each configuration, 0.gnnd and so on");
    std::string device = "auto";
    app.add_option(
           "--device", device,
           "cpu, cuda:N, where each but IVFPQ's is built once before it is timed, or auto, with FAISS on the CPU")
        ->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    try {
        options.device = gnnd::Device::parse(device);
        std::shared_ptr<faiss::gpu::GpuResourcesProvider> resources;
        if (options.device.kind == gnnd::Device::Kind::cuda && faiss_ext::faiss_has_gpu())
            resources = faiss_ext::standard_gpu_resources();
        options.gpu = {resources.get(), options.device.index};
        run(options);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "build_bench: %s\n", e.what());
        return 1;
    }
    return 0;
}

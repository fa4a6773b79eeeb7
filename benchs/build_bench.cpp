// SPDX-License-Identifier: MIT
// Whole builds, side by side: GNND with any parameters and the baselines of faiss_ext. Prints one JSON line per build.
//
//   build_bench base.u8bin --rows 100000 -k 32 --repeat 3 method=gnnd method=gnnd,init=random method=nndescent
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "benchs/settings.h"
#include "faiss_ext/evaluate.h"
#include "faiss_ext/graph_builder.h"
#include "gnnd/detail/process_memory.h"
#include "gnnd/io/vector_file.h"

namespace {

using gnnd::benchs::describe;
using gnnd::benchs::Settings;
using gnnd::detail::process_memory;
using nlohmann::json;

/// Makes VmHWM start again from the present size; memory that earlier builds freed goes back first, or it would be
/// missing from the next peak.
void reset_peak_memory() {
    malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << "5";
}

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

std::string commit() {
    std::string hash;
    if (FILE* git = popen("git -C '" GNND_SOURCE_DIR "' describe --always --dirty 2>/dev/null", "r")) {
        for (int c; (c = std::fgetc(git)) != EOF && c != '\n';) hash += char(c);
        pclose(git);
    }
    return hash.empty() ? "unknown" : hash;
}

std::unique_ptr<faiss_ext::GraphBuilder> make_builder(Settings settings, int threads) {
    std::string method = "gnnd";
    settings.take("method", [&](const std::string& v) { method = v; });
    auto builder = faiss_ext::make_graph_builder(method);
    if (auto* gnnd_builder = dynamic_cast<faiss_ext::GnndGraphBuilder*>(builder.get())) {
        gnnd_builder->params.threads = threads;
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
    }
    settings.end("method " + method);
    return builder;
}

void run(const std::string& path, std::int64_t rows, int k, int at, gnnd::Metric metric, int repeat, int threads,
         std::int64_t queries, const std::vector<std::string>& configurations) {
    const gnnd::io::VectorFile file(path);
    const std::int64_t n = rows > 0 ? std::min(rows, file.n()) : file.n();
    std::vector<std::byte> bytes(n * file.d() * gnnd::size_of(file.dtype()));
    file.read(0, n, bytes.data());
    const gnnd::VectorView vectors{bytes.data(), n, file.d(), file.dtype(), 0};
    const faiss_ext::VectorSource source(vectors, metric);

    const auto objects = faiss_ext::sample_objects(n, queries, 1);
    const gnnd::KnnGraph truth = faiss_ext::ExactGraphBuilder().search(source, objects, at);
    const std::string where = machine(), version = commit();

    // Round by round, so that what slows the machine down for a while slows all of them.
    for (int round = 0; round < repeat; ++round)
        for (const std::string& configuration : configurations) {
            const auto builder = make_builder(Settings(configuration), threads);
            reset_peak_memory();
            const std::int64_t before = process_memory("VmRSS");
            const auto start = std::chrono::steady_clock::now();
            const gnnd::KnnGraph graph = builder->build(source, k);
            const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            const std::int64_t peak = process_memory("VmHWM") - before;
            json line = describe(path, vectors, metric, k, configuration);
            line["method"] = builder->name();
            line["recall@" + std::to_string(at)] = faiss_ext::recall_against(source, graph, objects, truth, at);
            line["seconds"] = seconds;
            line["vector_bytes"] = bytes.size();
            line["graph_bytes"] = n * k * 8;
            line["peak_bytes"] = peak;
            line["peak_over_graph"] = double(peak) / double(n * k * 8);
            for (const auto& [step, seconds] : builder->timing) line["timing"][step] = seconds;
            line["machine"] = where;
            line["commit"] = version;
            if (const auto* gnnd_builder = dynamic_cast<const faiss_ext::GnndGraphBuilder*>(builder.get())) {
                line["p"] = gnnd_builder->stats.choices.samples;
                line["list_size"] = gnnd_builder->stats.choices.list_size;
                line["threads"] = gnnd_builder->stats.threads;
                line["stop"] = gnnd::name_of(gnnd_builder->stats.stop);
                line["iterations"] = gnnd_builder->stats.iterations.size();
                for (const auto& s : gnnd_builder->stats.iterations) {
                    line["phi"].push_back(s.phi);
                    line["iteration_seconds"].push_back(s.seconds);
                    line["distances"].push_back(s.distances);
                }
            }
            std::printf("%s\n", line.dump().c_str());
            std::fflush(stdout);
        }
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{
        "Times whole builds; prints one JSON line each. A configuration is a list of name=value: method "
        "(gnnd, exact, ivfpq, nndescent); for gnnd p, list, iterations, delta, seed, trees, init, update; for "
        "nndescent S, R, L, iterations; for ivfpq nlist, nprobe, code."};
    std::string path, metric = "l2";
    std::int64_t rows = 0, queries = 10000;
    int k = 32, at = 10, repeat = 1, threads = 0;
    std::vector<std::string> configurations{"method=gnnd"};
    app.add_option("base", path, "vector file")->required();
    app.add_option("configurations", configurations, "what to build")->capture_default_str();
    app.add_option("--rows", rows, "use the first so many rows; 0: all")->capture_default_str();
    app.add_option("-k", k, "neighbours")->capture_default_str();
    app.add_option("--at", at, "k of Recall@k")->capture_default_str();
    app.add_option("--metric", metric)->capture_default_str();
    app.add_option("--queries", queries, "objects sampled for the recall; 0: all")->capture_default_str();
    app.add_option("--repeat", repeat, "rounds over all configurations")->capture_default_str();
    app.add_option("--threads", threads, "CPU threads of gnnd; 0: all")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    try {
        run(path, rows, k, at, gnnd::parse_metric(metric), repeat, threads, queries, configurations);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "build_bench: %s\n", e.what());
        return 1;
    }
    return 0;
}

// SPDX-License-Identifier: MIT
// Graph operations beside a copy of memory: time, bytes in and out per second, peak memory; a JSON line each. On a GPU
// the time has the graph's way there and the result's back in it.
//     operations_bench [--graph FILE | -n 1000000 -k 32 [--far]] [--threads 0] [--repeats 3] [--device cpu]
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "gnnd/detail/process_memory.h"
#include "gnnd/io/graph_file.h"
#include "gnnd/operations.h"
#include "gnnd/random.h"

namespace {

using gnnd::KnnGraph;

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The processor's time of all threads: in the program, and in the system, which makes the pages of new memory.
struct Times {
    double user, system;
};

Times times_now() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) { return double(time.tv_sec) + 1e-6 * double(time.tv_usec); };
    return {seconds(usage.ru_utime), seconds(usage.ru_stime)};
}

/// Ids from anywhere (far), for which no cache helps, or from the rows that follow.
KnnGraph generate(std::int64_t n, int k, bool far) {
    KnnGraph graph(n, k, gnnd::Metric::L2);
    gnnd::Random random(1);
    for (std::int64_t i = 0; i < n; ++i)
        for (int j = 0; j < k;) {
            const std::int64_t step =
                1 + std::int64_t(random.below(std::uint32_t(far ? n - 1 : std::min<std::int64_t>(n - 1, 4 * k))));
            const auto id = std::int32_t((i + step) % n);
            std::int32_t* row = graph.ids() + i * k;
            if (std::find(row, row + j, id) != row + j) continue;
            row[j] = id;
            graph.distances()[i * k + j] = float(j) + 0.5F;
            ++j;
        }
    return graph;
}

void report(const std::string& name, int repeats, double input_bytes, const std::function<std::int64_t()>& run) {
    for (int repeat = 0; repeat < repeats; ++repeat) {
        const double start = seconds_now();
        const Times before = times_now();
        const double bytes = input_bytes + double(run());
        const Times after = times_now();
        const double seconds = seconds_now() - start;
        std::printf(
            "{\"operation\": \"%s\", \"seconds\": %.4f, \"user_seconds\": %.4f, \"system_seconds\": %.4f, "
            "\"gb_per_second\": %.3f, \"peak_bytes\": %lld}\n",
            name.c_str(), seconds, after.user - before.user, after.system - before.system, 1e-9 * bytes / seconds,
            static_cast<long long>(gnnd::detail::process_memory("VmHWM")));
    }
}

void measure(const KnnGraph& graph, int threads, int repeats, const gnnd::Device& device) {
    const double bytes = 8.0 * double(graph.n() * graph.k());
    {
        const auto size = std::size_t(bytes);
        std::vector<char> from(size, 1), to(size, 2);
        report("memcpy", repeats, bytes, [&] {
            std::memcpy(to.data(), from.data(), size);
            return std::int64_t(size);
        });
        report("new memory", repeats, 0, [&] {
            gnnd::Array<char> fresh(size);
            std::memset(fresh.data(), 1, size);
            return std::int64_t(size);
        });
    }
    const auto matrix = [&](const char* name, const std::function<gnnd::CsrGraph()>& make) {
        report(name, repeats, bytes, [&] {
            const gnnd::CsrGraph made = make();
            return 8 * (made.n + 1) + 8 * made.entries();
        });
    };
    gnnd::EdgeParams edges;
    edges.threads = threads;
    edges.device = device;
    matrix("knn", [&] { return neighbors_graph(graph, edges); });
    matrix("symmetric", [&] { return symmetric_graph(graph, edges); });
    matrix("mutual", [&] { return mutual_graph(graph, edges); });
    matrix("jaccard", [&] { return jaccard_graph(graph, {0, false, 0, threads, device}); });
    matrix("fuzzy", [&] { return fuzzy_simplicial_set(graph, {0, 1, 1, 1, threads, device}); });
    matrix("reachability", [&] { return mutual_reachability_graph(graph, {0, 1, 1, threads, device}); });
    report("components", repeats, bytes,
           [&] { return std::int64_t(4 * connected_components(graph, edges).labels.size()); });
    report("duplicates", repeats, bytes, [&] {
        return std::int64_t(4 * duplicates(graph, {2, {}, 0, threads, nullptr, device}).labels.size());
    });
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Graph operations beside a copy of memory.");
    std::string path, device_name = "cpu";
    std::int64_t n = 1000000;
    int k = 32, threads = 0, repeats = 3;
    bool far = false;
    app.add_option("--graph", path, "a graph file instead of a generated graph");
    app.add_option("-n", n, "objects")->check(CLI::Range(std::int64_t(200), gnnd::kMaxObjects));
    app.add_option("-k", k, "neighbours")->check(CLI::Range(1, 128));
    app.add_flag("--far", far, "neighbours are anywhere");
    app.add_option("--threads", threads, "0: all")->check(CLI::Range(0, 4096));
    app.add_option("--repeats", repeats, "")->check(CLI::Range(1, 1000));
    app.add_option("--device", device_name, "cpu, cuda or cuda:N");
    CLI11_PARSE(app, argc, argv);

    try {
        const gnnd::Device device = gnnd::Device::parse(device_name);
        measure(path.empty() ? generate(n, k, far) : gnnd::io::GraphFile(path).read(), threads, repeats, device);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "operations_bench: %s\n", error.what());
        return 1;
    }
}

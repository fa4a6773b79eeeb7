// SPDX-License-Identifier: MIT
// Whole builds on a GPU, timed from and to the memory that is asked for. Prints one JSON line per configuration: the
// median of the repeats after a warm-up, Recall@10 against exact search on the host, and what every iteration did.
//
//   gpu_bench photosift1m.u8bin -k 64 --repeat 5 p=32,iterations=3 p=32,where=pinned
//   gpu_bench photosift1m.u8bin -k 64 iterations=3,merge=500000     (the graphs of the first rows and of the others)
//   gpu_bench photosift1m.u8bin -k 64 iterations=3 append=990000    (the others are added to the first rows' graph)
//   gpu_bench manifold:1000000:960:20 -k 64          (generated: n, d, intrinsic dimension)
//   gpu_bench hard:gauss:200000:768 -k 10            (generated: name, n and, if not the set's own, d; see hard.h)
//   gpu_bench mix:photosift1m.u8bin:10000000 -k 64   (10,000,000 rows made from the file's, see generate.h)
#include <cuda_runtime_api.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "benchs/generate_on_device.h"
#include "benchs/hard.h"
#include "benchs/mixed_base.h"
#include "benchs/settings.h"
#include "gnnd/builder.h"
#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/error.h"
#include "gnnd/io/vector_file.h"
#include "gnnd/merge.h"

namespace {

using gnnd::benchs::describe;
using gnnd::benchs::Settings;
using nlohmann::json;

// Seconds: of a build that takes so long, what the first one in a process takes longer does not show, and it counts.
constexpr double kLongBuild = 10;

std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts(1);
    for (const char c : text)
        if (c == at)
            parts.emplace_back();
        else
            parts.back() += c;
    return parts;
}

/// Memory of one of the three kinds that a caller may have.
class Memory {
  public:
    Memory(std::size_t bytes, const std::string& where) : where_(where) {
        if (where == "device")
            GNND_CUDA(cudaMalloc(&data_, bytes));
        else if (where == "pinned")
            GNND_CUDA(cudaMallocHost(&data_, bytes));
        else if (where == "pageable") {
            data_ = std::malloc(bytes);
            std::fill_n(static_cast<char*>(data_), bytes, char(0xa5));  // touched, as a caller's array would be
        } else
            throw gnnd::InvalidArgument("where=" + where + ", allowed are device, pinned and pageable");
    }
    ~Memory() {
        if (where_ == "device")
            gnnd::cuda::ignore(cudaFree(data_));
        else if (where_ == "pinned")
            gnnd::cuda::ignore(cudaFreeHost(data_));
        else
            std::free(data_);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    template <class T = void>
    T* as() const {
        return static_cast<T*>(data_);
    }

  private:
    std::string where_;
    void* data_ = nullptr;
};

/// The vectors on the host; generated ones are made on the device first.
struct Data {
    std::string name;
    std::vector<std::byte> bytes;
    gnnd::VectorView view;
};

/// The same vectors in halves.
void round_to_halves(Data& data) {
    const gnnd::VectorView view = data.view;
    if (view.dtype != gnnd::DType::f32) throw gnnd::InvalidArgument("gpu_bench: only float32 is rounded to float16");
    std::vector<std::byte> rounded(data.bytes.size() / 2);
    const auto* from = reinterpret_cast<const float*>(data.bytes.data());
    std::transform(from, from + view.n * view.d, reinterpret_cast<gnnd::half*>(rounded.data()), gnnd::to_half);
    data.bytes = std::move(rounded);
    data.view = {data.bytes.data(), view.n, view.d, gnnd::DType::f16, 0};
}

Data load(const std::string& text, std::int64_t rows) {
    Data data;
    data.name = text;
    const auto parts = split(text, ':');
    const auto keep = [&](std::int64_t n, std::int64_t d, gnnd::DType dtype) {
        data.bytes.resize(std::size_t(n) * d * gnnd::size_of(dtype));
        data.view = {data.bytes.data(), n, d, dtype, 0};
    };
    if (parts[0] == "manifold") {
        const std::int64_t n = std::stoll(parts.at(1)), d = std::stoll(parts.at(2));
        keep(n, d, gnnd::DType::f32);
        const Memory made(data.bytes.size(), "device");
        gnnd::benchs::generate(gnnd::benchs::Manifold{d, std::stoi(parts.at(3)), 1}, 0, n, made.as<float>(), nullptr);
        GNND_CUDA(cudaMemcpy(data.bytes.data(), made.as(), data.bytes.size(), cudaMemcpyDeviceToHost));
    } else if (parts[0] == "hard") {
        std::int64_t d = parts.size() > 3 ? std::stoll(parts[3]) : 0;
        const std::int64_t n = std::stoll(parts.at(2));
        const std::vector<float> made = gnnd::benchs::make_hard(parts.at(1), n, d);
        keep(n, d, gnnd::DType::f32);
        std::memcpy(data.bytes.data(), made.data(), data.bytes.size());
    } else if (parts[0] == "mix") {
        const gnnd::io::VectorFile base(parts.at(1));
        keep(std::stoll(parts.at(2)), base.d(), gnnd::DType::u8);
        gnnd::benchs::MixedBase mixed(base, data.view.n, {0});
        mixed.reader().read(0, data.view.n, data.bytes.data());
    } else {
        const gnnd::io::VectorFile file(text);
        keep(rows != 0 ? std::min(rows, file.n()) : file.n(), file.d(), file.dtype());
        file.read(0, data.view.n, data.bytes.data());
    }
    return data;
}

gnnd::VectorView part_of(gnnd::VectorView view, std::int64_t begin, std::int64_t count) {
    view.data = view.row(begin);
    view.n = count;
    return view;
}

struct Configuration {
    std::string text, where = "device";
    gnnd::BuildParams params;
    std::int64_t merge = 0;   ///< objects of the first of two sets whose graphs are merged; 0: one build
    bool exact = false;       ///< all pairs are compared
    std::int64_t append = 0;  ///< objects of the graph that the others are added to; 0: likewise
    gnnd::AppendMethod method = gnnd::AppendMethod::automatic;

    std::int64_t first() const { return std::max(merge, append); }
};

Configuration parse(const std::string& text, int k, gnnd::Metric metric) {
    Configuration c{text, "device", {}};
    c.params.k = k;
    c.params.metric = metric;
    c.params.device = {gnnd::Device::Kind::cuda, 0};
    Settings settings(text == "default" ? "" : text);
    settings.take(c.params);
    settings.take("memory", [&](const std::string& v) { c.params.device_memory = std::stoll(v); });
    settings.take("where", [&](const std::string& v) { c.where = v; });
    settings.take("merge", [&](const std::string& v) { c.merge = std::stoll(v); });
    settings.take("append", [&](const std::string& v) { c.append = std::stoll(v); });
    settings.take("exact", [&](const std::string& v) { gnnd::detail::parse(v, c.exact); });
    settings.take("method", [&](const std::string& v) { c.method = gnnd::parse_append_method(v); });
    settings.end("gpu_bench");
    if (c.merge != 0 && c.append != 0) throw gnnd::InvalidArgument("gpu_bench: merge or append, not both");
    return c;
}

/// CUDA's versions, 13000 is 13.0.
std::string version_text(int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

using Queries = std::vector<std::int32_t>;

/// Random objects in [begin, end).
Queries draw(std::int64_t begin, std::int64_t end, int count) {
    std::mt19937 random(1);
    Queries objects(count);
    for (std::int32_t& object : objects) object = std::int32_t(begin + random() % (end - begin));
    return objects;
}

void run(const Data& data, int k, gnnd::Metric metric, int repeat, int queries, const std::vector<std::string>& texts) {
    const std::int64_t n = data.view.n;
    // Recall@10 is the one that tables tell; the first and the last of a row are measured beside it.
    const int at = std::min(k, 10);
    const auto neighbors_of = [&](const Queries& of) {
        return gnnd::exact_neighbors(data.view, of.data(), std::int64_t(of.size()), k, metric);
    };
    const Queries objects = draw(0, n, queries);
    const gnnd::KnnGraph truth = neighbors_of(objects);
    cudaDeviceProp properties;
    GNND_CUDA(cudaGetDeviceProperties(&properties, 0));
    int runtime = 0, driver = 0;
    GNND_CUDA(cudaRuntimeGetVersion(&runtime));
    GNND_CUDA(cudaDriverGetVersion(&driver));

    for (const std::string& text : texts) {
        const Configuration c = parse(text, k, metric);
        const Memory x(data.bytes.size(), c.where), ids(n * k * 4, c.where), distances(n * k * 4, c.where);
        GNND_CUDA(cudaMemcpy(x.as(), data.bytes.data(), data.bytes.size(), cudaMemcpyDefault));
        gnnd::VectorView view = data.view;
        view.data = x.as();
        const gnnd::VectorView sets[2] = {part_of(view, 0, c.first()), part_of(view, c.first(), n - c.first())};
        const Memory set_ids(c.first() != 0 ? n * k * 4 : 1, c.where),
            set_distances(c.first() != 0 ? n * k * 4 : 1, c.where);
        gnnd::KnnGraphView graphs[2];
        for (int set = 0; set < (c.merge != 0 ? 2 : c.append != 0 ? 1 : 0); ++set) {
            const std::int64_t before = set * c.first() * k;
            gnnd::BuildParams for_set = parse("iterations=4", k, metric).params;
            gnnd::build_into(sets[set], for_set, set_ids.as<std::int32_t>() + before,
                             set_distances.as<float>() + before);
            graphs[set] = {sets[set].n, k, metric, set_ids.as<std::int32_t>() + before,
                           set_distances.as<float>() + before};
        }
        gnnd::HeapResources heap;
        gnnd::CountedResources counted(heap);
        gnnd::BuildStats stats;
        std::vector<double> seconds;
        for (int round = 0; int(seconds.size()) < repeat; ++round) {
            const auto start = std::chrono::steady_clock::now();
            if (c.merge != 0)
                stats = gnnd::merge_into(sets[0], graphs[0], sets[1], graphs[1], c.params, ids.as<std::int32_t>(),
                                         distances.as<float>(), {}, &counted);
            else if (c.append != 0)
                stats = gnnd::append_into(sets[0], graphs[0], sets[1], c.params, ids.as<std::int32_t>(),
                                          distances.as<float>(), {}, &counted, c.method);
            else if (c.exact)
                stats =
                    gnnd::build_exact_into(view, c.params, ids.as<std::int32_t>(), distances.as<float>(), {}, &counted);
            else
                stats = gnnd::build_into(view, c.params, ids.as<std::int32_t>(), distances.as<float>(), {}, &counted);
            const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            if (round > 0 || took >= kLongBuild) seconds.push_back(took);
        }
        std::sort(seconds.begin(), seconds.end());
        std::vector<float> result(n * k);
        GNND_CUDA(cudaMemcpy(result.data(), distances.as(), result.size() * 4, cudaMemcpyDefault));
        const double sign = gnnd::is_similarity(metric) ? -1 : 1;
        const auto recall = [&](const Queries& of, const gnnd::KnnGraph& exact, int at) {
            std::int64_t hits = 0;
            for (std::size_t q = 0; q < of.size(); ++q) {
                // Sums of floats round differently here and there: 1e-6 apart counts as equal.
                const double last = sign * exact.distances_of(q)[at - 1], limit = last + 1e-6 * std::abs(last);
                for (int j = 0; j < at; ++j) hits += sign * result[std::int64_t(of[q]) * k + j] <= limit;
            }
            return double(hits) / (double(of.size()) * at);
        };
        json line = describe(data.name, data.view, metric, k, text);
        line["where"] = c.where;
        const std::string recall_name = "recall@" + std::to_string(at);
        for (const int nearest : {1, at, k})
            line["recall@" + std::to_string(nearest)] = recall(objects, truth, nearest);
        line["recall_objects"] = objects.size();
        double phi = 0;  // of the graph itself: the iterations' lists hold rounded distances
        for (const float distance : result)
            if (std::isfinite(distance)) phi += distance;
        line["phi_graph"] = phi;
        if (c.append != 0) {
            const Queries added = draw(c.append, n, queries), old = draw(0, c.append, queries);
            line[recall_name + " old"] = recall(old, neighbors_of(old), at);
            line[recall_name + " added"] = recall(added, neighbors_of(added), at);
        }
        line["seconds"] = seconds[seconds.size() / 2];
        line["seconds_least"] = seconds.front();
        line["seconds_most"] = seconds.back();
        line["iterations"] = int(stats.iterations.size()) - 1;
        if (stats.recall.objects != 0)
            line["measured"] = {{"recall", stats.recall.value},
                                {"low", stats.recall.low},
                                {"high", stats.recall.high},
                                {"objects", stats.recall.objects},
                                {"ms", stats.recall_seconds * 1e3}};
        line["stop"] = gnnd::name_of(stats.stop);
        line["codes"] = gnnd::name_of(stats.choices.codes);
        line["allocated_bytes"] = counted.peak();
        line["graph_bytes"] = n * k * 8;
        line["device"] = properties.name;
        line["cuda"] = version_text(runtime);
        line["driver_cuda"] = version_text(driver);
        line["commit"] = gnnd::benchs::commit();
        for (const auto& s : stats.iterations) {
            line["iteration_ms"].push_back(s.seconds * 1e3);
            line["phi"].push_back(s.phi);
            line["changed"].push_back(double(s.changed) / double(n));
            line["offered"].push_back(double(s.offered) / double(n));
            line["accepted"].push_back(double(s.accepted) / double(n));
            line["distances"].push_back(s.distances);
        }
        std::printf("%s\n", line.dump().c_str());
        std::fflush(stdout);
    }
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{
        "Times whole builds on a GPU; prints one JSON line each. A configuration is 'default' or a list of name=value: "
        "p, list, iterations, delta, seed, trees, init, update, locks, deterministic, memory, where (device, pinned or "
        "pageable), exact (all pairs are compared), merge (so many first rows and the others have graphs, whose merge "
        "is timed), append (so many first "
        "rows have a graph, and adding the others to it is timed), method (of append: auto, merge or search)."};
    std::string base, metric = "l2";
    std::int64_t rows = 0;
    int k = 64, repeat = 5, queries = 10000;
    bool keep = false, halves = false;
    std::vector<std::string> configurations{"default"};
    app.add_option("base", base, "vector file, manifold:N:D:M, hard:NAME:N[:D] or mix:FILE:N")->required();
    app.add_option("configurations", configurations, "what to build")->capture_default_str();
    app.add_option("--rows", rows, "use the first so many rows of the file; 0: all")->capture_default_str();
    app.add_flag("--halves", halves, "rounds the vectors, of float32, to float16");
    app.add_option("-k", k, "neighbours")->capture_default_str();
    app.add_option("--metric", metric, "metric")->capture_default_str();
    app.add_option("--repeat", repeat, "timed builds, after one that is not, unless it takes 10 s or more")
        ->capture_default_str();
    app.add_option("--queries", queries, "objects sampled for the recall")->capture_default_str();
    app.add_flag("--keep", keep, "the driver's pool keeps freed memory, as in a program that builds again and again");
    CLI11_PARSE(app, argc, argv);
    try {
        if (keep) {
            cudaMemPool_t pool;
            GNND_CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
            std::uint64_t threshold = ~std::uint64_t(0);
            GNND_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
        }
        Data data = load(base, rows);
        if (halves) round_to_halves(data);
        run(data, k, gnnd::parse_metric(metric), std::max(1, repeat), queries, configurations);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "gpu_bench: %s\n", error.what());
        return 1;
    }
}

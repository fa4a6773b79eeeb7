// SPDX-License-Identifier: MIT
// Graphs in shards, from a file of vectors to a folder, timed. Prints one JSON line per configuration: seconds (without
// starting the devices), Recall@10 against exact search, bytes moved, memory taken, and for each worker the seconds in
// builds and in merges and their share of the time.
//
//   sharded_bench base.u8bin -k 64 --work /tmp/work shards=10,memory=300000000 shards=10,host=2000000000
//   sharded_bench mix.u8bin --mix photosift1m.u8bin:10000000 -k 64 --work /tmp/work shards=10
//     (first writes 10,000,000 rows made from the file's to mix.u8bin, see generate.h, unless it is there)
//   sharded_bench photosift1m.u8bin --generated 1000000000:2 -k 10 --work /tmp/work shards=32,devices=2,checkpoint=inf
//     (a base that two GPUs make whenever it is read)
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "benchs/mixed_base.h"
#include "benchs/settings.h"
#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/detail/fold.h"
#include "gnnd/detail/process_memory.h"
#include "gnnd/detail/run.h"
#include "gnnd/error.h"
#include "gnnd/sharded.h"

namespace {

using nlohmann::json;

void write_mix(const std::string& path, const std::string& text) {
    constexpr std::int64_t kAtOnce = 2'000'000;
    const std::size_t colon = text.rfind(':');
    const gnnd::io::VectorFile base(text.substr(0, colon));
    const std::int64_t n = std::stoll(text.substr(colon + 1));
    gnnd::benchs::MixedBase mixed(base, n, {0});
    const gnnd::io::VectorReader reader = mixed.reader();
    gnnd::io::VectorWriter writer(path, n, base.d(), gnnd::DType::u8);
    std::vector<std::byte> rows(std::size_t(std::min(n, kAtOnce) * base.d()));
    for (std::int64_t begin = 0; begin < n; begin += kAtOnce) {
        const std::int64_t count = std::min(kAtOnce, n - begin);
        reader.read(begin, count, rows.data());
        writer.append(rows.data(), count);
    }
    writer.commit();
}

/// The most device memory in use while it lives, all processes together, looked at every 5 ms.
class DevicePeak {
  public:
    DevicePeak()
        : thread_([this] {
              while (!stop_) {
                  std::size_t free = 0, total = 0;
                  if (cudaMemGetInfo(&free, &total) == cudaSuccess) peak_ = std::max<std::size_t>(peak_, total - free);
                  std::this_thread::sleep_for(std::chrono::milliseconds(5));
              }
          }) {}
    ~DevicePeak() { end(); }
    std::size_t end() {
        stop_ = true;
        if (thread_.joinable()) thread_.join();
        return peak_;
    }

  private:
    std::atomic<std::size_t> peak_{0};
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

/// A device's context takes some tenths of a second.
void start_devices(const std::vector<gnnd::Device>& devices) {
    for (const gnnd::Device& device : devices) {
        GNND_CUDA(cudaSetDevice(device.index));
        GNND_CUDA(cudaFree(nullptr));
    }
    GNND_CUDA(cudaSetDevice(0));
    GNND_CUDA(cudaFree(nullptr));
}

/// So that vectors come from the disk, where the file is on one, though it may have been written just now.
void drop_from_memory(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY);
    if (file < 0 || fsync(file) != 0 || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) != 0)
        throw gnnd::IoError(path + ": cannot be dropped from memory");
    close(file);
}

/// The vectors of some objects, one after the other.
template <class Id>
std::vector<std::byte> rows_of(const gnnd::io::VectorReader& base, const std::vector<Id>& objects) {
    const std::size_t row = std::size_t(base.d()) * gnnd::size_of(base.dtype());
    std::vector<std::byte> rows(objects.size() * row);
    for (std::size_t i = 0; i < objects.size(); ++i) base.read(objects[i], 1, rows.data() + i * row);
    return rows;
}

/// Of some objects the distance of the at-th nearest other one, from one reading of the base, on the first GPU.
std::vector<float> exact_limits(const gnnd::io::VectorReader& base, const std::vector<std::int32_t>& objects, int at) {
    constexpr std::int64_t kRows = 4'000'000;
    gnnd::BuildParams params;
    params.device = {gnnd::Device::Kind::cuda, 0};
    gnnd::HeapResources heap;
    const auto count = std::int64_t(objects.size());
    const std::vector<std::byte> sample = rows_of(base, objects);
    gnnd::KnnGraph best(count, at, params.metric);
    std::fill_n(best.ids(), count * at, -1);
    std::fill_n(best.distances(), count * at, gnnd::worst_value(params.metric));
    std::vector<std::byte> rows(std::size_t(std::min(kRows, base.n()) * base.d()) * gnnd::size_of(base.dtype()));
    for (std::int64_t begin = 0; begin < base.n(); begin += kRows) {
        const std::int64_t part = std::min(kRows, base.n() - begin);
        base.read(begin, part, rows.data());
        std::vector<std::int32_t> numbers(objects);
        for (std::int32_t& number : numbers)
            number = number >= begin && number < begin + part ? number - std::int32_t(begin) : -1;
        const gnnd::KnnGraph near = gnnd::detail::nearest_of({rows.data(), part, base.d(), base.dtype(), 0},
                                                             {sample.data(), count, base.d(), base.dtype(), 0},
                                                             numbers.data(), at, params, {}, heap);
        gnnd::detail::fold(near, {0, std::int32_t(part), begin}, at, best.ids(), best.distances(), params.threads);
    }
    std::vector<float> limits;
    for (std::int64_t i = 0; i < count; ++i) limits.push_back(best.distances()[(i + 1) * at - 1]);
    return limits;
}

/// Entries whose distance is not that of the two rows, both uint8, or that are the object itself.
int wrong_entries(const gnnd::io::VectorReader& base, std::int32_t object, const std::vector<std::int64_t>& ids,
                  const std::vector<float>& distances) {
    std::vector<std::int64_t> objects(ids);
    objects.push_back(object);
    const std::vector<std::byte> rows = rows_of(base, objects);
    const auto count = std::int64_t(ids.size());
    std::vector<std::int32_t> entries(ids.size());
    std::iota(entries.begin(), entries.end(), 0);
    const std::vector<std::int32_t> of(ids.size(), std::int32_t(count));
    std::vector<float> right(ids.size());
    gnnd::pair_distances({rows.data(), count + 1, base.d(), base.dtype(), 0}, gnnd::Metric::L2, of.data(),
                         entries.data(), count, right.data());
    int wrong = 0;
    for (std::size_t j = 0; j < ids.size(); ++j) wrong += right[j] != distances[j] || ids[j] == object;
    return wrong;
}

/// \param path   the file that is the base
/// \param mixed  the base instead, made of that file; null: none
void run(const std::string& path, gnnd::benchs::MixedBase* mixed, int k, const std::string& work, int queries,
         const std::vector<std::string>& texts) {
    const auto reader_of = [mixed](const gnnd::io::VectorFile& file) {
        return mixed != nullptr ? mixed->reader() : gnnd::io::VectorReader(file);
    };
    const std::int64_t n = reader_of(gnnd::io::VectorFile(path)).n();
    std::mt19937_64 random(1);
    std::vector<std::int32_t> objects(queries);
    for (std::int32_t& object : objects) object = std::int32_t(random() % std::uint64_t(n));
    const int at = std::min(k, 10);
    cudaDeviceProp properties;
    GNND_CUDA(cudaGetDeviceProperties(&properties, 0));
    std::vector<json> lines;
    for (const std::string& text : texts) {
        gnnd::BuildParams params;
        params.k = k;
        params.device = {gnnd::Device::Kind::cuda, 0};
        gnnd::ShardParams shards;
        shards.work = work;
        gnnd::benchs::Settings settings(text);
        settings.take(params);
        settings.take("memory", [&](const std::string& v) { params.device_memory = std::stoll(v); });
        settings.take("shards", [&](const std::string& v) { shards.shards = std::stoi(v); });
        settings.take("host", [&](const std::string& v) { shards.host_memory = std::stoll(v); });
        settings.take("workers", [&](const std::string& v) { shards.workers = std::stoi(v); });
        settings.take("checkpoint", [&](const std::string& v) { shards.checkpoint_seconds = std::stod(v); });
        settings.take("devices", [&](const std::string& v) {
            for (int i = 0; i < std::stoi(v); ++i) shards.devices.push_back({gnnd::Device::Kind::cuda, i});
        });
        settings.end("sharded_bench");
        std::filesystem::remove_all(work);
        start_devices(shards.devices);
        drop_from_memory(path);
        const gnnd::io::VectorFile file(path);
        const gnnd::io::VectorReader base = reader_of(file);
        DevicePeak peak;
        const auto start = std::chrono::steady_clock::now();
        const gnnd::ShardedStats stats = gnnd::build_sharded(base, params, shards);
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        json line = gnnd::benchs::describe(path, {nullptr, n, base.d(), base.dtype(), 0}, params.metric, k, text);
        line["generated"] = mixed != nullptr;
        line["seconds"] = seconds.count();
        double building = 0, merging = 0;
        for (const gnnd::WorkerProgress& worker : stats.progress.workers) {
            line["busy"].push_back((worker.build_seconds + worker.merge_seconds) / seconds.count());
            line["build_seconds"].push_back(worker.build_seconds);
            line["merge_seconds"].push_back(worker.merge_seconds);
            building += worker.build_seconds;
            merging += worker.merge_seconds;
        }
        // For sharded_plan: every shard is built once, and in every pair but its own.
        line["shards"] = stats.shards;
        line["build_seconds_per_million"] = building / double(n) * 1e6;
        if (stats.shards > 1) line["merge_seconds_per_million"] = merging / (double(n) * (stats.shards - 1)) * 1e6;
        if (stats.recall.objects != 0)
            line["measured"] = {{"recall", stats.recall.value},
                                {"low", stats.recall.low},
                                {"high", stats.recall.high},
                                {"objects", stats.recall.objects},
                                {"seconds", stats.recall_seconds}};
        line["read_bytes"] = stats.progress.bytes_read;
        line["written_bytes"] = stats.progress.bytes_written;
        line["host_bytes"] = stats.peak_host_bytes;
        line["work_bytes"] = stats.peak_work_bytes;
        line["device_bytes"] = peak.end();
        line["process_bytes"] = gnnd::detail::process_memory("VmHWM");
        line["device"] = properties.name;

        const gnnd::ShardedGraph graph(work);
        std::vector<std::int64_t> ids(k);
        std::vector<float> distances(k), found(std::size_t(queries) * at);
        int wrong = 0;
        for (int q = 0; q < queries; ++q) {
            graph.read(objects[q], 1, ids.data(), distances.data());
            if (base.dtype() == gnnd::DType::u8) wrong += wrong_entries(base, objects[q], ids, distances);
            std::copy_n(distances.data(), at, found.data() + std::size_t(q) * at);
        }
        line["wrong_distances"] = wrong;
        std::fprintf(stderr, "%s\n", line.dump().c_str());  // in case that nothing below comes to its end
        line["found"] = found;
        lines.push_back(std::move(line));
    }
    // At the end, since it takes long and touches the whole base.
    const gnnd::io::VectorFile file(path);
    const std::vector<float> limits = exact_limits(reader_of(file), objects, at);
    for (json& line : lines) {
        std::int64_t hits = 0;
        for (int q = 0; q < queries; ++q)
            for (int j = 0; j < at; ++j)
                hits += line["found"][std::size_t(q) * at + j].get<float>() <= limits[std::size_t(q)];
        line.erase("found");
        line["recall@" + std::to_string(at)] = double(hits) / (double(queries) * at);
        std::printf("%s\n", line.dump().c_str());
    }
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{
        "Builds graphs in shards under l2 and prints one JSON line each. A configuration is a list of name=value: "
        "shards, "
        "memory (of the device, bytes), host (bytes), workers, devices, checkpoint (seconds), p, list, iterations, "
        "delta, "
        "seed, trees, init, update."};
    std::string base, work, mix, generated;
    int k = 64, queries = 2000;
    std::vector<std::string> configurations{"shards=4"};
    app.add_option("base", base, "vector file")->required();
    app.add_option(
        "--generated", generated,
        "N or N:GPUS: base are N rows made from the file's by so many GPUs, whenever they are read, and held "
        "nowhere");
    app.add_option("configurations", configurations, "what to build")->capture_default_str();
    app.add_option("--mix", mix, "FILE:N: write N rows made from the file's to base first, unless it is there");
    app.add_option("--work", work, "folder to build in; emptied first")->required();
    app.add_option("-k", k, "neighbours")->capture_default_str();
    app.add_option("--queries", queries, "objects sampled for the recall")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    try {
        if (!mix.empty() && !std::filesystem::exists(base)) write_mix(base, mix);
        if (generated.empty()) {
            run(base, nullptr, k, work, queries, configurations);
        } else {
            const std::size_t colon = generated.find(':');
            std::vector<int> gpus(colon == std::string::npos ? 1 : std::stoul(generated.substr(colon + 1)));
            std::iota(gpus.begin(), gpus.end(), 0);
            gnnd::benchs::MixedBase mixed(gnnd::io::VectorFile(base), std::stoll(generated), gpus);
            run(base, &mixed, k, work, queries, configurations);
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "sharded_bench: %s\n", error.what());
        return 1;
    }
}

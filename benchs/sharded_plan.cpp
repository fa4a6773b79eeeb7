// SPDX-License-Identifier: MIT
// Predicts what a graph in shards will take: time, and bytes on the disk, the bus and the device. Goes
// through the tasks in their order with the contents of device and host memory, as a GPU's executor and the store keep
// them, and with rates measured on the machine (sharded_bench prints them). One line for each number of shards.
//
//   sharded_plan --n 1000000000 -k 32 --shards 40,64 --host 500
//   sharded_plan --n 10000000000 --shards 256 --near 2.5 --workers 8 --price 4
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "benchs/simulated_worker.h"
#include "gnnd/dtype.h"
#include "gnnd/error.h"
#include "gnnd/shards/folder.h"
#include "gnnd/shards/ids.h"

namespace {

using namespace gnnd::benchs;

/// Sums of all workers, GB.
struct Sums {
    double busy = 0, read = 0, written = 0, copied = 0;
};

void print_row(const Manifest& manifest, const Machine& machine, std::size_t merges, int slots, double seconds,
               const Sums& sums, double host, double device) {
    const double hours = seconds / 3600, requests = (sums.read + sums.written) * 1e9 / machine.request;
    std::printf("| %d | %zu | %d | %.1f | %.2f | %.0f%% | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.4f |\n",
                manifest.count(), merges, slots, seconds, hours, 100 * sums.busy / seconds, sums.read, sums.written,
                sums.copied, double(gnnd::shards::disk_need(manifest, machine.workers)) * 1e-9, host, device,
                requests * 1e-3, hours * machine.workers * machine.price / (double(manifest.base.n) * 1e-6));
    std::fflush(stdout);
}

/// The merges of the plan `near`, of each shard so many times log2(shards), with those that come next in the order;
/// where that is 0 those of all pairs.
std::vector<Task> merges_of(const Manifest& manifest, double near) {
    const int shards = manifest.count();
    const auto pairs = std::size_t(manifest.pairs());
    const auto count =
        near > 0 ? std::min(pairs, std::size_t(std::llround(near * std::log2(shards) * shards / 2))) : pairs;
    std::vector<Task> merges;
    for (int apart = 1; apart < shards; ++apart)
        for (int a = 0; a + apart < shards && merges.size() < count; ++a)
            merges.push_back({Task::Kind::merge, a, a + apart});
    return merges;
}

/// As the plans carry out their tasks: of near pairs all shards are built before any are merged.
gnnd::shards::Schedule schedule_of(const Manifest& manifest, const Machine& machine, const std::vector<Task>& merges) {
    const int shards = manifest.count(), workers = machine.workers;
    if (machine.near <= 0) return gnnd::shards::make_schedule(shards, workers);
    gnnd::shards::Schedule schedule = gnnd::shards::make_builds(shards, workers);
    gnnd::shards::Schedule merging = gnnd::shards::make_merges(shards, workers, merges);
    for (auto& round : merging.rounds) {
        for (auto& tasks : round) std::erase_if(tasks, [](const Task& task) { return task.kind == Task::Kind::build; });
        schedule.rounds.push_back(std::move(round));
    }
    return schedule;
}

/// The passes that put the base into order and results back: vectors are read twice and written once, lists read and
/// written once. \return seconds
double pass_through(const Machine& machine, const Manifest& manifest, Sums& sums) {
    const double millions = double(manifest.base.n) * 1e-6, order = millions * 4e-3;
    const double vectors = millions * double(manifest.base.d) * double(size_of(manifest.base.dtype)) * 1e-3;
    const double lists = millions * manifest.params.k * double(manifest.list_entry_bytes()) * 1e-3;
    const double read = 2 * vectors + lists + order, written = vectors + lists + order;
    sums.read += read;
    sums.written += written;
    return read / machine.read + written / machine.write + millions * machine.order;
}

/// From the disk to the device and back, one after the other.
void print_one(const Machine& machine, const Manifest& manifest) {
    const double millions = double(manifest.base.n) * 1e-6,
                 lists = millions * manifest.params.k * double(manifest.list_entry_bytes()) * 1e-3;
    const double vectors = millions * double(manifest.base.d) * double(size_of(manifest.base.dtype)) * 1e-3;
    const double busy = millions * machine.build + vectors / machine.to_device + lists / machine.from_device;
    const double device = vectors + lists + millions * 1e6 * machine.work;
    if (device > machine.device)
        std::printf("| 1 | does not fit the device |\n");
    else
        print_row(manifest, machine, 0, 0, busy + vectors / machine.read + lists / machine.write,
                  {busy, vectors, lists, vectors + lists}, vectors + lists, device);
}

void print(const Machine& machine, const Manifest& manifest) {
    if (manifest.count() == 1) return print_one(machine, manifest);
    const std::vector<Task> merges = merges_of(manifest, machine.near);
    const gnnd::shards::Schedule schedule = schedule_of(manifest, machine, merges);
    Host host{Memory(machine.host), {}, {}};
    std::vector<Worker> workers(machine.workers, Worker(machine, manifest, host));
    if (workers[0].slots < std::min(3, manifest.count())) {
        std::printf("| %d | does not fit the device |\n", manifest.count());
        return;
    }
    double seconds = 0;
    std::map<int, int> left;  // tasks of a shard: it is through when no later round uses it
    for (const Task& task : schedule.tasks())
        for (const int shard : std::set{task.first, task.second}) ++left[shard];
    for (std::size_t round = 0; round < schedule.rounds.size(); ++round) {
        const bool last = round + 1 == schedule.rounds.size();
        for (std::size_t w = 0; w < workers.size(); ++w) {
            workers[w].left = left;
            workers[w].wait_until(seconds);
            const Task* following =
                last || schedule.rounds[round + 1][w].empty() ? nullptr : &schedule.rounds[round + 1][w][0];
            if (following != nullptr && following->kind != Task::Kind::build) following = nullptr;
            workers[w].run(schedule.rounds[round][w], following, last);
        }
        for (const auto& tasks : schedule.rounds[round])
            for (const Task& task : tasks)
                for (const int shard : std::set{task.first, task.second}) --left[shard];
        for (const Worker& worker : workers) seconds = std::max(seconds, worker.end(last));
    }
    Sums sums;
    for (const Worker& worker : workers) {
        sums.busy += worker.busy / double(workers.size());
        sums.read += worker.read;
        sums.written += worker.written;
        sums.copied += worker.copied;
    }
    if (machine.near > 0) seconds += pass_through(machine, manifest, sums);
    print_row(manifest, machine, merges.size(), workers[0].slots, seconds, sums, host.memory.most,
              workers[0].device_bytes());
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{
        "Predicts what graphs in shards take on a GPU, from measured rates. GB are 10^9 bytes; device memory is each "
        "worker's, all other figures are of all workers."};
    app.get_formatter()->column_width(36);
    Machine machine;
    Manifest manifest;
    manifest.base.n = 1'000'000'000;
    manifest.base.d = 128;
    manifest.params.k = 32;
    manifest.base.dtype = gnnd::DType::u8;
    std::map<std::string, gnnd::DType> dtypes;
    for (const gnnd::DType dtype : {gnnd::DType::f32, gnnd::DType::f16, gnnd::DType::u8, gnnd::DType::i8})
        dtypes.emplace(name_of(dtype), dtype);
    std::vector<int> shards{32};
    const auto add = [&](const char* name, auto& value, const char* help) {
        app.add_option(name, value, help)->capture_default_str();
    };
    add("--n", manifest.base.n, "vectors");
    add("-d", manifest.base.d, "components");
    app.add_option("--dtype", manifest.base.dtype, "of the components")
        ->transform(CLI::CheckedTransformer(dtypes))
        ->default_str(std::string(name_of(manifest.base.dtype)));
    add("-k", manifest.params.k, "neighbours");
    app.add_option("--shards", shards, "numbers of shards to compare")->delimiter(',')->capture_default_str();
    add("--workers", machine.workers, "GPUs");
    add("--device", machine.device, "device memory of each, GB");
    add("--host", machine.host, "host memory for shards, GB");
    add("--work", machine.work, "device memory that a merge works in, GB per object");
    add("--checkpoint", machine.checkpoint, "seconds between checkpoints");
    add("--build", machine.build, "seconds to build the graph of 1,000,000 objects");
    add("--merge", machine.merge, "seconds to merge two graphs of 1,000,000 objects together");
    add("--read", machine.read, "the disk's GB/s");
    add("--write", machine.write, "the disk's GB/s");
    add("--to-device", machine.to_device, "GB/s from host memory");
    add("--from-device", machine.from_device, "GB/s to host memory");
    add("--between", machine.between, "GB/s from one device to another, where all shards fit each");
    add("--near", machine.near,
        "merges of a shard, in log2(shards), of the plan near (near_pairs counts them); 0: all");
    add("--order", machine.order, "seconds to put 1,000,000 objects into order, beside reading and writing");
    add("--request", machine.request, "bytes that a request to the storage moves");
    add("--price", machine.price, "of an hour of a GPU");
    CLI11_PARSE(app, argc, argv);
    if (machine.near > 0) manifest.plan = gnnd::MergePlan::near;
    manifest.id_bytes = gnnd::shards::id_bytes_for(manifest.base.n);
    try {
        std::printf(
            "| shards | merges | on the device | seconds | hours | GPU | GB read | written | copied | disk | host | "
            "device | 1000 requests | cost per 1,000,000 "
            "|\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
        for (const int count : shards) {
            manifest.shards.assign(std::size_t(std::max(0, count)), {});
            print(machine, manifest);
        }
    } catch (const gnnd::Error& error) {
        std::fprintf(stderr, "sharded_plan: %s\n", error.what());
        return 1;
    }
}

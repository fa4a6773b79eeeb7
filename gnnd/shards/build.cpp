// SPDX-License-Identifier: MIT
#include "gnnd/shards/build.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "gnnd/cpu/backend.h"
#include "gnnd/cpu/parallel.h"
#include "gnnd/detail/checks.h"
#include "gnnd/detail/params_table.h"
#include "gnnd/detail/recall.h"
#include "gnnd/detail/resolve.h"
#include "gnnd/names.h"
#include "gnnd/shards/borders.h"
#include "gnnd/shards/host_memory.h"
#include "gnnd/shards/near.h"
#include "gnnd/shards/order.h"
#include "gnnd/shards/recall_sample.h"
#include "gnnd/shards/restore.h"
#include "gnnd/shards/runner.h"

namespace gnnd {
namespace {

using namespace shards;

constexpr NameTable<MergePlan, std::size(kMergePlans)> kMergePlanNames{
    "plan", {{{MergePlan::all, "all"}, {MergePlan::near, "near"}}}};

/// Memory in which the CPU works on so many objects: those of a pair of shards, or of the only one.
std::uint64_t cpu_work_bytes(const Manifest& manifest, std::int64_t rows, const BuildParams& params) {
    const bool pair = manifest.count() > 1;
    const VectorView all{nullptr, rows, manifest.base.d, manifest.base.dtype, 0};
    detail::Input input{{all}, {}};
    if (pair) {
        input.vectors[1] = all;
        input.vectors[1].n = rows / 2;
        input.vectors[0].n = rows - rows / 2;
    }
    const Choices choices = detail::resolve(params, input, {Device::Kind::cpu, 0});
    return cpu::plan(input, params, choices).work + (std::uint64_t(cpu::Team::resolve(params.threads)) << 20);
}

std::uint64_t host_bound(std::int64_t given) {
    return given > 0 ? std::uint64_t(given) : host_memory() / 4 * 3;
}

std::vector<Device> devices_of(const BuildParams& params, const ShardParams& given) {
    const std::vector<Device> devices = given.devices.empty() ? std::vector{params.device} : given.devices;
    std::vector<Device> workers(given.workers > 0 ? std::size_t(given.workers) : devices.size());
    for (std::size_t w = 0; w < workers.size(); ++w) workers[w] = devices[w % devices.size()];
    return workers;
}

Manifest manifest_for(const BaseRecord& base, const BuildParams& params, MergePlan plan, int shards) {
    Manifest manifest;
    manifest.plan = plan;
    manifest.base = base;
    manifest.params = params;
    manifest.shards.resize(std::size_t(shards));
    return manifest;
}

std::string manifest_path(const ShardParams& given) {
    return given.work + "/" + kManifestName;
}

/// What a call comes to, before anything is done.
struct Request {
    Manifest manifest;
    std::vector<Device> workers;
    BuildParams params;        ///< for each of the workers
    HostBudget need;           ///< of what is cached and pinned
    std::uint64_t work = 0;    ///< host memory of the builds and merges themselves
    std::int64_t objects = 0;  ///< on which the recall is measured; 0: it is not

    std::uint64_t sample() const { return objects != 0 ? RecallSample::bytes(manifest, objects) : 0; }
    std::uint64_t host_budget() const {
        return std::max(need.least + work + sample(), manifest.is_ordered() ? order_bytes(manifest) : 0);
    }
};

/// Objects on which the recall is measured where only CPUs work: their interval is about +-0.003 near 0.99, and what
/// comparing them takes is little beside the builds (benchs/NOTEBOOK.md).
constexpr std::int64_t kCpuObjects = 1024;

Request make_request(const BaseRecord& base, const BuildParams& params, const ShardParams& given, int shards) {
    Request request;
    request.manifest = manifest_for(base, params, given.plan, shards);
    int on_cpu = 0;
    for (const Device& device : devices_of(params, given)) {
        request.workers.push_back(detail::choose(device));
        on_cpu += request.workers.back().kind == Device::Kind::cpu;
    }
    request.params = params;
    if (params.threads == 0 && on_cpu > 1) request.params.threads = std::max(1, cpu::Team::resolve(0) / on_cpu);
    request.need = host_budget(request.manifest, int(request.workers.size()));
    const std::int64_t rows = std::min<std::int64_t>(base.n, 2 * request.manifest.most_rows());
    request.work = std::uint64_t(on_cpu) * cpu_work_bytes(request.manifest, rows, request.params);
    if (params.recall > 0 && params.recall < 1)
        request.objects = on_cpu == int(request.workers.size()) ? kCpuObjects : detail::kRecallObjects;
    return request;
}

bool fits(const Request& request, const ShardParams& given) {
    if (request.host_budget() > host_bound(given.host_memory)) return false;
    return std::all_of(request.workers.begin(), request.workers.end(), [&](const Device& device) {
        BuildParams params = request.params;
        params.device = device;
        const int sharing = int(std::count(request.workers.begin(), request.workers.end(), device));
        return has_room(request.manifest, params, {sharing, sharing, true});
    });
}

void check(const io::VectorReader& base, const BuildParams& params, const ShardParams& given) {
    given.validate();
    params.validate();
    if (given.plan == MergePlan::near && !(params.recall > 0 && params.recall < 1))
        throw InvalidArgument(
            "ShardParams::plan = near, which needs a BuildParams::recall of more than 0 and less "
            "than 1 to end with; it is " +
            detail::text_of(params.recall));
    if (given.shards > base.n())
        throw InvalidArgument("ShardParams::shards = " + std::to_string(given.shards) + ", " + base.name() +
                              " has only " + std::to_string(base.n()) + " vectors");
    detail::check_shape({&base, base.n(), base.d(), base.dtype(), 0});
}

bool goes_on(const ShardParams& given) {
    return given.resume && std::filesystem::exists(manifest_path(given));
}

int shards_to_go_on_with(const ShardParams& given) {
    return given.shards != 0 ? given.shards : Manifest::read(manifest_path(given)).count();
}

Request make_request(const BaseRecord& base, const BuildParams& params, const ShardParams& given) {
    if (goes_on(given)) return make_request(base, params, given, shards_to_go_on_with(given));
    if (given.shards != 0) return make_request(base, params, given, given.shards);
    const int most = int(std::min<std::int64_t>(kMaxShards, base.n));
    for (int shards = 1; shards <= most; ++shards)
        if (Request request = make_request(base, params, given, shards); fits(request, given)) return request;
    throw Error("no number of shards up to " + std::to_string(most) + " fits the memory that is allowed or free");
}

/// Of a folder in which nothing is left to do.
ShardProgress progress_of_finished(const Manifest& manifest, const std::vector<Device>& devices) {
    ShardProgress progress;
    progress.tasks = progress.tasks_done = manifest.count() + manifest.merged_pairs();
    for (const Device& device : devices) progress.workers.emplace_back().device = device;
    return progress;
}

/// Of the whole graph, whose lists are in the folder.
RecallEstimate recall_of(const Folder& folder, RecallSample* sample) {
    const Manifest manifest = folder.manifest();
    if (manifest.params.recall == 1) return {1, 1, 1, detail::recall_at_of(manifest.params), manifest.base.n};
    if (sample == nullptr) return {};
    for (int shard = 0; shard < manifest.count(); ++shard)
        if (!sample->has_lists_of(shard)) sample->read_lists(shard, folder.open_lists(shard));
    return sample->estimate();
}

StopReason stop_of(const Manifest& manifest) {
    if (manifest.recall.objects == 0) return StopReason::converged;
    if (manifest.params.recall == 1) return StopReason::exact;
    return manifest.recall.value >= manifest.params.recall ? StopReason::recall : StopReason::recall_missed;
}

/// Puts the base into the order of the shards, unless that has been done.
void put_in_order(Folder& folder, const io::VectorReader& base, const Request& request,
                  const ShardCallbacks& callbacks) {
    if (folder.manifest().order) return;
    order_base(base, request.manifest, request.params, folder.vectors_path(), folder.order_path(), callbacks.interrupt);
    folder.note_order();
}

/// Builds and merges what is left.
/// \param base  in the order of the shards
RecallEstimate build_and_merge(Runner& runner, Store& store, Folder& folder, const Request& request,
                               const std::optional<PairCounts>& borders) {
    const int workers = int(request.workers.size());
    const auto measure = [&] { return recall_of(folder, store.recall()); };
    if (borders) return merge_near(runner, store, *borders, workers, measure);
    runner.run(make_schedule(request.manifest.count(), workers), true);
    runner.measure_rest();
    store.flush_lists();
    return measure();
}

/// Carries out what is left to do in the folder until all lists are there.
/// \param base  in the order of the shards
ShardedStats fill(Folder& folder, const io::VectorReader& base, const Request& request, const ShardParams& given,
                  const ShardCallbacks& callbacks, const ExecutorFactory& make_executor) {
    const std::uint64_t cached = host_bound(given.host_memory) - request.work - request.sample();
    std::optional<RecallSample> sample;
    if (request.objects != 0) sample.emplace(base, request.manifest, request.objects, request.params.threads);
    RecallSample* const recall = sample ? &*sample : nullptr;
    std::optional<PairCounts> borders;
    if (request.manifest.is_ordered()) {  // first: the workers take the devices' memory
        BuildParams own = request.params;
        own.device = request.workers[0];
        Callbacks hooks;
        hooks.interrupt = callbacks.interrupt;
        borders = find_borders(base, request.manifest, own, hooks);
    }
    Store store(base, folder, cached, request.params.threads, detail::or_heap(nullptr), recall);
    BuildParams params = request.params;
    if (borders) params.recall = recall_of_builds(params.recall);
    Runner runner(store, params, request.workers, cached >= request.need.overlapped, given.checkpoint_seconds,
                  make_executor, callbacks);
    ShardedStats stats;
    try {
        stats.recall = build_and_merge(runner, store, folder, request, borders);
    } catch (const Interrupted&) {
        runner.deliver();
        store.flush();
        throw;
    } catch (...) {
        runner.deliver_what_can_be();
        throw;
    }
    if (recall != nullptr) stats.recall_seconds = recall->seconds();
    stats.progress = runner.progress();
    stats.peak_host_bytes = store.peak_host_bytes();
    stats.peak_work_bytes = runner.peak_work_bytes();
    return stats;
}

void require_unchanged(const io::VectorReader& base, const BaseRecord& before) {
    const std::string difference = before.difference(BaseRecord::of(base));
    if (!difference.empty())
        throw IoError(base.name() + ": changed while the graph was built: " + difference +
                      "; build it in another folder");
}

/// Carries out what is left to do in the folder.
ShardedStats finish(Folder& folder, const io::VectorReader& base, const Request& request, const ShardParams& given,
                    const ShardCallbacks& callbacks, const ExecutorFactory& make_executor) {
    if (!request.manifest.is_ordered()) {
        const ShardedStats stats = fill(folder, base, request, given, callbacks, make_executor);
        require_unchanged(base, request.manifest.base);
        folder.complete(stats.recall);
        return stats;
    }
    ShardedStats stats;
    stats.progress = progress_of_finished(folder.manifest(), request.workers);
    if (!folder.manifest().merges_are_through()) {
        put_in_order(folder, base, request, callbacks);
        stats = fill(folder, folder.open_vectors(), request, given, callbacks, make_executor);
        require_unchanged(base, request.manifest.base);
        folder.end_merges(stats.recall);
    }
    restore(folder, request.params.threads, callbacks.interrupt);
    folder.complete(folder.manifest().recall);
    return stats;
}

}  // namespace

std::string_view name_of(MergePlan plan) {
    return kMergePlanNames.name_of(plan);
}

MergePlan parse_merge_plan(std::string_view name) {
    return kMergePlanNames.parse(name);
}

void ShardParams::validate() const {
    const auto check = [](const char* field, auto value, auto low, auto high) {
        detail::check_range("ShardParams", field, value, low, high);
    };
    check("shards (0: as few as fit)", shards, 0, kMaxShards);
    check("workers (0: one per device)", workers, 0, kMaxWorkers);
    check("devices.size()", devices.size(), std::size_t(0), std::size_t(kMaxWorkers));
    check("host_memory (0: chosen)", host_memory, std::int64_t(0), std::int64_t(1) << 60);
    check("checkpoint_seconds", checkpoint_seconds, 0.0, 1e9);
    if (work.empty()) throw InvalidArgument("ShardParams::work is empty; it must name a folder");
}

ShardedPlan plan_sharded(const io::VectorReader& base, const BuildParams& params, const ShardParams& shards) {
    check(base, params, shards);
    const Request request = make_request(BaseRecord::of(base), params, shards);
    const int workers = int(request.workers.size());
    ShardedPlan plan;
    plan.builds = request.manifest.count();
    plan.merges = request.manifest.pairs();
    plan.disk = disk_need(request.manifest, workers);
    plan.work = request.work;
    plan.sample = request.sample();
    plan.host = request.host_budget();
    plan.host_overlapped = request.need.overlapped + request.work + request.sample();
    return plan;
}

ShardedStats build_sharded(const io::VectorReader& base, const BuildParams& params, const ShardParams& shards,
                           const ShardCallbacks& callbacks) {
    return shards::build_with(base, params, shards, callbacks, make_executor);
}

ShardedStats shards::build_with(const io::VectorReader& base, const BuildParams& params, const ShardParams& given,
                                const ShardCallbacks& callbacks, const ExecutorFactory& make_executor) {
    check(base, params, given);
    const BaseRecord record = BaseRecord::of(base);
    const std::vector<Device> devices = devices_of(params, given);
    std::optional<Folder> folder;
    // First of all: what is finished takes neither devices nor memory.
    if (goes_on(given))
        folder.emplace(given.work, manifest_for(record, params, given.plan, shards_to_go_on_with(given)), true,
                       int(devices.size()));
    ShardedStats stats;
    if (folder && folder->manifest().complete) {
        stats.progress = progress_of_finished(folder->manifest(), devices);
    } else {
        const Request request = make_request(record, params, given);
        const std::uint64_t bound = host_bound(given.host_memory);
        if (bound < request.host_budget())
            throw Error("host memory: " + std::to_string(request.host_budget()) + " bytes are needed for " +
                        std::to_string(request.manifest.count()) + " shards, allowed are " + std::to_string(bound) +
                        "; more shards need less");
        if (!folder) folder.emplace(given.work, request.manifest, given.resume, int(devices.size()));
        stats = finish(*folder, base, request, given, callbacks, make_executor);
    }
    stats.progress.seconds_left = 0;
    if (callbacks.progress) callbacks.progress(stats.progress);
    const Manifest manifest = folder->manifest();
    stats.shards = manifest.count();
    stats.merges = manifest.merged_pairs();
    stats.seconds = manifest.seconds;
    stats.samples = manifest.samples;
    stats.stop = stop_of(manifest);
    stats.recall = manifest.recall;
    for (const ShardRecord& shard : manifest.shards) stats.written_bytes += shard.lists->bytes;
    return stats;
}

}  // namespace gnnd

// SPDX-License-Identifier: MIT
#include "gnnd/shards/build.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "gnnd/detail/checks.h"
#include "gnnd/detail/recall.h"
#include "gnnd/detail/resolve.h"
#include "gnnd/shards/borders.h"
#include "gnnd/shards/near.h"
#include "gnnd/shards/order.h"
#include "gnnd/shards/recall_sample.h"
#include "gnnd/shards/request.h"
#include "gnnd/shards/restore.h"
#include "gnnd/shards/runner.h"

namespace gnnd {
namespace {

using namespace shards;

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

ShardedStats build_sharded(const io::VectorReader& base, const BuildParams& params, const ShardParams& shards,
                           const ShardCallbacks& callbacks) {
    return shards::build_with(base, params, shards, callbacks, make_executor);
}

ShardedStats shards::build_with(const io::VectorReader& base, const BuildParams& params, const ShardParams& asked,
                                const ShardCallbacks& callbacks, const ExecutorFactory& make_executor) {
    check(base, params, asked);
    const BaseRecord record = BaseRecord::of(base);
    const ShardParams given = settled(record, asked);
    const std::vector<Device> devices = devices_of(params, given);
    std::optional<Folder> folder;
    // First of all: what is finished takes neither devices nor memory.
    const auto open = [&](const Manifest& wanted, bool resume) {
        folder.emplace(given.work, wanted, resume, int(devices.size()), has_checkpoints(given));
    };
    if (goes_on(given)) open(manifest_for(record, params, given), true);
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
        if (!folder) open(request.manifest, given.resume);
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

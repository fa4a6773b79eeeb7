// SPDX-License-Identifier: MIT
#include "gnnd/shards/cuda/executor.h"

#include <optional>
#include <utility>
#include <vector>

#include "gnnd/cuda/memory/memory.h"
#include "gnnd/cuda/memory/piece.h"
#include "gnnd/detail/run.h"
#include "gnnd/error.h"
#include "gnnd/shards/background.h"
#include "gnnd/shards/cuda/held_shards.h"
#include "gnnd/shards/cuda/room.h"

namespace gnnd::cuda {
namespace {

using shards::Task;

class DeviceExecutor final : public shards::Executor {
  public:
    using Pin = HeldShards::Pin;

    DeviceExecutor(shards::Store& store, const BuildParams& params, const ShardSizes& sizes, const Room& room)
        : store_(store),
          params_(params),
          sizes_(sizes),
          memory_(std::in_place, heap_, 2 * sizes.result + room.work + std::size_t(room.slots) * sizes.shard(),
                  nullptr),
          work_(memory_->data() + 2 * sizes.result, room.work, params.device_memory != 0, heap_),
          held_(store, params.device, sizes, memory_->data() + 2 * sizes.result + room.work, room.slots) {
        GNND_CUDA(cudaStreamSynchronize(nullptr));  // other streams use the memory
        params_.device_memory = 0;
    }

    ~DeviceExecutor() override {
        try {
            const UseDevice device(params_.device.index);
            memory_.reset();
        } catch (const DeviceError&) {  // then the device is gone, and its memory with it
        }
    }
    DeviceExecutor(const DeviceExecutor&) = delete;
    DeviceExecutor& operator=(const DeviceExecutor&) = delete;

    void meet(const std::vector<shards::Executor*>& all) override {
        std::vector<HeldShards*> peers;
        for (shards::Executor* one : all) {
            auto* executor = dynamic_cast<DeviceExecutor*>(one);
            if (executor == nullptr || !executor->held_.keeps_all()) return;
            if (executor != this) peers.push_back(&executor->held_);
        }
        held_.meet(std::move(peers));
    }

    BuildStats build(int shard, const Callbacks& callbacks) override {
        const UseDevice device(params_.device.index);
        const OwnedStream stream(heap_);
        const Pin slot = held_.pin(shard);
        held_.bring_vectors(shard, slot, stream);
        const DeviceGraph built = result(store_.rows(shard));
        const BuildStats stats = run({{held_.vectors(shard, slot)}, {}}, params_, built, callbacks);
        held_.put_build(shard, slot, built, stream);
        compare(shard, slot, callbacks);
        return stats;
    }

    BuildStats merge(const Task& pair, const Callbacks& callbacks) override {
        const UseDevice device(params_.device.index);
        const OwnedStream stream(heap_);
        const Pin first = held_.pin(pair.first), second = held_.pin(pair.second);
        bring_inputs(pair.first, first, stream);
        bring_inputs(pair.second, second, stream);
        shards::Background bringing;
        bringing.start(shards::counted([&] {  // only folding needs them
            const UseDevice device(params_.device.index);
            const OwnedStream stream(heap_);
            held_.bring_lists(pair.first, first, stream);
            held_.bring_lists(pair.second, second, stream);
        }));
        const std::int64_t n1 = store_.rows(pair.first), n2 = store_.rows(pair.second);
        const DeviceGraph found = result(n1 + n2);
        detail::Input both{{held_.vectors(pair.first, first), held_.vectors(pair.second, second)},
                           {view_of(held_.local(pair.first, first)), view_of(held_.local(pair.second, second))}};
        both.across = true;  // the shards' own lists have seen what is inside of each
        const BuildStats stats = run(both, merge_params(params_), found, callbacks);
        compare(pair.first, first, callbacks);
        compare(pair.second, second, callbacks);
        bringing.wait();
        DeviceGraph half = found;
        half.n = n1;
        held_.fold_into(pair.first, pair.second, first, half, std::int32_t(n1), stream);
        half = {found.ids + n1 * found.k, found.distances + n1 * found.k, n2, found.k, found.metric};
        held_.fold_into(pair.second, pair.first, second, half, 0, stream);
        GNND_CUDA(cudaStreamSynchronize(stream));
        return stats;
    }

    std::shared_ptr<const void> prepare(const Task& present, const Task& next) override {
        const UseDevice device(params_.device.index);
        const OwnedStream stream(heap_);
        for (const int shard : {next.first, next.second}) {
            if (present.uses(shard)) continue;
            Pin slot = held_.pin(shard);
            if (next.kind == Task::Kind::merge) {
                bring_inputs(shard, slot, stream);
                held_.bring_lists(shard, slot, stream);
            } else {
                held_.bring_vectors(shard, slot, stream);
            }
            return std::make_shared<const Pin>(std::move(slot));
        }
        return nullptr;
    }

    void measure(int shard, const Callbacks& callbacks) override {
        const UseDevice device(params_.device.index);
        const OwnedStream stream(heap_);
        const Pin slot = held_.pin(shard);
        held_.bring_vectors(shard, slot, stream);
        compare(shard, slot, callbacks);
    }

    void deliver(int finished) override {
        const UseDevice device(params_.device.index);
        held_.deliver(finished);
    }
    void deliver() override {
        const UseDevice device(params_.device.index);
        held_.deliver();
    }
    void release() override {
        const UseDevice device(params_.device.index);
        held_.release();
    }

  private:
    /// Arguments were checked when the build in shards began.
    BuildStats run(const detail::Input& input, const BuildParams& params, const DeviceGraph& to,
                   const Callbacks& callbacks) {
        return detail::run_checked(input, params, callbacks, work_, to.ids, to.distances);
    }
    /// With the recall's sample.
    void compare(int shard, const Pin& slot, const Callbacks& callbacks) {
        shards::compare_sample(store_, shard, held_.vectors(shard, slot), params_, callbacks, work_);
    }
    void bring_inputs(int shard, const Pin& slot, cudaStream_t stream) {
        held_.bring_vectors(shard, slot, stream);
        held_.bring_local(shard, slot, stream);
    }
    DeviceGraph result(std::int64_t rows) const {
        std::byte* ids = memory_->data();
        return {reinterpret_cast<std::int32_t*>(ids), reinterpret_cast<float*>(ids + sizes_.result), rows, params_.k,
                params_.metric};
    }
    static KnnGraphView view_of(const DeviceGraph& graph) {
        return {graph.n, graph.k, graph.metric, graph.ids, graph.distances};
    }

    shards::Store& store_;
    BuildParams params_;
    const ShardSizes sizes_;
    HeapResources heap_;
    std::optional<DeviceMemory> memory_;  ///< the result, work memory, slots
    Piece work_;  ///< of which one build, merge or measurement after the other takes what it needs
    HeldShards held_;
};

}  // namespace

std::unique_ptr<shards::Executor> make_executor(shards::Store& store, const BuildParams& params,
                                                const shards::ExecutorOptions& options) {
    const shards::Manifest& manifest = store.manifest();
    if (manifest.count() == 1) return nullptr;
    const UseDevice device(params.device.index);
    const Room room = room_for(manifest, params, options);
    if (room.slots == 0) return nullptr;
    return std::make_unique<DeviceExecutor>(store, params, ShardSizes(manifest), room);
}

bool has_room(const shards::Manifest& manifest, const BuildParams& params, const shards::ExecutorOptions& options) {
    const UseDevice device(params.device.index);
    if (manifest.count() > 1) return room_for(manifest, params, options).slots != 0;
    try {
        plan_of_whole(manifest, params);
        return true;
    } catch (const OutOfDeviceMemory&) {
        return false;
    }
}

}  // namespace gnnd::cuda

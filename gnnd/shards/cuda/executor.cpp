#include "gnnd/shards/cuda/executor.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/memory/memory.h"
#include "gnnd/cuda/memory/transfer.h"
#include "gnnd/error.h"
#include "gnnd/merge.h"
#include "gnnd/shards/background.h"
#include "gnnd/shards/cuda/fold.h"

namespace gnnd::cuda {
namespace {

using shards::Cache;
using shards::Task;

std::size_t aligned(std::size_t bytes) {
    return (bytes + 255) / 256 * 256;
}

/// Gives builds and merges, one at a time, the same piece of device memory.
class WorkMemory final : public Resources {
  public:
    WorkMemory(std::byte* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
    void* allocate(std::size_t bytes) override { return heap_.allocate(bytes); }
    void deallocate(void* pointer, std::size_t bytes) noexcept override { heap_.deallocate(pointer, bytes); }
    void* allocate_device(std::size_t bytes, Stream stream) override {
        return bytes <= bytes_ ? data_ : heap_.allocate_device(bytes, stream);  // a build plans with what is free
    }
    std::size_t free_device_memory() override { return bytes_; }
    void deallocate_device(void* pointer, std::size_t bytes, Stream stream) noexcept override {
        if (pointer != data_) heap_.deallocate_device(pointer, bytes, stream);
    }

  private:
    HeapResources heap_;
    std::byte* data_;
    std::size_t bytes_;
};

/// How much of what goes where.
struct Sizes {
    explicit Sizes(const shards::Manifest& manifest)
        : row(std::size_t(manifest.base.d) * size_of(manifest.base.dtype)),
          vectors(aligned(std::size_t(manifest.most_rows()) * row)),
          local(of_graph(manifest.most_rows(), manifest.local_columns())),
          lists(of_graph(manifest.most_rows(), manifest.params.k)),
          result(of_graph(2 * manifest.most_rows(), manifest.params.k)) {}
    /// Ids, or distances.
    static std::size_t of_graph(std::int64_t rows, std::int64_t k) {
        return aligned(std::size_t(rows * k) * sizeof(std::int32_t));
    }
    std::size_t row;                   ///< of a vector
    std::size_t vectors;               ///< of a shard
    std::size_t local, lists, result;  ///< ids, or distances
    std::size_t shard() const { return vectors + 2 * (local + lists); }
};

/// Room for shards, all of the same size.
class Slots final : public Resources {
  public:
    Slots(std::byte* data, std::size_t bytes, int count) {
        for (int i = 0; i < count; ++i) free_.push_back(data + std::size_t(i) * bytes);
    }
    void* allocate(std::size_t) override {  // there is one: the cache knows the bound
        const std::lock_guard lock(mutex_);
        std::byte* slot = free_.back();
        free_.pop_back();
        return slot;
    }
    void deallocate(void* pointer, std::size_t) noexcept override {
        const std::lock_guard lock(mutex_);
        free_.push_back(static_cast<std::byte*>(pointer));
    }

  private:
    std::mutex mutex_;
    std::vector<std::byte*> free_;
};

/// So that copies between the devices go straight. Where they cannot, they go through the host. That memory pools are
/// to stay accessible is CUDA's advice, so nothing undoes it.
void let_access(int memory, int from) {
    if (memory == from) return;
    int possible = 0;
    GNND_CUDA(cudaDeviceCanAccessPeer(&possible, from, memory));
    if (possible == 0) return;
    cudaMemPool_t pool = nullptr;
    GNND_CUDA(cudaDeviceGetMemPool(&pool, memory));
    cudaMemAccessDesc access{};
    access.location = {cudaMemLocationTypeDevice, from};
    access.flags = cudaMemAccessFlagsProtReadWrite;
    ignore(cudaMemPoolSetAccess(pool, &access, 1));
}

class DeviceExecutor final : public shards::Executor {
  public:
    DeviceExecutor(shards::Store& store, const BuildParams& params, const Sizes& sizes, int slots, std::size_t work)
        : store_(store),
          params_(params),
          sizes_(sizes),
          memory_(std::in_place, heap_, std::size_t(slots) * sizes.shard() + 2 * sizes.result + work, nullptr),
          slots_(memory_->data() + 2 * sizes.result + work, sizes.shard(), slots),
          work_(memory_->data() + 2 * sizes.result, work),
          held_(store.manifest().count()),
          keeps_all_(slots == store.manifest().count()),
          cache_(std::size_t(slots) * sizes.shard(), slots_,
                 [this](const Cache::Key& key, const std::byte* data) { evict(int(key.number), data); }) {
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

    /// Where all keep all shards, nothing ever has to go: what does not change is copied from whoever has it, and lists
    /// go from one device to another.
    void meet(const std::vector<shards::Executor*>& all) override {
        std::vector<DeviceExecutor*> peers;
        for (shards::Executor* one : all) {
            auto* executor = dynamic_cast<DeviceExecutor*>(one);
            if (executor == nullptr || !executor->keeps_all_) return;
            if (executor != this) peers.push_back(executor);
        }
        for (const DeviceExecutor* peer : peers) let_access(peer->params_.device.index, params_.device.index);
        peers_ = std::move(peers);
    }

    BuildStats build(int shard, const Callbacks& callbacks) override {
        const UseDevice device(params_.device.index);
        const OwnedStream stream(heap_);
        const Cache::Pin pin = pinned(shard);
        bring_vectors(shard, pin, stream);
        const DeviceGraph built = result(store_.rows(shard));
        const BuildStats stats =
            build_into(vectors_of(shard, pin.data()), params_, built.ids, built.distances, callbacks, &work_);
        Held& held = held_[shard];
        DeviceGraph lists = lists_of(shard, pin.data());
        if (store_.manifest().shards[shard].built()) lists.ids = nullptr;
        split_build(built, store_.manifest().begin(shard), local_of(shard, pin.data()), lists, stream);
        GNND_CUDA(cudaStreamSynchronize(stream));
        held.local = held.local_changed = true;
        if (lists.ids != nullptr) held.lists = held.lists_changed = true;
        pin.mark_dirty();
        return stats;
    }

    BuildStats merge(const Task& pair, const Callbacks& callbacks) override {
        const UseDevice device(params_.device.index);
        const OwnedStream stream(heap_);
        const Cache::Pin first = pinned(pair.first), second = pinned(pair.second);
        bring_inputs(pair.first, first, stream);
        bring_inputs(pair.second, second, stream);
        shards::Background bringing;
        bringing.start(shards::counted([&] {  // only folding needs them
            const UseDevice device(params_.device.index);
            const OwnedStream stream(heap_);
            bring_lists(pair.first, first, stream);
            bring_lists(pair.second, second, stream);
        }));
        const std::int64_t n1 = store_.rows(pair.first), n2 = store_.rows(pair.second);
        const DeviceGraph found = result(n1 + n2);
        const BuildStats stats =
            merge_into(vectors_of(pair.first, first.data()), view_of(local_of(pair.first, first.data())),
                       vectors_of(pair.second, second.data()), view_of(local_of(pair.second, second.data())), params_,
                       found.ids, found.distances, callbacks, &work_);
        bringing.wait();
        DeviceGraph half = found;
        half.n = n1;
        fold_into(pair.first, pair.second, first, half, std::int32_t(n1), stream);
        half = {found.ids + n1 * found.k, found.distances + n1 * found.k, n2, found.k, found.metric};
        fold_into(pair.second, pair.first, second, half, 0, stream);
        GNND_CUDA(cudaStreamSynchronize(stream));
        return stats;
    }

    std::shared_ptr<const void> prepare(const Task& present, const Task& next) override {
        const UseDevice device(params_.device.index);
        const OwnedStream stream(heap_);
        for (const int shard : {next.first, next.second}) {
            if (present.uses(shard)) continue;
            Cache::Pin pin = pinned(shard);
            if (next.kind == Task::Kind::merge) {
                bring_inputs(shard, pin, stream);
                bring_lists(shard, pin, stream);
            } else {
                bring_vectors(shard, pin, stream);
            }
            return std::make_shared<const Cache::Pin>(std::move(pin));
        }
        return nullptr;
    }

    void deliver(int finished) override {
        const UseDevice device(params_.device.index);
        const std::lock_guard lock(held_[finished].mutex);
        cache_.take_out(key_of(finished), [&](std::byte* slot) {  // unless it was evicted, and delivered with it
            give_lists(finished, slot);
            held_[finished].clear();
        });
    }

    void deliver() override {
        const UseDevice device(params_.device.index);
        for (int shard = 0; shard < int(held_.size()); ++shard) {
            const std::lock_guard lock(held_[shard].mutex);
            if (const Cache::Pin pin = cache_.find(key_of(shard))) {
                give_lists(shard, pin.data());
                give_local(shard, pin.data());
            }
        }
    }

    void release() override {
        if (!peers_.empty()) return;  // they take over what they need
        deliver();
        for (Held& held : held_) {
            const std::lock_guard lock(held.mutex);
            held.lists = false;
        }
    }

  private:
    /// What of a shard is in its slot, and whether the store does not have it. Belongs to who has the slot pinned; but
    /// peers look for vectors and local graphs, which stay as they are once they are there, at any time.
    struct Held {
        std::atomic<bool> vectors{false}, local{false};
        /// Of what follows, while lists are delivered or taken over: others may do so who do not use the shard.
        std::mutex mutex;
        bool lists = false, local_changed = false, lists_changed = false;
        std::vector<int> merged;  ///< partners in the lists

        void clear() {
            vectors = local = lists = local_changed = lists_changed = false;
            merged.clear();
        }
    };
    /// A shard in the slot of a peer.
    struct Source {
        Cache::Pin slot;
        int device = 0;
        explicit operator bool() const { return bool(slot); }
    };

    static Cache::Key key_of(int shard) { return {Cache::Kind::whole, shard}; }
    Cache::Pin pinned(int shard) {
        return cache_.pin(key_of(shard), sizes_.shard(), [&](std::byte*) { held_[shard].clear(); });
    }

    VectorView vectors_of(int shard, const std::byte* slot) const {
        const shards::BaseRecord& base = store_.manifest().base;
        return {slot, store_.rows(shard), base.d, base.dtype, 0};
    }
    DeviceGraph graph_at(std::byte* ids, std::size_t bytes, std::int64_t n, std::int64_t k) const {
        return {reinterpret_cast<std::int32_t*>(ids), reinterpret_cast<float*>(ids + bytes), n, k, params_.metric};
    }
    DeviceGraph local_of(int shard, std::byte* slot) const {
        return graph_at(slot + sizes_.vectors, sizes_.local, store_.rows(shard), store_.manifest().local_columns());
    }
    DeviceGraph lists_of(int shard, std::byte* slot) const {
        return graph_at(slot + sizes_.vectors + 2 * sizes_.local, sizes_.lists, store_.rows(shard), params_.k);
    }
    DeviceGraph result(std::int64_t rows) const { return graph_at(memory_->data(), sizes_.result, rows, params_.k); }
    static KnnGraphView view_of(const DeviceGraph& graph) {
        return {graph.n, graph.k, graph.metric, graph.ids, graph.distances};
    }

    /// From whom to copy what the shard has of that.
    Source source_of(int shard, std::atomic<bool> Held::*part) const {
        for (DeviceExecutor* peer : peers_)
            if (peer->held_[shard].*part) return peer->as_source(shard);
        return {};
    }
    Source as_source(int shard) { return {cache_.find(key_of(shard)), params_.device.index}; }
    /// Slots are divided in the same way everywhere.
    void copy(const Source& from, const Cache::Pin& to, std::size_t offset, std::size_t bytes, Stream stream) {
        GNND_CUDA(cudaMemcpyPeerAsync(to.data() + offset, params_.device.index, from.slot.data() + offset, from.device,
                                      bytes, stream));
        GNND_CUDA(cudaStreamSynchronize(stream));
    }

    void bring_vectors(int shard, const Cache::Pin& pin, Stream stream) {
        if (held_[shard].vectors) return;
        if (const Source peer = source_of(shard, &Held::vectors)) {
            copy(peer, pin, 0, sizes_.vectors, stream);
        } else {
            const shards::PinnedVectors vectors = store_.vectors(shard);
            copy_in(pin.data(), vectors.view.data, vectors.view.n, sizes_.row, sizes_.row, heap_, stream);
            GNND_CUDA(cudaStreamSynchronize(stream));
        }
        held_[shard].vectors = true;
    }
    void bring_graph(const shards::PinnedGraph& from, const DeviceGraph& to, Stream stream) {
        const std::size_t row = std::size_t(to.k) * sizeof(std::int32_t);
        copy_in(to.ids, from.ids(), to.n, row, row, heap_, stream);
        copy_in(to.distances, from.distances(), to.n, row, row, heap_, stream);
        GNND_CUDA(cudaStreamSynchronize(stream));
    }
    void bring_local(int shard, const Cache::Pin& pin, Stream stream) {
        if (held_[shard].local) return;
        if (const Source peer = source_of(shard, &Held::local))
            copy(peer, pin, sizes_.vectors, 2 * sizes_.local, stream);
        else
            bring_graph(store_.local(shard), local_of(shard, pin.data()), stream);
        held_[shard].local = true;
    }
    /// From who has them: a peer, or else the store.
    void bring_lists(int shard, const Cache::Pin& pin, Stream stream) {
        Held& held = held_[shard];
        if (held.lists) return;
        for (DeviceExecutor* peer : peers_)
            if (take_over(shard, *peer, pin, stream)) return;
        shards::PinnedGraph lists = store_.take_lists(shard, held.merged);
        bring_graph(lists, lists_of(shard, pin.data()), stream);
        store_.taken(std::move(lists));
        held.lists = held.lists_changed = true;
        pin.mark_dirty();
    }
    /// Lists, and what is still to be delivered of the shard. \return whether the peer had them
    bool take_over(int shard, DeviceExecutor& peer, const Cache::Pin& pin, Stream stream) {
        Held &held = held_[shard], &from = peer.held_[shard];
        const std::scoped_lock lock(held.mutex, from.mutex);
        if (!from.lists) return false;
        copy(peer.as_source(shard), pin, sizes_.vectors + 2 * sizes_.local, 2 * sizes_.lists, stream);
        held.merged = std::move(from.merged);
        held.local_changed = std::exchange(from.local_changed, false);
        held.lists_changed = std::exchange(from.lists_changed, false);
        held.lists = std::exchange(from.lists, false);
        return true;
    }
    void bring_inputs(int shard, const Cache::Pin& pin, Stream stream) {
        bring_vectors(shard, pin, stream);
        bring_local(shard, pin, stream);
    }

    void fold_into(int shard, int partner, const Cache::Pin& pin, const DeviceGraph& found, std::int32_t first,
                   Stream stream) {
        Held& held = held_[shard];
        const auto at = std::lower_bound(held.merged.begin(), held.merged.end(), partner);
        if (at != held.merged.end() && *at == partner) return;  // before the last run ended
        fold(found, {first, std::int32_t(first + store_.rows(partner)), store_.manifest().begin(partner)},
             lists_of(shard, pin.data()), stream);
        held.merged.insert(at, partner);
        held.lists_changed = true;
        pin.mark_dirty();
    }

    void give_graph(const DeviceGraph& from, const shards::PinnedGraph& to) {
        const OwnedStream stream(heap_);
        const std::size_t bytes = std::size_t(from.n * from.k) * sizeof(std::int32_t);
        copy_out(to.ids(), from.ids, bytes, heap_, stream);
        copy_out(to.distances(), from.distances, bytes, heap_, stream);
        GNND_CUDA(cudaStreamSynchronize(stream));
    }
    void give_lists(int shard, std::byte* slot) {
        Held& held = held_[shard];
        if (!held.lists || !held.lists_changed) return;
        const shards::PinnedGraph lists = store_.new_lists(shard);
        give_graph(lists_of(shard, slot), lists);
        store_.given(shard, lists, held.merged);
        held.lists_changed = false;
    }
    void give_local(int shard, std::byte* slot) {
        if (!held_[shard].local_changed) return;
        const shards::PinnedGraph local = store_.new_local(shard);
        give_graph(local_of(shard, slot), local);
        local.pin.mark_dirty();
        held_[shard].local_changed = false;
    }
    void evict(int shard, const std::byte* data) {
        auto* slot = const_cast<std::byte*>(data);
        give_lists(shard, slot);
        give_local(shard, slot);
    }

    shards::Store& store_;
    BuildParams params_;
    const Sizes sizes_;
    HeapResources heap_;
    std::optional<DeviceMemory> memory_;  ///< the result, work memory, slots
    Slots slots_;
    WorkMemory work_;
    std::vector<Held> held_;
    const bool keeps_all_;                ///< there is a slot for every shard
    std::vector<DeviceExecutor*> peers_;  ///< the other workers', where they and this one keep all shards
    Cache cache_;                         ///< whole shards
};

/// How the device memory is divided.
struct Room {
    std::size_t work = 0;  ///< what a merge works in
    int slots = 0;         ///< for shards; 0: not enough to keep any
};

Room room_for(const shards::Manifest& manifest, const BuildParams& params, const shards::ExecutorOptions& options) {
    if (manifest.base.n < 2 * manifest.count()) return {};  // build() wants two objects
    const Sizes sizes(manifest);
    try {
        // As if from host memory: the union's vectors are copied to one place, the graphs are not.
        const VectorView vectors{nullptr, 2 * manifest.most_rows(), manifest.base.d, manifest.base.dtype, 0};
        const MemoryPlan plan = cuda::plan({{vectors}, {}}, params);
        const std::size_t work = plan.vectors + plan.work, fixed = 2 * sizes.result + work;
        std::size_t bytes = plan.free / std::size_t(share.to_come);
        if (params.device_memory != 0) bytes = std::min(bytes, std::size_t(params.device_memory / share.workers));
        const int count = manifest.count(), least = std::min(3, count);
        if (bytes < fixed + std::size_t(least) * sizes.shard()) return {};
        return {work, int(std::min<std::size_t>(count, (bytes - fixed) / sizes.shard()))};
    } catch (const OutOfDeviceMemory&) {
        return {};
    }
}

}  // namespace

std::unique_ptr<shards::Executor> make_executor(shards::Store& store, const BuildParams& params,
                                                const shards::ExecutorOptions& options) {
    const shards::Manifest& manifest = store.manifest();
    if (manifest.count() == 1) return nullptr;
    const UseDevice device(params.device.index);
    const Room room = room_for(manifest, params, share);
    if (room.slots == 0) return nullptr;
    return std::make_unique<DeviceExecutor>(store, params, Sizes(manifest), room.slots, room.work);
}

bool has_room(const shards::Manifest& manifest, const BuildParams& params, const shards::ExecutorOptions& options) {
    const UseDevice device(params.device.index);
    if (manifest.count() > 1) return room_for(manifest, params, share).slots != 0;
    try {
        cuda::plan({{{nullptr, manifest.base.n, manifest.base.d, manifest.base.dtype, 0}}, {}}, params);
        return true;
    } catch (const OutOfDeviceMemory&) {
        return false;
    }
}

}  // namespace gnnd::cuda

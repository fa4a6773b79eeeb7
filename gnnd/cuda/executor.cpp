#include "gnnd/cuda/executor.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>

#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/memory.h"
#include "gnnd/cuda/transfer.h"
#include "gnnd/error.h"
#include "gnnd/merge.h"

namespace gnnd::cuda {
namespace {

using shards::Side;
using shards::TaskSize;

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
    Sizes(const BuildParams& params, const TaskSize& size)
        : row(std::size_t(size.d) * size_of(size.dtype)),
          k(params.k),
          vectors(aligned(std::size_t(size.rows) * row)),
          graph(aligned(std::size_t(size.rows) * std::size_t(params.k) * sizeof(std::int32_t))) {}
    std::size_t row;  ///< of a vector
    std::int64_t k;
    std::size_t vectors;  ///< of a shard
    std::size_t graph;    ///< ids, or distances, of a shard
    std::size_t shard() const { return vectors + 2 * graph; }
    std::size_t result() const { return 4 * graph; }
};

constexpr int kShards = 3, kResults = 2;

class DeviceExecutor final : public shards::Executor {
  public:
    DeviceExecutor(const BuildParams& params, const Sizes& sizes, std::size_t work)
        : params_(params),
          sizes_(sizes),
          memory_(std::in_place, heap_, kShards * sizes.shard() + kResults * sizes.result() + work, nullptr),
          work_(memory_->data() + kShards * sizes.shard() + kResults * sizes.result(), work) {
        GNND_CUDA(cudaStreamSynchronize(nullptr));  // other streams use the memory
        params_.device_memory = 0;
        std::byte* at = memory_->data();
        for (Slot& slot : slots_) {
            slot = {-1, 0, at, reinterpret_cast<std::int32_t*>(at + sizes.vectors),
                    reinterpret_cast<float*>(at + sizes.vectors + sizes.graph)};
            at += sizes.shard();
        }
        for (std::byte*& result : results_) {
            result = at;
            at += sizes.result();
        }
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

    BuildStats build(int shard, const VectorView& vectors, std::int32_t* ids, float* distances,
                     const Callbacks& callbacks) override {
        const UseDevice device(params_.device.index);
        const OwnedStream stream(heap_);
        Slot& slot = slot_for(shard, [](int) { return false; });
        upload(slot, vectors, stream);
        GNND_CUDA(cudaStreamSynchronize(stream));
        const BuildStats stats =
            build_into(view_of(slot, vectors), params_, slot.ids, slot.distances, callbacks, &work_);
        const std::size_t bytes = std::size_t(vectors.n * sizes_.k) * sizeof(std::int32_t);
        copy_out(ids, slot.ids, bytes, heap_, stream);
        copy_out(distances, slot.distances, bytes, heap_, stream);
        GNND_CUDA(cudaStreamSynchronize(stream));
        return stats;
    }

    BuildStats merge(const Side& a, const Side& b, std::int32_t* ids, float* distances, const Callbacks& callbacks,
                     std::function<void()>& fetch) override {
        const UseDevice device(params_.device.index);
        const auto either = [&](int shard) { return shard == a.shard || shard == b.shard || shard == prepared_; };
        Slot &first = resident(a, either), &second = resident(b, either);
        const std::int64_t entries = (a.vectors.n + b.vectors.n) * sizes_.k;
        std::byte* result = results_[turn_++ % kResults];
        auto* result_ids = reinterpret_cast<std::int32_t*>(result);
        auto* result_distances = reinterpret_cast<float*>(result + 2 * sizes_.graph);
        const BuildStats stats =
            merge_into(view_of(first, a.vectors), graph_of(first, a), view_of(second, b.vectors), graph_of(second, b),
                       params_, result_ids, result_distances, callbacks, &work_);
        fetch = [this, ids, distances, result_ids, result_distances, bytes = std::size_t(entries) * 4] {
            const UseDevice here(params_.device.index);
            const OwnedStream stream(heap_);
            copy_out(ids, result_ids, bytes, heap_, stream);
            copy_out(distances, result_distances, bytes, heap_, stream);
            GNND_CUDA(cudaStreamSynchronize(stream));
        };
        return stats;
    }

    void prepare(const Side& side, const std::function<bool(int)>& in_use) override {
        const UseDevice device(params_.device.index);
        prepared_ = side.shard;
        resident(side, in_use);
    }

  private:
    /// Room for a shard on the device; shard: whose, -1 for nobody's.
    struct Slot {
        int shard = -1;
        int used = 0;  ///< when it was last asked for
        std::byte* vectors = nullptr;
        std::int32_t* ids = nullptr;
        float* distances = nullptr;
    };

    /// The shard's slot, or the least recently used one of a shard that is not to be kept: now this shard's, and empty.
    template <class Keep>
    Slot& slot_for(int shard, const Keep& keep, bool* found = nullptr) {
        const std::lock_guard lock(mutex_);
        for (Slot& slot : slots_)
            if (slot.shard == shard) {
                if (found != nullptr) *found = true;
                slot.used = ++clock_;
                return slot;
            }
        Slot* oldest = nullptr;  // there is one: at most two others are kept
        for (Slot& slot : slots_)
            if ((slot.shard < 0 || !keep(slot.shard)) && (oldest == nullptr || slot.used < oldest->used))
                oldest = &slot;
        oldest->shard = shard;
        oldest->used = ++clock_;
        return *oldest;
    }

    /// Where the side lies on the device; it is brought there first if need be.
    template <class Keep>
    Slot& resident(const Side& side, const Keep& keep) {
        bool found = false;
        Slot& slot = slot_for(side.shard, keep, &found);
        if (found) return slot;
        const OwnedStream stream(heap_);
        upload(slot, side.vectors, stream);
        const std::size_t row = std::size_t(sizes_.k) * 4;
        copy_in(slot.ids, side.local.ids, side.local.n, row, row, heap_, stream);
        copy_in(slot.distances, side.local.distances, side.local.n, row, row, heap_, stream);
        GNND_CUDA(cudaStreamSynchronize(stream));
        return slot;
    }

    void upload(const Slot& slot, const VectorView& vectors, Stream stream) {
        copy_in(slot.vectors, vectors.data, vectors.n, sizes_.row, std::size_t(vectors.row_bytes()), heap_, stream);
    }
    VectorView view_of(const Slot& slot, VectorView vectors) const {
        vectors.data = slot.vectors;
        vectors.stride = 0;
        return vectors;
    }
    KnnGraphView graph_of(const Slot& slot, const Side& side) const {
        return {side.local.n, sizes_.k, side.local.metric, slot.ids, slot.distances};
    }

    BuildParams params_;
    const Sizes sizes_;
    HeapResources heap_;
    std::optional<DeviceMemory> memory_;
    WorkMemory work_;
    std::mutex mutex_;
    std::array<Slot, kShards> slots_;
    std::array<std::byte*, kResults> results_{};
    std::atomic<int> prepared_{-1};  ///< the shard that prepare() last brought, or brings
    int turn_ = 0, clock_ = 0;
};

}  // namespace

std::unique_ptr<shards::Executor> make_executor(const BuildParams& params, const TaskSize& size) {
    if (!size.merges || size.local_columns != params.k) return nullptr;
    const UseDevice device(params.device.index);
    const Sizes sizes(params, size);
    try {
        // As if from host memory: the union's vectors are copied to one place, the graphs are not.
        const VectorView vectors{nullptr, 2 * size.rows, size.d, size.dtype, 0};
        const MemoryPlan plan = cuda::plan({{vectors}, {}}, params);
        const std::size_t work = plan.vectors + plan.work,
                          all = kShards * sizes.shard() + kResults * sizes.result() + work;
        const std::size_t allowed = params.device_memory != 0 ? std::size_t(params.device_memory) : plan.free;
        if (all > std::min(allowed, plan.free)) return nullptr;
        return std::make_unique<DeviceExecutor>(params, sizes, work);
    } catch (const OutOfDeviceMemory&) {
        return nullptr;
    }
}

}  // namespace gnnd::cuda

// SPDX-License-Identifier: MIT
#pragma once
/// \file held_shards.h
/// The shards that a worker keeps on its device, and the ways in and out: from and to the store, and from one device to
/// another.

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "gnnd/cuda/memory/memory.h"
#include "gnnd/shards/cache.h"
#include "gnnd/shards/cuda/fold.h"
#include "gnnd/shards/cuda/room.h"
#include "gnnd/shards/cuda/slots.h"
#include "gnnd/shards/store.h"

namespace gnnd::cuda {

/// Keeps whole shards (vectors, local graph, lists) in slots, as many as there are; what was changed goes to the store
/// before its slot is given to another. Member functions run with the device current.
///
/// Peers are the held shards of other workers, where all of them keep all shards. Nothing ever has to go there: vectors
/// and local graphs, which do not change, are copied from whoever has them, and lists go from one device to another.
class HeldShards {
  public:
    using Pin = shards::Cache::Pin;

    /// \param data  room for `slots` shards, aligned to 256 bytes
    HeldShards(shards::Store& store, const Device& device, const ShardSizes& sizes, std::byte* data, int slots);

    bool keeps_all() const { return slots_count_ == int(held_.size()); }
    /// To be called before anything else, if at all.
    void meet(std::vector<HeldShards*> peers);

    /// The shard's slot, of which only what is brought is there.
    Pin pin(int shard);
    VectorView vectors(int shard, const Pin& slot) const;
    DeviceGraph local(int shard, const Pin& slot) const;

    void bring_vectors(int shard, const Pin& slot, cudaStream_t stream);
    void bring_local(int shard, const Pin& slot, cudaStream_t stream);
    /// Lists have one holder at a time: a peer, or else the store, has them no more when it returns.
    void bring_lists(int shard, const Pin& slot, cudaStream_t stream);
    /// The shard's own graph, ids local, becomes its local graph and, unless the store has some, its lists.
    void put_build(int shard, const Pin& slot, const DeviceGraph& built, cudaStream_t stream);
    /// Folds rows of a merge's result into the lists, unless they have seen the partner before.
    /// \param first  id of the partner's first object in what was found
    void fold_into(int shard, int partner, const Pin& slot, const DeviceGraph& found, std::int32_t first,
                   cudaStream_t stream);

    /// Puts the lists of a shard into the store and gives its slot free.
    void deliver(int finished);
    /// Puts everything that was changed into the store.
    void deliver();
    /// The same, and the store has the lists from then on; but peers take over what they need.
    void release();

  private:
    /// Says what of a shard is in its slot, and what of that the store does not have. Belongs to who has the slot
    /// pinned; but peers look at any time for vectors and local graphs, which stay as they are once they are there.
    struct Held {
        std::atomic<bool> vectors{false}, local{false};
        /// Guards what follows, which others deliver or take over who do not use the shard.
        std::mutex mutex;
        bool lists = false, local_changed = false, lists_changed = false;
        std::vector<int> merged;  ///< partners in the lists

        void clear();
    };
    /// A shard in the slot of a peer.
    struct Source {
        Pin slot;
        int device = 0;
        explicit operator bool() const { return bool(slot); }
    };

    static shards::Cache::Key key_of(int shard) { return {shards::Cache::Kind::whole, shard}; }
    /// \param bytes  of the ids, behind which the distances are
    template <class Id>
    DeviceRows<Id> graph_at(std::byte* ids, std::size_t bytes, int shard, std::int64_t k) const;
    DeviceGraph local_at(int shard, std::byte* slot) const;
    template <class Id>
    DeviceRows<Id> lists_at(int shard, std::byte* slot) const;
    Source source_of(int shard, std::atomic<bool> Held::*part) const;
    Source as_source(int shard) { return {cache_.find(key_of(shard)), device_}; }
    void copy(const Source& from, const Pin& to, std::size_t offset, std::size_t bytes, cudaStream_t stream);
    bool take_over(int shard, HeldShards& peer, const Pin& slot, cudaStream_t stream);
    template <class Id>
    void bring_graph(const shards::PinnedGraph& from, const DeviceRows<Id>& to, cudaStream_t stream);
    template <class Id>
    void give_graph(const DeviceRows<Id>& from, const shards::PinnedGraph& to);
    void give_lists(int shard, std::byte* slot);
    void give_local(int shard, std::byte* slot);
    void evict(int shard, const std::byte* data);

    shards::Store& store_;
    const int device_;
    const ShardSizes sizes_;
    const int slots_count_;
    HeapResources heap_;
    Slots slots_;
    std::vector<Held> held_;
    std::vector<HeldShards*> peers_;
    shards::Cache cache_;  ///< last: it uses the others
};

}  // namespace gnnd::cuda

// SPDX-License-Identifier: MIT
#include "gnnd/shards/cuda/held_shards.h"

#include <algorithm>
#include <utility>

#include "gnnd/cuda/memory/transfer.h"
#include "gnnd/shards/ids.h"

namespace gnnd::cuda {
namespace {

using shards::Cache;
using shards::with_id_type;

/// So that copies between the devices go straight. Where they cannot, they go through the host. That memory pools are
/// to stay accessible is CUDA's advice, so nothing undoes it.
void let_access(int memory, int from) {
    if (memory == from) return;
    int possible = 0, pools = 0;
    GNND_CUDA(cudaDeviceCanAccessPeer(&possible, from, memory));
    GNND_CUDA(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, memory));
    if (possible == 0 || pools == 0) return;
    cudaMemPool_t pool = nullptr;
    GNND_CUDA(cudaDeviceGetMemPool(&pool, memory));
    cudaMemAccessDesc access{};
    access.location = {cudaMemLocationTypeDevice, from};
    access.flags = cudaMemAccessFlagsProtReadWrite;
    ignore(cudaMemPoolSetAccess(pool, &access, 1));
}

}  // namespace

void HeldShards::Held::clear() {
    vectors = local = lists = local_changed = lists_changed = false;
    merged.clear();
}

HeldShards::HeldShards(shards::Store& store, const Device& device, const ShardSizes& sizes, std::byte* data, int slots)
    : store_(store),
      device_(device.index),
      sizes_(sizes),
      slots_count_(slots),
      slots_(data, sizes.shard(), slots),
      held_(std::size_t(store.manifest().count())),
      cache_(std::size_t(slots) * sizes.shard(), slots_,
             [this](const Cache::Key& key, const std::byte* slot) { evict(int(key.number), slot); }) {}

void HeldShards::meet(std::vector<HeldShards*> peers) {
    for (const HeldShards* peer : peers) let_access(peer->device_, device_);
    peers_ = std::move(peers);
}

HeldShards::Pin HeldShards::pin(int shard) {
    return cache_.pin(key_of(shard), sizes_.shard(), [&](std::byte*) { held_[shard].clear(); });
}

VectorView HeldShards::vectors(int shard, const Pin& slot) const {
    const shards::BaseRecord& base = store_.manifest().base;
    return {slot.data(), store_.rows(shard), base.d, base.dtype, 0};
}
DeviceGraph HeldShards::local(int shard, const Pin& slot) const {
    return local_at(shard, slot.data());
}

template <class Id>
DeviceRows<Id> HeldShards::graph_at(std::byte* ids, std::size_t bytes, int shard, std::int64_t k) const {
    return {reinterpret_cast<Id*>(ids), reinterpret_cast<float*>(ids + bytes), store_.rows(shard), k,
            store_.manifest().params.metric};
}
DeviceGraph HeldShards::local_at(int shard, std::byte* slot) const {
    return graph_at<std::int32_t>(slot + sizes_.vectors, sizes_.local, shard, store_.manifest().local_columns());
}
template <class Id>
DeviceRows<Id> HeldShards::lists_at(int shard, std::byte* slot) const {
    return graph_at<Id>(slot + sizes_.vectors + 2 * sizes_.local, sizes_.list_ids, shard, store_.manifest().params.k);
}

/// The peer from whom to copy what the shard has of that.
HeldShards::Source HeldShards::source_of(int shard, std::atomic<bool> Held::*part) const {
    for (HeldShards* peer : peers_)
        if (peer->held_[shard].*part) return peer->as_source(shard);
    return {};
}

/// Slots are divided in the same way everywhere.
void HeldShards::copy(const Source& from, const Pin& to, std::size_t offset, std::size_t bytes, cudaStream_t stream) {
    GNND_CUDA(cudaMemcpyPeerAsync(to.data() + offset, device_, from.slot.data() + offset, from.device, bytes, stream));
    GNND_CUDA(cudaStreamSynchronize(stream));
}

void HeldShards::bring_vectors(int shard, const Pin& slot, cudaStream_t stream) {
    if (held_[shard].vectors) return;
    if (const Source peer = source_of(shard, &Held::vectors)) {
        copy(peer, slot, 0, sizes_.vectors, stream);
    } else {
        const shards::PinnedVectors vectors = [&] {
            const UseDevice own(device_);  // a base's function may make another one current
            return store_.vectors(shard);
        }();
        copy_in(slot.data(), vectors.view.data, vectors.view.n, sizes_.row, sizes_.row, heap_, stream);
        GNND_CUDA(cudaStreamSynchronize(stream));
    }
    held_[shard].vectors = true;
}

template <class Id>
void HeldShards::bring_graph(const shards::PinnedGraph& from, const DeviceRows<Id>& to, cudaStream_t stream) {
    const std::size_t ids = std::size_t(to.k) * sizeof(Id), distances = std::size_t(to.k) * sizeof(float);
    copy_in(to.ids, from.ids<Id>(), to.n, ids, ids, heap_, stream);
    copy_in(to.distances, from.distances(), to.n, distances, distances, heap_, stream);
    GNND_CUDA(cudaStreamSynchronize(stream));
}

void HeldShards::bring_local(int shard, const Pin& slot, cudaStream_t stream) {
    if (held_[shard].local) return;
    if (const Source peer = source_of(shard, &Held::local))
        copy(peer, slot, sizes_.vectors, 2 * sizes_.local, stream);
    else
        bring_graph(store_.local(shard), local(shard, slot), stream);
    held_[shard].local = true;
}

void HeldShards::bring_lists(int shard, const Pin& slot, cudaStream_t stream) {
    Held& held = held_[shard];
    if (held.lists) return;
    for (HeldShards* peer : peers_)
        if (take_over(shard, *peer, slot, stream)) return;
    shards::PinnedGraph from = store_.take_lists(shard, held.merged);
    with_id_type(from.id_bytes, [&]<class Id>(Id) { bring_graph(from, lists_at<Id>(shard, slot.data()), stream); });
    store_.taken(std::move(from));
    held.lists = held.lists_changed = true;
    slot.mark_dirty();
}

/// Lists, and what is still to be delivered of the shard. \return whether the peer had them
bool HeldShards::take_over(int shard, HeldShards& peer, const Pin& slot, cudaStream_t stream) {
    Held &held = held_[shard], &from = peer.held_[shard];
    const std::scoped_lock lock(held.mutex, from.mutex);
    if (!from.lists) return false;
    copy(peer.as_source(shard), slot, sizes_.vectors + 2 * sizes_.local, sizes_.lists(), stream);
    held.merged = std::move(from.merged);
    held.local_changed = std::exchange(from.local_changed, false);
    held.lists_changed = std::exchange(from.lists_changed, false);
    held.lists = std::exchange(from.lists, false);
    return true;
}

void HeldShards::put_build(int shard, const Pin& slot, const DeviceGraph& built, cudaStream_t stream) {
    Held& held = held_[shard];
    const shards::Manifest& manifest = store_.manifest();
    const bool has_lists = manifest.shards[shard].built();
    with_id_type(manifest.id_bytes, [&]<class Id>(Id) {
        DeviceRows<Id> to = lists_at<Id>(shard, slot.data());
        if (has_lists) to.ids = nullptr;
        split_build(built, manifest.begin(shard), local(shard, slot), to, stream);
    });
    GNND_CUDA(cudaStreamSynchronize(stream));
    held.local = held.local_changed = true;
    if (!has_lists) held.lists = held.lists_changed = true;
    slot.mark_dirty();
}

void HeldShards::fold_into(int shard, int partner, const Pin& slot, const DeviceGraph& found, std::int32_t first,
                           cudaStream_t stream) {
    Held& held = held_[shard];
    held.merged.reserve(held.merged.size() + 1);  // so that nothing can fail once the lists are changed
    const auto at = std::lower_bound(held.merged.begin(), held.merged.end(), partner);
    if (at != held.merged.end() && *at == partner) return;  // before the last run ended
    const detail::Partner objects{first, std::int32_t(first + store_.rows(partner)), store_.manifest().begin(partner)};
    with_id_type(store_.manifest().id_bytes,
                 [&]<class Id>(Id) { fold(found, objects, lists_at<Id>(shard, slot.data()), stream); });
    held.merged.insert(at, partner);
    held.lists_changed = true;
    slot.mark_dirty();
}

template <class Id>
void HeldShards::give_graph(const DeviceRows<Id>& from, const shards::PinnedGraph& to) {
    const OwnedStream stream(heap_);
    const auto entries = std::size_t(from.n * from.k);
    copy_out(to.ids<Id>(), from.ids, entries * sizeof(Id), heap_, stream);
    copy_out(to.distances(), from.distances, entries * sizeof(float), heap_, stream);
    GNND_CUDA(cudaStreamSynchronize(stream));
}

void HeldShards::give_lists(int shard, std::byte* slot) {
    Held& held = held_[shard];
    if (!held.lists || !held.lists_changed) return;
    const shards::PinnedGraph to = store_.new_lists(shard);
    with_id_type(to.id_bytes, [&]<class Id>(Id) { give_graph(lists_at<Id>(shard, slot), to); });
    store_.given(shard, to, held.merged);
    held.lists_changed = false;
}

void HeldShards::give_local(int shard, std::byte* slot) {
    if (!held_[shard].local_changed) return;
    const shards::PinnedGraph to = store_.new_local(shard);
    give_graph(local_at(shard, slot), to);
    to.pin.mark_dirty();
    held_[shard].local_changed = false;
}

void HeldShards::evict(int shard, const std::byte* data) {
    auto* slot = const_cast<std::byte*>(data);
    give_lists(shard, slot);
    give_local(shard, slot);
}

void HeldShards::deliver(int finished) {
    const std::lock_guard lock(held_[finished].mutex);
    cache_.take_out(key_of(finished), [&](std::byte* slot) {  // unless it was evicted, and delivered with it
        give_lists(finished, slot);
        held_[finished].clear();
    });
}

void HeldShards::deliver() {
    for (int shard = 0; shard < int(held_.size()); ++shard) {
        const std::lock_guard lock(held_[shard].mutex);
        if (const Pin slot = cache_.find(key_of(shard))) {
            give_lists(shard, slot.data());
            give_local(shard, slot.data());
        }
    }
}

void HeldShards::release() {
    if (!peers_.empty()) return;
    deliver();
    for (Held& held : held_) {
        const std::lock_guard lock(held.mutex);
        held.lists = false;
    }
}

}  // namespace gnnd::cuda

#pragma once
/// \file insert.cuh
/// The kernels of append() by searching. Everywhere a warp does the work of one object.

#include "gnnd/cuda/device/columns.cuh"
#include "gnnd/cuda/device/exact.cuh"
#include "gnnd/cuda/device/raw.cuh"
#include "gnnd/cuda/device/sort.cuh"
#include "gnnd/detail/insert.h"

namespace gnnd::cuda {

inline constexpr int kInsertWarps = 4;  ///< of a block
inline constexpr int kFound = 64;       ///< entries that join a sorted list at a time
inline constexpr int kSeen = 1024;      ///< objects that a search remembers to have seen, of a power of two
inline constexpr int kLanes = 8;        ///< lanes that compute a distance
inline constexpr int kPairs = kWarp / kLanes;

/// The vectors of both sets.
struct Sets {
    RawVectors of[2];
    bool aligned;  ///< all rows to 16 bytes

    template <class T>
    __device__ const T* row(u32 id) const {
        const bool second = id >= u32(of[0].n);
        return raw_row<T>(of[second], second ? id - of[0].n : id);
    }
};

/// The graph that is being made.
struct Rows {
    std::int32_t* ids;  ///< n x k, -1 from where nothing is known yet
    float* distances;   ///< n x k
    int k;
    bool similarity;

    /// What orders entries, and back.
    __device__ float key_of(float distance) const { return similarity ? 0 - distance : distance; }
};

/// Where searches start: see detail::pivot().
struct Pivots {
    u32 count, n, seed;
    __device__ u32 object(u32 i) const { return detail::pivot(i, count, n, mix(seed ^ mix(i))); }
};

/// Objects that a row does not hold but that hold its object, of some of them: what a graph's rows alone do not lead
/// to.
struct BackLinks {
    std::int32_t* ids;  ///< n x kBackLinks, -1 for none; null: there are none
    u32 n;
};

/// The objects [first, first + count) that are being inserted.
struct Batch {
    u32 first, count;
    const u32 *starts, *peers;  ///< count x start_count numbers of pivots, count x peer_count objects of the batch
    int start_count, peer_count;
    u64* found;  ///< count x length, sorted, kNothing behind: what the searches have found
    int length;
    u32* slots;    ///< count x length: which of a row's offers this one is; kNoId: none
    u32* touched;  ///< rows that have offers
    u32* counts;   ///< n: how many; 0 before
    u64* ends;     ///< n: where they begin
    u64* offers;   ///< ranked entries
};

struct InsertCounters {
    u64 offered, accepted, distances, entries;
    double phi;
    u32 touched;
};

/// Sorted entries in shared memory, none twice; low bits mark those that are NEW.
struct SortedList {
    u64 *entries, *spare;  ///< `length` each
    u64* found;            ///< kFound
    int size, length;

    static __host__ __device__ int bytes(int length) { return (2 * length + kFound) * int(sizeof(u64)); }
    __device__ SortedList(u64* memory, int length)
        : entries(memory), spare(memory + length), found(memory + 2 * length), size(0), length(length) {}

    __device__ u64 last() const { return size == length ? entries[length - 1] : kNothing; }

    /// Which entry is the first that is not before this one.
    __device__ static int place_of(const u64* sorted, int count, u64 entry) {
        int low = 0, high = count;
        while (low < high) {
            const int middle = (low + high) / 2;
            if ((sorted[middle] & ~u64(1)) < (entry & ~u64(1)))
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }
    /// Takes in what is nearer than the last: entry c * 32 + lane is in fresh[c], kNothing for none. Returns how many.
    __device__ int add(u64 (&fresh)[2]) {
        const u64 limit = last();
        int count = 0;
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            const bool good = fresh[c] < limit;
            const u32 all = __ballot_sync(kAllLanes, good);
            if (good) found[count + rank_in(all)] = fresh[c];
            count += __popc(all);
        }
        if (count == 0) return 0;
        __syncwarp();
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            const int i = c * kWarp + lane_id();
            fresh[c] = i < count ? found[i] : kNothing;
        }
        sort_warp(fresh, count);
        __syncwarp();
        int added = 0;
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            const int place = place_of(entries, size, fresh[c]);
            u64 before = __shfl_up_sync(kAllLanes, fresh[c], 1);
            const u64 end = __shfl_sync(kAllLanes, fresh[0], kWarp - 1);
            if (lane_id() == 0) before = c == 0 ? kNothing : end;
            const bool unknown = fresh[c] != kNothing && fresh[c] != before &&
                                 (place == size || (entries[place] & ~u64(1)) != (fresh[c] & ~u64(1)));
            const u32 all = __ballot_sync(kAllLanes, unknown);
            if (unknown) {
                const int rank = added + rank_in(all);
                found[rank] = fresh[c];
                if (place + rank < length) spare[place + rank] = fresh[c];
            }
            added += __popc(all);
        }
        __syncwarp();
        for (int i = lane_id(); i < size; i += kWarp) {
            const int to = i + place_of(found, added, entries[i]);
            if (to < length) spare[to] = entries[i];
        }
        __syncwarp();
        u64* const swapped = entries;
        entries = spare;
        spare = swapped;
        size = min(length, size + added);
        return added;
    }
    /// Reads a row of the graph.
    __device__ void load(const Rows& rows, std::int64_t object) {
        size = 0;
        for (int first = 0; first < rows.k; first += kWarp) {
            const int j = first + lane_id();
            const std::int32_t id = j < rows.k ? rows.ids[object * rows.k + j] : -1;
            if (id >= 0) entries[j] = ranked(rows.key_of(rows.distances[object * rows.k + j]), u32(id));
            size += __popc(__ballot_sync(kAllLanes, id >= 0));
        }
        __syncwarp();
    }
    /// Writes its first entries as a row.
    __device__ void store(const Rows& rows, std::int64_t object) const {
        for (int j = lane_id(); j < rows.k; j += kWarp) {
            const bool real = j < size;
            rows.ids[object * rows.k + j] = real ? std::int32_t(ranked_id(entries[j]) & ~kNewBit) : -1;
            rows.distances[object * rows.k + j] = rows.key_of(real ? ranked_distance(entries[j]) : INFINITY);
        }
    }
};

/// What a warp has of a block's dynamic shared memory.
__device__ inline std::byte* memory_of_warp(int bytes) {
    extern __shared__ __align__(16) std::byte insert_memory[];
    return insert_memory + threadIdx.x / kWarp * bytes;
}

/// Rows of the old graph into the new one, without what is no neighbour. Where they lie may be where they go.
__global__ void __launch_bounds__(kInsertWarps* kWarp) adopt_rows_kernel(Columns columns, Rows rows) {
    const std::int64_t object = std::int64_t(blockIdx.x) * kInsertWarps + threadIdx.x / kWarp;
    if (object >= columns.n) return;
    const int count = read_columns(columns, object, [&](int place, u32 id, float distance) {
        rows.ids[object * rows.k + place] = std::int32_t(id);
        rows.distances[object * rows.k + place] = distance;
    });
    for (int j = count + lane_id(); j < rows.k; j += kWarp) {
        rows.ids[object * rows.k + j] = -1;
        rows.distances[object * rows.k + j] = rows.key_of(INFINITY);
    }
}

/// A thread an entry of the first `columns` of the rows. Of those that want the same place the largest number stays, so
/// that chance decides nothing.
__global__ void __launch_bounds__(kInsertWarps* kWarp) link_back_kernel(Rows rows, int columns, BackLinks back) {
    const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x, object = i / columns;
    if (object >= back.n) return;
    const std::int64_t at = object * rows.k + i % columns;
    const std::int32_t id = rows.ids[at];
    if (id < 0) return;
    const std::int64_t last = std::int64_t(id) * rows.k + min(rows.k, detail::kBranches) - 1;
    if (rows.key_of(rows.distances[at]) <= rows.key_of(rows.distances[last])) return;  // the row leads here itself
    const u32 place = mix(u32(object)) % detail::kBackLinks;
    atomicMax(&back.ids[std::int64_t(id) * detail::kBackLinks + place], std::int32_t(object));
}

/// The vectors of the batch and behind them of the pivots as one array.
template <class T>
__global__ void __launch_bounds__(kInsertWarps* kWarp) gather_kernel(Sets sets, Batch batch, Pivots pivots, T* out) {
    const u32 i = blockIdx.x * kInsertWarps + threadIdx.x / kWarp;
    if (i >= batch.count + pivots.count) return;
    const T* row = sets.row<T>(i < batch.count ? batch.first + i : pivots.object(i - batch.count));
    const std::int64_t d = sets.of[0].d;
    for (std::int64_t c = lane_id(); c < d; c += kWarp) out[i * d + c] = row[c];
}

/// Shared memory of a search, a warp.
inline __host__ __device__ int search_bytes(int length) {
    return SortedList::bytes(length) + kSeen * 4 + (detail::kBranches + detail::kBackLinks) * 4 + kFound * 4;
}

/// Finds the rows of a batch.
/// \param beam  objects whose rows are walked along, at most batch.length, which is at least k
template <class T, class M>
__global__ void __launch_bounds__(kInsertWarps* kWarp)
    search_kernel(Sets sets, Rows rows, BackLinks back, Pivots pivots, Batch batch, int beam,
                  InsertCounters* counters) {
    const int length = batch.length;
    const u32 number = blockIdx.x * kInsertWarps + threadIdx.x / kWarp, object = batch.first + number;
    if (number >= batch.count) return;
    std::byte* memory = memory_of_warp(search_bytes(length));
    SortedList list(reinterpret_cast<u64*>(memory), length);
    u32* seen = reinterpret_cast<u32*>(memory + SortedList::bytes(length));
    u32* unseen = seen + kSeen;  // kBranches + kBackLinks
    float* distances = reinterpret_cast<float*>(unseen + detail::kBranches + detail::kBackLinks);
    const T* row = sets.row<T>(object);
    const std::int64_t d = sets.of[0].d;
    for (int i = lane_id(); i < kSeen; i += kWarp) seen[i] = kNoId;
    __syncwarp();
    int waiting = 0;
    u64 compared = 0;
    // An object whose place among those seen was taken by another may come again: the list knows it then.
    const auto note = [&](int count, const auto& id_at) {
        for (int first = 0; first < count; first += kWarp) {
            const int j = first + lane_id();
            const u32 id = j < count ? id_at(j) : kNoId;
            bool fresh = id < batch.first + batch.count && id != object;
            if (fresh) {
                u32& place = seen[mix(id) % kSeen];
                fresh = place != id;
                place = id;
            }
            __syncwarp();
            const u32 all = __ballot_sync(kAllLanes, fresh);
            if (fresh) unseen[waiting + rank_in(all)] = id;
            waiting += __popc(all);
        }
        __syncwarp();
    };
    const auto compare = [&] {
        for (int first = 0; first < waiting; first += kFound) {
            const int count = min(kFound, waiting - first);
#pragma unroll 2
            for (int i = 0; i < count; i += kPairs) {
                const int mine = min(i + lane_id() / kLanes, count - 1);
                const T* other = sets.row<T>(unseen[first + mine]);
                const float distance = sets.aligned ? exact<T, M, kLanes, 16 / sizeof(T)>(row, other, d)
                                                    : exact<T, M, kLanes, 1>(row, other, d);
                if (lane_id() % kLanes == 0) distances[mine] = distance;
            }
            __syncwarp();
            u64 entries[2];
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                const int i = c * kWarp + lane_id();
                entries[c] = i < count ? ranked(rows.key_of(distances[i]), unseen[first + i] | kNewBit) : kNothing;
            }
            list.add(entries);
            __syncwarp();
        }
        compared += u64(waiting);
        waiting = 0;
    };
    const auto note_peers = [&](u32 of) {
        note(batch.peer_count, [&](int j) {
            const u32 peer = batch.peers[std::int64_t(of) * batch.peer_count + j];
            return peer != kNoId ? batch.first + peer : kNoId;
        });
    };
    /// The nearest object whose row was not walked along yet.
    const auto next_open = [&] {
        u32 next = kNoId;
        const int walked = min(list.size, beam);
        for (int first = 0; first < walked && next == kNoId; first += kWarp) {
            const int i = first + lane_id();
            const u64 entry = i < walked ? list.entries[i] : 0;
            const u32 open = __ballot_sync(kAllLanes, entry & 1);
            if (open == 0) continue;
            const int lane = __ffs(int(open)) - 1;
            if (lane_id() == lane) list.entries[i] = entry & ~u64(1);
            next = __shfl_sync(kAllLanes, ranked_id(entry) & ~kNewBit, lane);
        }
        return next;
    };
    for (int step = 0;; ++step) {  // comparing stands here once: it is most of the kernel
        const u32 next = step == 0 ? kNoId : step == 1 ? object : next_open();
        if (step == 0) {
            note(batch.start_count, [&](int j) {
                const u32 pivot = batch.starts[std::int64_t(number) * batch.start_count + j];
                return pivot != kNoId ? pivots.object(pivot) : kNoId;
            });
        } else if (next == kNoId) {
            break;
        } else if (next >= batch.first) {
            note_peers(next - batch.first);
        } else {
            note(min(rows.k, detail::kBranches), [&](int j) { return u32(rows.ids[std::int64_t(next) * rows.k + j]); });
            if (next < back.n && back.ids != nullptr)
                note(detail::kBackLinks,
                     [&](int j) { return u32(back.ids[std::int64_t(next) * detail::kBackLinks + j]); });
        }
        compare();
    }
    list.store(rows, object);
    for (int j = lane_id(); j < length; j += kWarp)
        batch.found[std::int64_t(number) * length + j] = j < list.size ? list.entries[j] : kNothing;
    if (lane_id() == 0) atomicAdd(&counters->distances, compared);
}

/// Counts what the batch offers to which rows.
__global__ void __launch_bounds__(kInsertWarps* kWarp) offer_kernel(Rows rows, Batch batch, InsertCounters* counters) {
    const u32 number = blockIdx.x * kInsertWarps + threadIdx.x / kWarp, object = batch.first + number;
    if (number >= batch.count) return;
    u32 offered = 0, entries = 0;
    float phi = 0;
    for (int j = lane_id(); j < batch.length; j += kWarp) {
        const std::int64_t at = std::int64_t(number) * batch.length + j;
        const u64 entry = batch.found[at];
        u32 slot = kNoId;
        if (entry != kNothing) {
            const u32 id = ranked_id(entry) & ~kNewBit;
            const float key = ranked_distance(entry);
            const std::int64_t last = std::int64_t(id) * rows.k + rows.k - 1;
            const u32 last_id = rows.ids[last] < 0 ? kNoId : u32(rows.ids[last]);
            if (nearer(key, object, rows.key_of(rows.distances[last]), last_id)) {
                slot = atomicAdd(&batch.counts[id], 1u);
                if (slot == 0) batch.touched[atomicAdd(&counters->touched, 1u)] = id;
                ++offered;
            }
            if (j < rows.k) {
                phi += rows.key_of(key);
                ++entries;
            }
        }
        batch.slots[at] = slot;
    }
    offered = warp_sum(offered);
    entries = warp_sum(entries);
    phi = warp_sum(phi);
    if (lane_id() != 0) return;
    atomicAdd(&counters->offered, u64(offered));
    atomicAdd(&counters->entries, u64(entries));
    atomicAdd(&counters->phi, double(phi));
}

/// Writes the offers down, those to a row together.
__global__ void __launch_bounds__(kInsertWarps* kWarp) scatter_offers_kernel(Batch batch) {
    const u32 number = blockIdx.x * kInsertWarps + threadIdx.x / kWarp, object = batch.first + number;
    if (number >= batch.count) return;
    for (int j = lane_id(); j < batch.length; j += kWarp) {
        const std::int64_t at = std::int64_t(number) * batch.length + j;
        const u32 slot = batch.slots[at];
        if (slot == kNoId) continue;
        const u64 entry = batch.found[at];
        batch.offers[batch.ends[ranked_id(entry) & ~kNewBit] + slot] = ranked(ranked_distance(entry), object);
    }
}

/// The rows take in what is nearest of what they have and what they are offered, in whatever order.
__global__ void __launch_bounds__(kInsertWarps* kWarp)
    take_in_kernel(Rows rows, Batch batch, InsertCounters* counters) {
    SortedList list(reinterpret_cast<u64*>(memory_of_warp(SortedList::bytes(rows.k))), rows.k);
    const u32 warps = gridDim.x * kInsertWarps;
    u64 accepted = 0;
    for (u32 t = blockIdx.x * kInsertWarps + threadIdx.x / kWarp; t < counters->touched; t += warps) {
        const u32 object = batch.touched[t], count = batch.counts[object];
        const u64* offers = batch.offers + batch.ends[object];
        __syncwarp();
        list.load(rows, object);
        for (u32 first = 0; first < count; first += kFound) {
            u64 entries[2];
#pragma unroll
            for (u32 c = 0; c < 2; ++c) {
                const u32 i = first + c * kWarp + lane_id();
                entries[c] = i < count ? offers[i] : kNothing;
            }
            accepted += u64(list.add(entries));
            __syncwarp();
        }
        list.store(rows, object);
    }
    if (lane_id() == 0 && accepted != 0) atomicAdd(&counters->accepted, accepted);
}

/// Rare: rows that are short, since the old graph's were or searches found less, get random objects. A warp looks at 32
/// rows.
template <class T, class M>
__global__ void __launch_bounds__(kInsertWarps* kWarp)
    fill_kernel(Sets sets, Rows rows, std::int64_t n, int wanted, u32 seed) {
    SortedList list(reinterpret_cast<u64*>(memory_of_warp(SortedList::bytes(rows.k))), rows.k);
    const std::int64_t first = (std::int64_t(blockIdx.x) * kInsertWarps + threadIdx.x / kWarp) * kWarp;
    const std::int64_t mine = first + lane_id();
    u32 short_ones = __ballot_sync(kAllLanes, mine < n && rows.ids[mine * rows.k + wanted - 1] < 0);
    for (; short_ones != 0; short_ones &= short_ones - 1) {
        const std::int64_t object = first + __ffs(int(short_ones)) - 1;
        list.load(rows, object);
        for (u32 attempt = 1; list.size < wanted; ++attempt) {
            const u32 id = scaled(mix(seed ^ mix(u32(object)) ^ mix(attempt)), u32(n));
            if (id == u32(object)) continue;
            const float distance = exact<T, M, kWarp, 1>(sets.row<T>(u32(object)), sets.row<T>(id), sets.of[0].d);
            u64 entries[2] = {lane_id() == 0 ? ranked(rows.key_of(distance), id) : kNothing, kNothing};
            list.add(entries);
            __syncwarp();
        }
        list.store(rows, object);
        __syncwarp();
    }
}

}  // namespace gnnd::cuda

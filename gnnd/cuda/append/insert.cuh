#pragma once
/// \file insert.cuh
/// The kernels of append() by searching. A warp does the work of one object unless they say otherwise.

#include "gnnd/cuda/device/columns.cuh"
#include "gnnd/cuda/device/exact.cuh"
#include "gnnd/cuda/device/raw.cuh"
#include "gnnd/cuda/device/sorted_list.cuh"
#include "gnnd/detail/insert.h"

namespace gnnd::cuda {

inline constexpr int kInsertWarps = 4;     ///< of a block
inline constexpr int kOfferThreads = 512;  ///< of a block
inline constexpr int kRowsToTakeIn = 8;    ///< of a warp
inline constexpr int kSearchWarps = 2;     ///< of a block of searches, which end at different times
inline constexpr int kSearchBlocks = 10;   ///< of an SM, at least; for more the compiler would lack registers
inline constexpr int kSeen = 2048;         ///< places for objects that a search has seen, a power of two
inline constexpr int kRowsAtOnce = 4;      ///< rows that a search walks along in a step: their loads hide each other
inline constexpr int kLanes = 8;           ///< lanes that compute a distance
inline constexpr int kPairs = kWarp / kLanes;

/// The vectors of both sets.
struct Sets {
    const std::byte* data[2];  ///< where object 0 would be
    u32 stride[2];
    u32 second;  ///< the first object of the second set
    std::int64_t d;
    bool whole;  ///< all rows begin at and consist of whole 16 bytes

    template <class T>
    __device__ const T* row(u32 id) const {
        const bool other = id >= second;
        return reinterpret_cast<const T*>((other ? data[1] : data[0]) + u64(id) * (other ? stride[1] : stride[0]));
    }
};

/// Where searches start: see detail::pivot().
struct Pivots {
    u32 count, n, seed;
    __device__ u32 object(u32 i) const { return detail::pivot(i, count, n, mix(seed ^ mix(i))); }
};

/// Objects that a row does not hold but that hold its object, of some of them: what a graph's rows alone do not lead
/// to.
struct BackLinks {
    std::int32_t* ids;  ///< n x kBackLinks, -1 for none
    float* reach;       ///< n: key of the last entry that is looked at; none is kept beyond
    u32 n;              ///< 0: no object has any
};

/// The objects [first, first + count) that are being inserted.
struct Batch {
    u32 first, count;
    const u32 *starts, *peers;  ///< count x start_count pivots, count x peer_count objects of the batch; kNoId: none
    int start_count, peer_count;
    u64* found;  ///< count x length, sorted, kNothing behind: what the searches have found
    int length;
    u32* slots;   ///< count x length: which of a row's offers this one is; kNoId: none
    u32* counts;  ///< n: how many; 0 before
    u64* ends;    ///< n: where they begin
    u64* offers;  ///< ranked entries
};

struct InsertCounters {
    u64 offered, accepted, distances, entries;
    double phi;
};

/// Which objects a search has seen, of most of them: of those that share a place the last one stays, and one that was
/// forgotten is compared again. One of 30,000 that were not seen passes for seen. Lanes that write to the same place at
/// once race on purpose: either may stay.
struct Seen {
    std::uint16_t* tags;  ///< kSeen

    __device__ void clear() const {
        for (int i = lane_id(); i < kSeen / 8; i += kWarp) reinterpret_cast<uint4*>(tags)[i] = {0, 0, 0, 0};
        __syncwarp();
    }
    /// Whether it is new.
    __device__ bool add(u32 id) const {
        const u32 hash = mix(id);
        const auto tag = std::uint16_t(hash >> 16 | 1);
        std::uint16_t& place = tags[hash % kSeen];
        const bool is_new = place != tag;
        place = tag;
        return is_new;
    }
};

/// What a warp has of a block's dynamic shared memory.
__device__ inline std::byte* memory_of_warp(int bytes) {
    extern __shared__ __align__(16) std::byte insert_memory[];
    return insert_memory + threadIdx.x / kWarp * bytes;
}

/// Rows of the old graph into the new one, without what is no neighbour. Where they lie may be where they go.
__global__ void __launch_bounds__(kInsertWarps* kWarp) adopt_rows_kernel(Columns columns, Rows rows, BackLinks back) {
    const std::int64_t object = std::int64_t(blockIdx.x) * kInsertWarps + threadIdx.x / kWarp;
    if (object >= columns.n) return;
    const int last = min(rows.k, detail::kBranches) - 1;
    const int count = read_columns(columns, object, [&](int place, u32 id, float distance) {
        rows.ids[object * rows.k + place] = std::int32_t(id);
        rows.distances[object * rows.k + place] = distance;
        if (place == last && back.n != 0) back.reach[object] = rows.key_of(distance);
    });
    for (int j = count + lane_id(); j < rows.k; j += kWarp) {
        rows.ids[object * rows.k + j] = -1;
        rows.distances[object * rows.k + j] = rows.key_of(INFINITY);
    }
    if (count <= last && lane_id() == 0 && back.n != 0) back.reach[object] = INFINITY;
}

/// Links back from the first columns of the rows, to those whose rows do not lead there themselves. Of objects that
/// want the same place the largest number stays, so that chance decides nothing.
__global__ void __launch_bounds__(kInsertWarps* kWarp) link_back_kernel(Rows rows, BackLinks back) {
    constexpr int kRows = kWarp / detail::kLinkedColumns;  // of a warp
    const std::int64_t warp = std::int64_t(blockIdx.x) * kInsertWarps + threadIdx.x / kWarp;
    const std::int64_t object = warp * kRows + lane_id() / detail::kLinkedColumns;
    const int j = lane_id() % detail::kLinkedColumns;
    if (object >= back.n || j >= rows.k) return;
    const std::int32_t id = rows.ids[object * rows.k + j];
    const float key = rows.key_of(rows.distances[object * rows.k + j]);
    if (id < 0 || key <= back.reach[id]) return;
    const u32 place = mix(u32(object)) % detail::kBackLinks;
    atomicMax(&back.ids[std::int64_t(id) * detail::kBackLinks + place], std::int32_t(object));
}

/// The objects of the batch and behind them the pivots, and their vectors, as one array.
template <class T>
__global__ void __launch_bounds__(kInsertWarps* kWarp)
    gather_kernel(Sets sets, Batch batch, Pivots pivots, u32* objects, T* vectors) {
    const u32 i = blockIdx.x * kInsertWarps + threadIdx.x / kWarp;
    if (i >= batch.count + pivots.count) return;
    const u32 object = i < batch.count ? batch.first + i : pivots.object(i - batch.count);
    if (lane_id() == 0) objects[i] = object;
    const T* row = sets.row<T>(object);
    for (std::int64_t c = lane_id(); c < sets.d; c += kWarp) vectors[i * sets.d + c] = row[c];
}

/// Where a row leads, a lane having one of 32 links: its nearest, and the links back.
inline constexpr int kLinkRuns = detail::kBranches / kWarp + 1;
static_assert(detail::kBranches % kWarp == 0 && detail::kBackLinks <= kWarp);

/// Shared memory of a search, a warp; of whole 16 bytes.
inline __host__ __device__ int search_bytes(int length) {
    return SortedList::bytes(length) + kSeen * 2 + kRowsAtOnce * (kLinkRuns * kWarp + 1) * 4;
}
static_assert(kRowsAtOnce % 4 == 0 && kSeen % 8 == 0);

/// Finds the rows of a batch.
/// \param beam  objects whose rows are walked along, at most batch.length, which is at least k
template <class T, class M>
__global__ void __launch_bounds__(kSearchWarps* kWarp, kSearchBlocks)
    search_kernel(Sets sets, Rows rows, BackLinks back, Batch batch, int beam, InsertCounters* counters) {
    const int length = batch.length;
    const u32 number = blockIdx.x * kSearchWarps + threadIdx.x / kWarp, object = batch.first + number;
    if (number >= batch.count) return;
    std::byte* memory = memory_of_warp(search_bytes(length));
    SortedList list(reinterpret_cast<u64*>(memory), length);
    const Seen seen{reinterpret_cast<std::uint16_t*>(memory + SortedList::bytes(length))};
    u32* unseen = reinterpret_cast<u32*>(seen.tags + kSeen);  // kRowsAtOnce rows
    u32* walked = unseen + kRowsAtOnce * kLinkRuns * kWarp;   // kRowsAtOnce
    seen.clear();

    /// The nearest objects whose rows were not walked along yet, and how many.
    const auto next_open = [&] {
        int open = 0;
        const int within = min(list.size, beam);
        for (int first = 0; first < within && open < kRowsAtOnce; first += kWarp) {
            const int i = first + lane_id();
            const u64 entry = i < within ? list.entries[i] : 0;
            const u32 all = __ballot_sync(kAllLanes, entry & 1);
            const int place = open + rank_in(all);
            if ((entry & 1) != 0 && place < kRowsAtOnce) {
                list.entries[i] = entry & ~u64(1);
                walked[place] = ranked_id(entry) & ~kNewBit;
            }
            open += __popc(all);
        }
        __syncwarp();
        return min(open, kRowsAtOnce);
    };
    const u32 end = batch.first + batch.count;
    u64 compared = 0;
    if (lane_id() < 2) walked[lane_id()] = lane_id() == 0 ? kNoId : object;  // of kNoId: where to start
    __syncwarp();
    for (int open = 2; open > 0; open = next_open()) {
        u32 links[kRowsAtOnce][kLinkRuns];
#pragma unroll
        for (int r = 0; r < kRowsAtOnce; ++r) {
            const u32 from = r < open ? walked[r] : object;
            const auto* row = reinterpret_cast<const u32*>(rows.ids) + std::int64_t(from) * rows.k;
            int many = min(rows.k, detail::kBranches);
            if (from >= batch.first) {
                row = batch.peers + std::int64_t(from - batch.first) * batch.peer_count;
                many = batch.peer_count;
            }
            if (from == kNoId) {
                row = batch.starts + std::int64_t(number) * batch.start_count;
                many = batch.start_count;
            }
            if (r >= open) many = 0;
#pragma unroll
            for (int c = 0; c < kLinkRuns - 1; ++c) {
                const int j = c * kWarp + lane_id();
                links[r][c] = j < many ? row[j] : kNoId;
            }
            const bool has_back = r < open && from < back.n && lane_id() < detail::kBackLinks;
            const auto* back_row = back.ids + std::int64_t(from) * detail::kBackLinks;
            links[r][kLinkRuns - 1] = has_back ? u32(back_row[lane_id()]) : kNoId;
        }
        int count = 0;
#pragma unroll
        for (int r = 0; r < kRowsAtOnce; ++r)
#pragma unroll
            for (int c = 0; c < kLinkRuns; ++c) {
                const u32 id = links[r][c];
                const bool fresh = id < end && id != object && seen.add(id);
                const u32 all = __ballot_sync(kAllLanes, fresh);
                if (fresh) unseen[count + rank_in(all)] = id;
                count += __popc(all);
            }
        __syncwarp();
        for (int first = 0; first < count; first += kWarp) {
            const int most = min(kWarp, count - first) - 1;
            const float distance = exact_each<T, M, kLanes>(
                sets.row<T>(object),
                [&](int i) { return sets.row<T>(unseen[first + min(i * kPairs + lane_id() / kLanes, most)]); }, sets.d,
                sets.whole);
            const int mine = lane_id() % kLanes * kPairs + lane_id() / kLanes;
            list.offer(mine <= most ? ranked(rows.key_of(distance), unseen[first + mine] | kNewBit) : kNothing);
        }
        compared += u64(count);
        list.settle();
    }
    list.store(rows, object);
    for (int j = lane_id(); j < length; j += kWarp)
        batch.found[std::int64_t(number) * length + j] = j < list.size ? list.entries[j] : kNothing;
    if (lane_id() == 0) atomicAdd(&counters->distances, compared);
}

/// Counts what the batch offers to which rows. A thread an entry of what was found.
__global__ void __launch_bounds__(kOfferThreads) offer_kernel(Rows rows, Batch batch, InsertCounters* counters) {
    __shared__ double phi;
    if (threadIdx.x == 0) phi = 0;
    const u32 at = blockIdx.x * kOfferThreads + threadIdx.x, number = at / u32(batch.length);
    const u64 entry = number < batch.count ? batch.found[at] : kNothing;
    const float key = ranked_distance(entry);
    u32 slot = kNoId;
    if (entry != kNothing) {
        const u32 id = ranked_id(entry) & ~kNewBit;
        const std::int64_t last = std::int64_t(id) * rows.k + rows.k - 1;
        const u32 last_id = rows.ids[last] < 0 ? kNoId : u32(rows.ids[last]);
        if (nearer(key, batch.first + number, rows.key_of(rows.distances[last]), last_id))
            slot = atomicAdd(&batch.counts[id], 1u);
    }
    if (number < batch.count) batch.slots[at] = slot;

    const bool in_row = entry != kNothing && at % u32(batch.length) < u32(rows.k);
    const int offered = __syncthreads_count(slot != kNoId), entries = __syncthreads_count(in_row);
    const float sum = warp_sum(in_row ? rows.key_of(key) : 0.0f);
    if (lane_id() == 0) atomicAdd(&phi, double(sum));
    __syncthreads();
    if (threadIdx.x != 0) return;
    atomicAdd(&counters->offered, u64(offered));
    atomicAdd(&counters->entries, u64(entries));
    atomicAdd(&counters->phi, phi);
}

/// Writes the offers down, those to a row together.
__global__ void __launch_bounds__(kOfferThreads) scatter_offers_kernel(Batch batch) {
    const u32 at = blockIdx.x * kOfferThreads + threadIdx.x, number = at / u32(batch.length);
    const u32 slot = number < batch.count ? batch.slots[at] : kNoId;
    if (slot == kNoId) return;
    const u64 entry = batch.found[at];
    batch.offers[batch.ends[ranked_id(entry) & ~kNewBit] + slot] = ranked(ranked_distance(entry), batch.first + number);
}

/// The rows take in what is nearest of what they have and what they are offered, in whatever order. A warp looks at
/// kRowsToTakeIn rows.
__global__ void __launch_bounds__(kInsertWarps* kWarp)
    take_in_kernel(Rows rows, Batch batch, InsertCounters* counters) {
    SortedList list(reinterpret_cast<u64*>(memory_of_warp(SortedList::bytes(rows.k))), rows.k);
    const u32 first_row = (blockIdx.x * kInsertWarps + threadIdx.x / kWarp) * kRowsToTakeIn;
    const u32 row = first_row + lane_id();
    const bool here = lane_id() < kRowsToTakeIn && row < batch.first + batch.count;
    u32 offered = __ballot_sync(kAllLanes, here && batch.counts[row] != 0);
    for (; offered != 0; offered &= offered - 1) {
        const u32 object = first_row + __ffs(int(offered)) - 1, count = batch.counts[object];
        const u64* offers = batch.offers + batch.ends[object];
        list.load(rows, object);
        for (u32 first = 0; first < count; first += kWarp)
            list.offer(first + lane_id() < count ? offers[first + lane_id()] : kNothing);
        list.settle();
        list.store(rows, object);
    }
    if (lane_id() == 0 && list.entered != 0) atomicAdd(&counters->accepted, u64(list.entered));
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
            const float distance = exact<T, M, kWarp>(sets.row<T>(u32(object)), sets.row<T>(id), sets.d);
            list.offer(lane_id() == 0 ? ranked(rows.key_of(distance), id) : kNothing);
            list.settle();
        }
        list.store(rows, object);
        __syncwarp();
    }
}

}  // namespace gnnd::cuda

// SPDX-License-Identifier: MIT
#pragma once
/// \file search.cuh
/// Step 2 of append() by searching: a greedy search with a beam for every object of the batch, by a warp.

#include "gnnd/cuda/append/insert.cuh"
#include "gnnd/cuda/device/exact.cuh"

namespace gnnd::cuda {

inline constexpr int kSearchWarps = 2;    ///< of a block of searches, which end at different times
inline constexpr int kSearchBlocks = 10;  ///< of an SM, at least; for more the compiler would lack registers
inline constexpr int kSeen = 2048;        ///< places for objects that a search has seen, a power of two
inline constexpr int kRowsAtOnce = 4;     ///< rows that a search walks along in a step: their loads hide each other
inline constexpr int kLanes = 8;          ///< lanes that compute a distance
inline constexpr int kPairs = kWarp / kLanes;

/// Remembers most of the objects that a search has seen: of those that share a place the last one stays, and one that
/// was forgotten is compared again. One of 30,000 that were not seen passes for seen. Lanes that write to the same
/// place at once race on purpose: either may stay.
struct Seen {
    std::uint16_t* tags;  ///< kSeen

    __device__ void clear() const {
        for (int i = lane_id(); i < kSeen / 8; i += kWarp) reinterpret_cast<uint4*>(tags)[i] = {0, 0, 0, 0};
        __syncwarp();
    }
    /// True if it is new.
    __device__ bool add(u32 id) const {
        const u32 hash = mix(id);
        const auto tag = std::uint16_t(hash >> 16 | 1);
        std::uint16_t& place = tags[hash % kSeen];
        const bool is_new = place != tag;
        place = tag;
        return is_new;
    }
};

/// The links of a row, a lane having one of 32: its nearest, and the links back.
inline constexpr int kLinkRuns = detail::kBranches / kWarp + 1;
static_assert(detail::kBranches % kWarp == 0 && detail::kBackLinks <= kWarp);

/// Shared memory of a search, a warp; of whole 16 bytes.
inline __host__ __device__ int search_bytes(int length) {
    return SortedList::bytes(length) + kSeen * 2 + kRowsAtOnce * (kLinkRuns * kWarp + 1) * 4;
}
static_assert(kRowsAtOnce % 4 == 0 && kSeen % 8 == 0);

/// Finds the rows of a batch, and who takes its objects in: of old ones those whose last entry is farther, of the
/// batch, whose rows come to be meanwhile, whoever was met. \param beam  objects whose rows are walked along, at most
/// batch.length, which is at least k
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
    u64* const met = batch.met + std::int64_t(number) * batch.offers_each;
    int offers = 0;
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
            const int most = min(kWarp, count - first) - 1, mine = lane_id() % kLanes * kPairs + lane_id() / kLanes;
            const u32 id = unseen[first + min(mine, most)];
            const float last = id < batch.first ? rows.distances[std::int64_t(id) * rows.k + rows.k - 1] : 0;
            const float distance = exact_each<T, M, kLanes>(
                sets.row<T>(object),
                [&](int i) { return sets.row<T>(unseen[first + min(i * kPairs + lane_id() / kLanes, most)]); }, sets.d,
                sets.whole);
            const u64 entry = mine <= most ? ranked(rows.key_of(distance), id | kNewBit) : kNothing;
            list.offer(entry);
            const bool takes = mine <= most && (id >= batch.first || rows.key_of(distance) <= rows.key_of(last));
            const u32 all = __ballot_sync(kAllLanes, takes);
            const int place = offers + rank_in(all);
            if (takes && place < batch.offers_each) met[place] = entry;
            offers += __popc(all);
        }
        compared += u64(count);
        list.settle();
    }
    list.store(rows, object);
    for (int j = offers + lane_id(); j < batch.offers_each; j += kWarp) met[j] = kNothing;
    const int entries = min(list.size, rows.k);
    double phi = 0;
    for (int j = lane_id(); j < entries; j += kWarp) phi += double(rows.key_of(ranked_distance(list.entries[j])));
    phi = warp_sum(phi);
    if (lane_id() != 0) return;
    atomicAdd(&counters->distances, compared);
    atomicAdd(&counters->entries, u64(entries));
    atomicAdd(&counters->phi, phi);
}

}  // namespace gnnd::cuda

#pragma once
/// \file cross_match.cuh
/// Steps 3 and 4 of GNND: every object's NEW samples are compared with each other and with its OLD samples, in shared
/// memory, and what is nearest goes to the lists. One block an object.
///
/// In GGM NEW samples are all of the other set and OLD ones of the object's own (sample.cuh), so that the pairs across
/// are those of NEW with OLD; NEW with NEW is left out.

#include "gnnd/cuda/device/best.cuh"
#include "gnnd/cuda/device/state.cuh"
#include "gnnd/cuda/device/wgmma.cuh"
#include "gnnd/cuda/update.cuh"
#include "gnnd/params.h"

namespace gnnd::cuda {

/// The distinct samples of the block's object, NEW ones from place 0 on and OLD ones from place T on; an id that is
/// both counts as NEW.
template <int T>
struct SampleTile {
    u32 ids[2 * T];
    u32 table[4 * T];  // hash table over the ids
    int in_warp[2 * T / kWarp];
    int new_count, old_count;

    /// AnyOrder: where the own list and the reverse samples bring the same id, either place may be its place.
    /// \return false where there is nothing to do any more
    template <bool AnyOrder>
    __device__ bool gather(const Samples& samples, std::int64_t object, const Control* control) {
        const int kind = threadIdx.x / T, place = threadIdx.x % T;  // T is a multiple of the warp
        // All loads before the first use: they wait for memory together.
        u32 id = place < 2 * samples.p ? samples.ids[(object * 2 + kind) * 2 * samples.p + place] : kNoId;
        const int own = samples.own[object] >> (16 * kind) & 0xffff;
        const int reverse = min(int(samples.reverse[2 * object + kind]), samples.p);
        if (control->stopped) return false;
        for (int i = threadIdx.x; i < 4 * T; i += 2 * T) table[i] = kNoId;
        if (place - (place < samples.p ? 0 : samples.p) >= (place < samples.p ? own : reverse)) id = kNoId;
        // What shares a turn is distinct by itself, or may come in any order.
        constexpr int kTurns = AnyOrder ? 2 : 4;
        const int turn = AnyOrder ? kind : 2 * kind + (place >= samples.p);
        bool first = false;
#pragma unroll
        for (int now = 0; now < kTurns; ++now) {
            __syncthreads();
            if (turn == now) first = insert(id);
        }
        const u32 ballot = __ballot_sync(kAllLanes, first);
        if (lane_id() == 0) in_warp[threadIdx.x / kWarp] = __popc(ballot);
        __syncthreads();
        int before = 0, all[2] = {0, 0};
        for (int warp = 0; warp < 2 * T / kWarp; ++warp) {
            const int of = warp * kWarp / T;
            if (of == kind && warp < int(threadIdx.x / kWarp)) before += in_warp[warp];
            all[of] += in_warp[warp];
        }
        if (first) ids[kind * T + before + rank_in(ballot)] = id;
        new_count = all[0];  // all threads write the same
        old_count = all[1];
        __syncthreads();
        return true;
    }

  private:
    /// True for the first thread that brings this id.
    __device__ bool insert(u32 id) {
        if (id == kNoId) return false;
        for (u32 slot = mix(id);; ++slot) {
            const u32 found = atomicCAS(&table[slot % (4 * T)], kNoId, id);
            if (found == kNoId) return true;
            if (found == id) return false;
        }
    }
};

__host__ __device__ constexpr int round_up(int value, int to) {
    return (value + to - 1) / to * to;
}

/// Bytes of shared memory: the rows, and where every pair counts, the sums of all.
template <class Engine, int T, bool OneSlab, class Update>
constexpr int cross_match_bytes() {
    constexpr int kRows = (OneSlab ? 1 : 2) * 2 * T * kSlab;
    static_assert(Update::kKept != 0 ||
                  kRows >= T / kTileRows * kMaxK * int(sizeof(u64)));  // each warp's room to merge
    return kRows + (Update::kKept == 0 ? T * (2 * T + 1) * int(sizeof(typename Engine::Sum)) : 0);
}

/// T: samples of a kind that a block has room for, at least 2p. Each of the T/16 warps takes 16 NEW and 16 OLD rows.
/// One slab: rows fit one slab, and no sums are held over.
template <class Engine, int T, bool OneSlab, class Update>
__global__ void __launch_bounds__(2 * T)
    cross_match_kernel(Points points, Samples samples, Update update, const u32* visit, std::int64_t first_object,
                       int stride, const Control* control, Counters* counters) {
    using Sum = typename Engine::Sum;
    constexpr int Top = Update::kKept;
    constexpr bool kEveryPair = Top == 0;
    using Row = Best<Sum, kEveryPair ? 1 : Top>;
    using Keys = Key<Sum, OneSlab && std::is_same_v<Sum, int>>;
    constexpr int kStages = OneSlab ? 1 : 2;
    constexpr int kRows = T < kGroupRows ? T : kGroupRows;  // of a group of warps
    constexpr int kChunks = T / kChunk;
    constexpr int kPitch = 2 * T + 1;  // odd, so that columns are read without bank conflicts as well
    extern __shared__ __align__(1024) std::uint8_t tile[];                      // kStages x 2T x kSlab
    Sum* const pairs = reinterpret_cast<Sum*>(tile + kStages * 2 * T * kSlab);  // T x kPitch, where every pair counts
    __shared__ SampleTile<T> sample;
    __shared__ Sum terms[2 * T];
    __shared__ float bounds[2 * T];
    const std::int64_t place = first_object + std::int64_t(blockIdx.x) * stride;
    const std::int64_t object = visit != nullptr ? std::int64_t(visit[place]) : place;
    if (!sample.template gather<Update::kOrderMatters>(samples, object, control)) return;
    const int new_count = sample.new_count, old_count = sample.old_count;
    if (new_count == 0 || new_count + old_count < 2) return;
    const bool inside = points.pairs.all();  // NEW with NEW
    if (threadIdx.x == 0)
        atomicAdd(&counters[blockIdx.x % kSpread].distances,
                  (inside ? u64(new_count) * (new_count - 1) / 2 : 0) + u64(new_count) * old_count);

    const int slabs = (points.row_bytes + kSlab - 1) / kSlab;
    const auto fetch = [&](int slab) {
        std::uint8_t* stage = tile + slab % kStages * (2 * T * kSlab);
        load_rows<2 * T>(stage, 0, sample.ids, new_count, round_up(new_count, kTileColumns), points, slab);
        load_rows<2 * T>(stage, T, sample.ids + T, old_count, round_up(old_count, kTileColumns), points, slab);
        commit_loads();
    };
    fetch(0);
    {
        const int kind = threadIdx.x / T, place = threadIdx.x % T;
        const bool real = place < (kind == 0 ? new_count : old_count);
        const u32 id = real ? sample.ids[threadIdx.x] : 0;
        terms[threadIdx.x] = real ? Keys::term(points, id, threadIdx.x) : Keys::no_term();
        bounds[threadIdx.x] = update.bound_of(id);
    }

    const int stripe = threadIdx.x / kWarp * kTileRows;  // this warp's first row of either kind
    const int group = stripe / kRows * kRows;            // its group's
    const Sum factor = Keys::factor(points);
    Row new_new[2], new_old[2], old_new[2];  // of rows stripe + lane/4 and 8 below
    for (int i = 0; i < 2; ++i) {
        new_new[i].clear();
        new_old[i].clear();
        old_new[i].clear();
    }
    const auto choose = [&](Row(&rows)[2], const Sum(&sum)[4], int column, bool diagonal) {
        const int c = column + lane_id() % 4 * 2;
        const Sum t0 = terms[c], t1 = terms[c + 1];
        Sum key[4] = {Keys::make(sum[0], factor, t0, c), Keys::make(sum[1], factor, t1, c + 1),
                      Keys::make(sum[2], factor, t0, c), Keys::make(sum[3], factor, t1, c + 1)};
        if (diagonal) {
            const int r = stripe + lane_id() / 4;
            for (int i = 0; i < 4; ++i)
                if (r + i / 2 * 8 == c + i % 2) key[i] = Keys::worst();
        }
        rows[0].take(key[0], key[1]);
        rows[1].take(key[2], key[3]);
    };
    const auto keep = [&](const Sum(&sum)[4], int column) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            pairs[(stripe + lane_id() / 4 + i / 2 * 8) * kPitch + column + lane_id() % 4 * 2 + i % 2] = sum[i];
    };
    // The first `count` columns of a chunk that starts at `column`.
    const auto choose_all = [&](Row(&best)[2], const Sum(&sum)[kChunkTiles][4], int column, int count, bool same) {
#pragma unroll
        for (int t = 0; t < kChunkTiles; ++t) {
            if (t * kTileColumns >= count) continue;
            if constexpr (kEveryPair)
                keep(sum[t], column + t * kTileColumns);
            else
                choose(best, sum[t], column + t * kTileColumns,
                       same && (column + t * kTileColumns) / kTileRows * kTileRows == stripe);
        }
    };
    const auto tiles_of = [](int count) { return (count + kTileColumns - 1) / kTileColumns; };
    const bool group_has_new = group < new_count;
    const bool group_has_old = group < old_count && !kEveryPair;  // every pair: NEW with OLD has them already

    if constexpr (OneSlab) {
        const int steps = points.row_bytes / kStep;
        wait_loads<0>();
        publish_rows();
        __syncthreads();
        Sum sum[kChunkTiles][4];
        for (int chunk = 0; chunk < kChunks; ++chunk) {
            const int at = chunk * kChunk, new_here = new_count - at, old_here = old_count - at;
            if (new_here > 0 && group_has_new && inside) {
                multiply_group<Engine, kRows / kTileRows>(sum, tile, group, at, steps, tiles_of(new_here), false);
                choose_all(new_new, sum, at, new_here, true);
            }
            if (old_here > 0 && group_has_new) {
                multiply_group<Engine, kRows / kTileRows>(sum, tile, group, T + at, steps, tiles_of(old_here), false);
                choose_all(new_old, sum, T + at, old_here, false);
            }
            if (new_here > 0 && group_has_old) {
                multiply_group<Engine, kRows / kTileRows>(sum, tile, T + group, at, steps, tiles_of(new_here), false);
                choose_all(old_new, sum, at, new_here, false);
            }
        }
    } else {
        Sum sums[3][kChunks][kChunkTiles][4];  // NEW with NEW, NEW with OLD, OLD with NEW
        for (int slab = 0; slab < slabs; ++slab) {
            if (slab + 1 < slabs) {
                fetch(slab + 1);
                wait_loads<1>();
            } else
                wait_loads<0>();
            publish_rows();
            __syncthreads();
            const std::uint8_t* stage = tile + slab % kStages * (2 * T * kSlab);
            const int steps = min(kSlab, points.row_bytes - slab * kSlab) / kStep;
#pragma unroll
            for (int chunk = 0; chunk < kChunks; ++chunk) {
                const int at = chunk * kChunk, new_here = new_count - at, old_here = old_count - at;
                if (new_here > 0 && group_has_new && inside)
                    multiply_group<Engine, kRows / kTileRows>(sums[0][chunk], stage, group, at, steps,
                                                              tiles_of(new_here), slab > 0);
                if (old_here > 0 && group_has_new)
                    multiply_group<Engine, kRows / kTileRows>(sums[1][chunk], stage, group, T + at, steps,
                                                              tiles_of(old_here), slab > 0);
                if (new_here > 0 && group_has_old)
                    multiply_group<Engine, kRows / kTileRows>(sums[2][chunk], stage, T + group, at, steps,
                                                              tiles_of(new_here), slab > 0);
            }
            __syncthreads();
        }
#pragma unroll
        for (int chunk = 0; chunk < kChunks; ++chunk) {
            const int at = chunk * kChunk;
            choose_all(new_new, sums[0][chunk], at, group_has_new && inside ? new_count - at : 0, true);
            choose_all(new_old, sums[1][chunk], T + at, group_has_new ? old_count - at : 0, false);
            choose_all(old_new, sums[2][chunk], at, group_has_old ? new_count - at : 0, false);
        }
    }

    if constexpr (kEveryPair) {
        __syncthreads();
        u64* const room = reinterpret_cast<u64*>(tile) + threadIdx.x / kWarp * kMaxK;
        for (int i = threadIdx.x / kWarp; i < new_count + old_count; i += 2 * T / kWarp) {
            const bool old = i >= new_count;
            const int row = old ? T + i - new_count : i;
            u64 found[2 * T / kWarp];
#pragma unroll
            for (int c = 0; c < 2 * T / kWarp; ++c) {
                const int column = c * kWarp + lane_id();
                found[c] = kNothing;
                if (column < T ? column >= new_count || column == row || !(inside || old)
                               : old || column - T >= old_count)
                    continue;
                const Sum sum = old ? pairs[column * kPitch + row] : pairs[row * kPitch + column];
                const Sum key = Keys::make(sum, factor, terms[column], column);
                found[c] = ranked(Keys::distance(points, key, terms[row]), sample.ids[column] | kNewBit);
            }
            update.take_row(sample.ids[row], bounds[row], found, room);
        }
    } else {
        // The four lanes that share rows end with one of the four results each: bit 0 chooses the row, bit 1 the
        // partners. All offers of a thread go together, so that they wait for memory together.
        Offer offers[2 * Top];
        const auto offer = [&](Offer(&to)[2 * Top], int at, const Row& best, int row, int count) {
#pragma unroll
            for (int i = 0; i < Top; ++i) {
                const bool valid = row % T < count && Keys::valid(best.key[i]);
                to[at + i].bound = bounds[row];
                to[at + i].distance = valid ? Keys::distance(points, best.key[i], terms[row]) : INFINITY;
                to[at + i].u = sample.ids[valid ? row : 0];
                to[at + i].v = sample.ids[valid ? Keys::column(best.key[i]) : 0];
            }
        };
        const int row = stripe + lane_id() / 4 + lane_id() % 2 * 8;
        const Row by_row_new = Row::halve(new_new[0], new_new[1], 1);
        const Row by_row_old = Row::halve(new_old[0], new_old[1], 1);
        offer(offers, 0, Row::halve(by_row_new, by_row_old, 2), row, new_count);
        const Row of_old = Row::halve(old_new[0], old_new[1], 1);
        offer(offers, Top, Row::halve(of_old, of_old, 2), T + row, lane_id() % 4 < 2 ? old_count : 0);
        update.take(offers);
    }
}

}  // namespace gnnd::cuda

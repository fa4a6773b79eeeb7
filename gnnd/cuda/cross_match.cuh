// SPDX-License-Identifier: MIT
#pragma once
/// \file cross_match.cuh
/// Steps 3 and 4 of GNND: every object's NEW samples are compared with each other and with its OLD samples, in shared
/// memory, and what is nearest goes to the lists. One block an object.
///
/// In GGM NEW samples are all of the other set and OLD ones of the object's own (sample.cuh), so that the pairs across
/// are those of NEW with OLD; NEW with NEW is left out.
///
/// The samples' rows are a tile of 2T rows, NEW ones from 0 and OLD ones from T on. Three products of it are wanted:
/// NEW with NEW, NEW with OLD, and OLD with NEW, which is the second one again, but seen from the OLD samples' side. Of
/// each product a warp has a stripe of 16 rows; lane l holds four sums of every eight columns:
///
///                            columns
///                  0  1    2  3    4  5    6  7
///     row r        4r      4r+1    4r+2    4r+3     the numbers of the lanes: r = l / 4,
///     row r + 8    4r      4r+1    4r+2    4r+3     two columns a lane, l % 4 * 2 and the next
///
/// So the lanes 4r to 4r + 3 share two rows, and each knows what is nearest in a quarter of the columns. For NEW
/// samples that are four results, two rows with the nearest NEW and the nearest OLD partner each. Exchanges with the
/// neighbour (bit 0 of the lane) and with the one after (bit 1) leave one of them to each lane:
///
///     lane         4r              4r+1            4r+2            4r+3
///     result       r with NEW      r+8 with NEW    r with OLD      r+8 with OLD
///
/// OLD samples have partners of one kind only, as NEW ones have in the first iteration: there the lanes 4r + 2 and
/// 4r + 3 have what 4r and 4r + 1 have, and each offers one of the two partners.

#include "gnnd/cuda/device/best.cuh"
#include "gnnd/cuda/device/k_tiles.cuh"
#include "gnnd/cuda/device/sample_tile.cuh"
#include "gnnd/cuda/update.cuh"
#include "gnnd/params.h"

namespace gnnd::cuda {

__host__ __device__ constexpr int round_up(int value, int to) {
    return (value + to - 1) / to * to;
}

/// The state of a thread of the kernel, and the pieces of its work. All threads of a block call them together.
/// \tparam T          samples of a kind that a block has room for, at least 2p. Each of its T/16 warps takes 16 NEW and
///                    16 OLD rows
/// \tparam KTiles     1 or 2: rows are of at most so many tiles of kTileBytes, which lie in shared memory together, and
///                    one product is done after the other; 0: rows of any length pass through it, and the sums of all
///                    products are held over
/// \tparam Chunk      columns of a product at a time, 32 or 64: with 64 the rows are read from shared memory half as
///                    often, but a multiprocessor has room for fewer blocks
/// \tparam Kinds      1: there are no OLD samples yet
template <class Arithmetic_, int T_, int KTiles, class Update_, int Chunk, int Kinds>
struct CrossMatch {
    using Arithmetic = Arithmetic_;
    using Update = Update_;
    using Sum = typename Arithmetic::Sum;
    static constexpr int T = T_;
    static constexpr bool kEveryPair = Update::kKept == 0, kOnlyNew = Kinds == 1, kWhole = KTiles != 0;
    static_assert(!kOnlyNew || !kEveryPair);
    static constexpr int kTop = kEveryPair ? 1 : Update::kKept;
    using Row = Best<Sum, kTop>;
    using Keys = Key<Sum, KTiles == 1 && std::is_same_v<Sum, int>>;
    static constexpr int kChunk = Chunk, kChunkTiles = kChunk / kTileColumns;
    using ChunkSums = Sum[kChunkTiles][4];
    enum Product { kNewNew, kNewOld, kOldNew, kProducts };

    static constexpr int kStages = KTiles == 0 ? 2 : KTiles, kStageBytes = Kinds * T * kTileBytes;
    static constexpr int kRowsOfGroup = T < kGroupRows ? T : kGroupRows;  ///< of a group of warps
    static constexpr int kWarpsOfGroup = kRowsOfGroup / kTileRows;
    static constexpr int kChunks = T / kChunk;
    static constexpr int kPitch = 2 * T + 1;  ///< odd, so that columns are read without bank conflicts as well
    /// Of shared memory: the rows, and where every pair counts, the sums of all.
    static constexpr int kBytes = kStages * kStageBytes + (kEveryPair ? T * kPitch * int(sizeof(Sum)) : 0);
    static_assert(!kEveryPair || kStages * kStageBytes >= T / kTileRows * kMaxK * int(sizeof(u64)));  // room to merge

    /// Blocks on a multiprocessor, at least; 0: as the compiler likes. Sums of long rows take 128 registers a thread
    /// where it is told that more would cost a block; sums without tensor cores would spill.
    static constexpr int kBlocks = KTiles != 0 || T == 128 || !Arithmetic::kTensor ? 0 : 256 / T;

    struct Shared {
        SampleTile<T, Kinds> samples;
        Sum terms[Kinds * T];
        float bounds[Kinds * T];
    };

    const Points& points;
    const Update& update;
    std::uint8_t* const tile;  ///< shared: kStages x 2T x kTileBytes
    Sum* const pairs;          ///< shared: T x kPitch sums, where every pair counts
    Shared& shared;
    const int new_count, old_count;
    const bool inside;            ///< NEW with NEW
    const int stripe;             ///< this warp's first row of either kind
    const int group;              ///< its group's
    const bool has_new, has_old;  ///< the group has rows of the kind, in a product
    const Sum factor;
    Row best[kProducts][2];  ///< of the rows stripe + lane / 4 and 8 below

    __device__ __forceinline__ CrossMatch(const Points& points_, const Update& update_, std::uint8_t* tile_,
                                          Shared& shared_)
        : points(points_),
          update(update_),
          tile(tile_),
          pairs(reinterpret_cast<Sum*>(tile_ + kStages * kStageBytes)),
          shared(shared_),
          new_count(shared_.samples.new_count),
          old_count(shared_.samples.old_count),
          inside(points_.pairs.all()),
          stripe(threadIdx.x / kWarp * kTileRows),
          group(T == kRowsOfGroup ? 0 : stripe / kRowsOfGroup * kRowsOfGroup),
          has_new(group < new_count),
          has_old(group < old_count && !kEveryPair),  // every pair: NEW with OLD has them already
          factor(Keys::factor(points_)) {}

    /// Starts copying the k-th tile of the samples' rows.
    __device__ __forceinline__ void fetch(int k, std::uint8_t* stage) const {
        const u32* ids = shared.samples.ids;
        load_rows<2 * T, T>(stage, 0, ids, new_count, round_up(new_count, kTileColumns), points, k);
        if (!kOnlyNew) load_rows<2 * T, T>(stage, T, ids + T, old_count, round_up(old_count, kTileColumns), points, k);
        commit_loads();
    }

    __device__ __forceinline__ void read_terms() const {
        const int kind = threadIdx.x / T, place = threadIdx.x % T;
        if (kind >= Kinds) return;
        const bool real = place < (kind == 0 ? new_count : old_count);
        const u32 id = real ? shared.samples.ids[threadIdx.x] : 0;
        u32 bias;
        const float bound = update.bound_of(id, bias);
        const Sum term = Keys::term_of(points, bias, threadIdx.x);
        shared.terms[threadIdx.x] = real ? term : Keys::no_term();
        shared.bounds[threadIdx.x] = bound;
    }

    /// True if this group of warps has rows in a product.
    template <int P>
    __device__ __forceinline__ bool is_wanted() const {
        return P == kNewNew ? has_new && inside : P == kNewOld ? has_new : has_old;
    }
    /// The columns that count in a product, from the chunk's first on; 0 or less for none.
    template <int P>
    __device__ __forceinline__ int columns_of(int chunk) const {
        return (P == kNewOld ? old_count : new_count) - chunk * kChunk;
    }

    template <int P>
    __device__ __forceinline__ void multiply(ChunkSums& sums, const std::uint8_t* stage, int chunk, int count,
                                             int steps, bool add) const {
        multiply_group<Arithmetic, kWarpsOfGroup>(sums, stage, (P == kOldNew ? T : 0) + group,
                                                  (P == kNewOld ? T : 0) + chunk * kChunk, steps,
                                                  (count + kTileColumns - 1) / kTileColumns, add);
    }

    /// Keeps the nearest of eight columns.
    /// \param own  the terms of this thread's rows
    template <int P>
    __device__ __forceinline__ void choose(const Sum (&sum)[4], const Sum (&own)[2], int column) {
        const int c = column + lane_id() % 4 * 2;
        Sum key[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            key[i] = Keys::make(sum[i], factor, Keys::pair_term(shared.terms[c + i % 2], own[i / 2]), c + i % 2);
        if (P == kNewNew && column / kTileRows * kTileRows == stripe) {  // no sample is its own partner
            const int r = stripe + lane_id() / 4;
            for (int i = 0; i < 4; ++i)
                if (r + i / 2 * 8 == c + i % 2) key[i] = Keys::worst();
        }
        best[P][0].take(key[0], key[1]);
        best[P][1].take(key[2], key[3]);
    }

    __device__ __forceinline__ void keep(const Sum (&sum)[4], int column) const {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            pairs[(stripe + lane_id() / 4 + i / 2 * 8) * kPitch + column + lane_id() % 4 * 2 + i % 2] = sum[i];
    }

    /// Of a stripe without rows, whose group multiplied it all the same, nothing is chosen.
    template <int P>
    __device__ __forceinline__ void choose_all(const ChunkSums& sums, int chunk, int count) {
        if (stripe >= (P == kOldNew ? old_count : new_count)) return;
        const int first = (P == kNewOld ? T : 0) + chunk * kChunk;
        const int row = (P == kOldNew ? T : 0) + stripe + lane_id() / 4;
        const Sum own[2] = {shared.terms[row], shared.terms[row + 8]};
#pragma unroll
        for (int t = 0; t < kChunkTiles; ++t) {
            if (t * kTileColumns >= count) continue;
            if constexpr (kEveryPair)
                keep(sums[t], first + t * kTileColumns);
            else
                choose<P>(sums[t], own, first + t * kTileColumns);
        }
    }

    template <int P>
    __device__ __forceinline__ void multiply_if_wanted(ChunkSums& sums, const std::uint8_t* stage, int chunk, int steps,
                                                       bool add) const {
        if (columns_of<P>(chunk) > 0 && is_wanted<P>())
            multiply<P>(sums, stage, chunk, columns_of<P>(chunk), steps, add);
    }

    template <int P>
    __device__ __forceinline__ void multiply_and_choose(ChunkSums& sums, int chunk) {
        const int count = columns_of<P>(chunk);
        if (count <= 0 || !is_wanted<P>()) return;
#pragma unroll
        for (int k = 0; k < KTiles; ++k)
            multiply<P>(sums, tile + k * kStageBytes, chunk, count,
                        min(kTileBytes, points.row_bytes - k * kTileBytes) / kStep, k > 0);
        choose_all<P>(sums, chunk, count);
    }

    __device__ __forceinline__ void match_whole_rows() {
#pragma unroll
        for (int k = 0; k < KTiles; ++k) fetch(k, tile + k * kStageBytes);
        read_terms();  // while the rows are on their way
        clear();
        wait_loads<0>();
        publish_rows();
        __syncthreads();
        ChunkSums sums;
        for (int chunk = 0; chunk < kChunks; ++chunk) {
            multiply_and_choose<kNewNew>(sums, chunk);
            if (kOnlyNew) continue;
            multiply_and_choose<kNewOld>(sums, chunk);
            multiply_and_choose<kOldNew>(sums, chunk);
        }
    }

    __device__ __forceinline__ void match_long_rows() {
        ChunkSums sums[kProducts][kChunks];
        clear();
        for_each_k_tile<kStages, true>(
            tile, kStageBytes, points,
            [&](int k, std::uint8_t* stage) {
                fetch(k, stage);
                if (k == 0) read_terms();
            },
            [&](int k, const std::uint8_t* stage, int steps) {
#pragma unroll
                for (int chunk = 0; chunk < kChunks; ++chunk) {
                    multiply_if_wanted<kNewNew>(sums[kNewNew][chunk], stage, chunk, steps, k > 0);
                    if (kOnlyNew) continue;
                    multiply_if_wanted<kNewOld>(sums[kNewOld][chunk], stage, chunk, steps, k > 0);
                    multiply_if_wanted<kOldNew>(sums[kOldNew][chunk], stage, chunk, steps, k > 0);
                }
            });
#pragma unroll
        for (int chunk = 0; chunk < kChunks; ++chunk) {
            choose_all<kNewNew>(sums[kNewNew][chunk], chunk, is_wanted<kNewNew>() ? columns_of<kNewNew>(chunk) : 0);
            if (kOnlyNew) continue;
            choose_all<kNewOld>(sums[kNewOld][chunk], chunk, is_wanted<kNewOld>() ? columns_of<kNewOld>(chunk) : 0);
            choose_all<kOldNew>(sums[kOldNew][chunk], chunk, is_wanted<kOldNew>() ? columns_of<kOldNew>(chunk) : 0);
        }
    }

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (Row(&rows)[2] : best) {
            rows[0].clear();
            rows[1].clear();
        }
    }

    __device__ __forceinline__ void offer(Offer& to, Sum key, int row, int count) const {
        const bool valid = row % T < count && Keys::valid(key);
        to.bound = shared.bounds[row];
        to.distance = valid ? Keys::distance(points, key, shared.terms[row]) : INFINITY;
        to.u = shared.samples.ids[valid ? row : 0];
        to.v = shared.samples.ids[valid ? Keys::column(key) : 0];
    }

    /// The nearest to a row, known to two lanes of it, which share the offers.
    __device__ __forceinline__ void offer_half(Offer& to, const Row& half, int row, int count) const {
        const Row nearest = Row::halve(half, half, 2);
        const bool upper = lane_id() & 2;
        offer(to, upper ? nearest.key[kTop - 1] : nearest.key[0], row, kTop == 1 && upper ? 0 : count);
    }

    /// The exchanges of the diagram above. All offers of a thread go together, so that they wait for memory together.
    __device__ __forceinline__ void offer_nearest() const {
        const int row = stripe + lane_id() / 4 + lane_id() % 2 * 8;
        const Row with_new = Row::halve(best[kNewNew][0], best[kNewNew][1], 1);
        if constexpr (kOnlyNew) {
            Offer offers[1];
            offer_half(offers[0], with_new, row, new_count);
            return update.take(offers);
        }
        Offer offers[kTop + 1];
        const Row with_old = Row::halve(best[kNewOld][0], best[kNewOld][1], 1);
        const Row of_new = Row::halve(with_new, with_old, 2);
#pragma unroll
        for (int i = 0; i < kTop; ++i) offer(offers[i], of_new.key[i], row, new_count);
        offer_half(offers[kTop], Row::halve(best[kOldNew][0], best[kOldNew][1], 1), T + row, old_count);
        update.take(offers);
    }

    /// Every sample in turn takes all its partners, a warp a sample.
    __device__ __forceinline__ void offer_every_pair() const {
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
                const Sum term = Keys::pair_term(shared.terms[column], shared.terms[row]);
                const Sum key = Keys::make(sum, factor, term, column);
                found[c] = ranked(Keys::distance(points, key, shared.terms[row]), shared.samples.ids[column] | kNewBit);
            }
            update.take_row(shared.samples.ids[row], shared.bounds[row], found, room);
        }
    }
};

/// \param visit     n: the order in which blocks take objects, null: by number
/// \param first     blocks take every stride-th object of that order from there on
/// \param counters  kSpread
template <class Match>
__global__ void __launch_bounds__(2 * Match::T, Match::kBlocks)
    cross_match_kernel(Points points, Samples samples, typename Match::Update update, const u32* visit,
                       std::int64_t first, int stride, const StopFlag* stop, Counters* counters) {
    extern __shared__ __align__(1024) std::uint8_t tile[];
    __shared__ typename Match::Shared shared;
    const std::int64_t place = first + std::int64_t(blockIdx.x) * stride;
    const std::int64_t object = visit != nullptr ? std::int64_t(visit[place]) : place;
    if (!shared.samples.template gather<Match::Update::kOrderMatters>(samples, object, stop)) return;
    const int new_count = shared.samples.new_count, old_count = shared.samples.old_count;
    if (new_count == 0 || new_count + old_count < 2) return;
    Match match(points, update, tile, shared);
    if (threadIdx.x == 0)
        atomicAdd(&counters[blockIdx.x % kSpread].distances,
                  (match.inside ? u64(new_count) * (new_count - 1) / 2 : 0) + u64(new_count) * old_count);
    if constexpr (Match::kWhole)
        match.match_whole_rows();
    else
        match.match_long_rows();
    if constexpr (Match::kEveryPair)
        match.offer_every_pair();
    else
        match.offer_nearest();
}

}  // namespace gnnd::cuda

// SPDX-License-Identifier: MIT
#pragma once
/// \file state.cuh
/// The arrays of a build on the device.

#include <cstdint>

#include "gnnd/cuda/device/points.cuh"

namespace gnnd::cuda {

/// The k-NN lists, best first: distances as points.cuh defines them, ids with kNewBit while NEW. What is not filled yet
/// is (+inf, kNoId) and stands at the end.
///
/// With several segments (the paper's, each with a spinlock of its own) an object belongs to the same segment of every
/// list, by its hash (the paper's code: by its id, which may go with what the object is), each segment is sorted for
/// itself, and they take turns in the row: place % segments is the segment, so that a row from its start on still goes
/// from near to far as a whole. The last step puts them in one order.
struct Lists {
    u32* ids;          ///< n x length
    float* distances;  ///< n x length
    float* bounds;     ///< n, of one segment only: the last distance of each list; what is not nearer cannot enter
    int length;
    int segments;
    /// Bounds stand so far apart. 2: behind each stands its object's bias (pair_bounds()), so that a cross-match, which
    /// looks at both, reads one sector of memory instead of two.
    int bound_stride = 1;

    __device__ float& bound(std::int64_t i) const { return bounds[i * bound_stride]; }
    __host__ __device__ int segment_of(u32 id) const { return int(mix(id) % u32(segments)); }
    __device__ int size_of(int segment) const { return (length - segment + segments - 1) / segments; }
    __device__ int place(int rank, int segment) const { return rank * segments + segment; }
};

inline constexpr int kFilterWords = 16;

/// The samples of a round.
struct Samples {
    u32* ids;      ///< n x 4p: p NEW of the object's own list, p objects that took it as NEW, then the same for OLD
    u32* own;      ///< n: how many NEW, and above 16 bits how many OLD, of the own list
    u32* reverse;  ///< n x 2: how many objects took it as NEW and as OLD; those past p found no room
    u64* offsets;  ///< n x 2 and one: where all of them stand, see reverse.cuh; null: first come, first served
    u32* edges;    ///< all of them, at most n x 2p; null likewise
    int p;
};

/// Candidates that wait to be applied to the lists.
struct Candidates {
    u64* entries;  ///< n x capacity
    u32* counts;   ///< n; those past capacity found no room
    int capacity;
};

/// The links of search_links() while they are being made.
struct Links {
    std::int32_t* ids;  ///< n x degree
    u32* sizes;         ///< n: how many of them step 1 chose
    u32* counts;        ///< n: by how many objects each was chosen
    int degree;
};

/// Remembers for every list which ids it holds and which wait for it already, so that most of what a cross-match finds
/// again (three of four offers, measured) is dropped for the price of one word read. An id's hash chooses a word and a
/// byte value: three bytes of a word are ids of the list, the nearest first, the fourth is the last that was offered.
/// Takes an unknown id for a known one in 1 of 100 cases; the hash changes every round, so not twice the same.
struct Filter {
    u32* words;  ///< n x kFilterWords
    u32 salt;    ///< odd

    /// Multiplied by a random odd number, ids are spread by the upper bits: one instruction, where a better mixed hash
    /// takes eight.
    __host__ __device__ u32 hash_of(u32 id) const { return id * salt; }
    __host__ __device__ static u32 word_of(u32 hash) { return hash >> 28; }
    __host__ __device__ static u32 mark_of(u32 hash) { return hash << 4 >> 24 > 1 ? hash << 4 >> 24 : 1; }
    static_assert(kFilterWords == 1 << 4);

    /// Adds an id of the list (kNoId: none) while the words stand in shared memory; by a whole warp, lower lanes first.
    __device__ void add(u32* list_words, u32* used, u32 id) const {
        const u32 hash = hash_of(id), word = id != kNoId ? word_of(hash) : kFilterWords;
        const u32 same = __match_any_sync(kAllLanes, word);
        const u32 byte = id != kNoId ? used[word] + rank_in(same) : 3;
        __syncwarp();
        if (byte < 3) reinterpret_cast<std::uint8_t*>(&list_words[word])[byte] = std::uint8_t(mark_of(hash));
        if (id != kNoId && rank_in(same) == 0) used[word] += __popc(same);
        __syncwarp();
    }
    /// The word for a hash in the filter of u's list.
    __device__ u32* find(u32 u, u32 hash) const { return words + (std::int64_t(u) * kFilterWords + word_of(hash)); }
    /// True if the id with this hash is one of the word's four.
    __device__ static bool knows(u32 word, u32 hash) {
        const u32 differing = word ^ mark_of(hash) * 0x01010101u;
        return (differing - 0x01010101u) & ~differing & 0x80808080u;  // a byte is equal
    }
    /// Remembers the id with this hash where the condition holds. Two threads at once may both have found it unknown;
    /// the second is dropped when candidates are applied.
    __device__ static void remember_if(bool condition, u32* word, u32 hash) {
        asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p st.global.cg.u8 [%0 + 3], %1;}" ::"l"(word),
                     "r"(mark_of(hash)), "r"(u32(condition))
                     : "memory");
    }
};

/// The work of one iteration, summed on the device; in kSpread copies, so that blocks do not queue for one.
struct Counters {
    double phi;  ///< in units of list distances; the metric's in a Record
    u64 entries, fresh, offered, accepted, lost, distances;
};
inline constexpr int kSpread = 256;

/// The part of an iteration that the host reads.
struct Record {
    Counters sum;
    u64 nanoseconds;  ///< the device's clock when it ended
    u64 measured;     ///< and when its recall had been measured, where it is
    int converged;    ///< this iteration changed too little to go on
    int reached;      ///< 1: the recall that was asked for is there; -m: m objects, more than now, may show it
    double found;     ///< entries of the objects that are measured that are true neighbours
    double lost;      ///< of their true neighbours those that a projection takes for farther than the list's last
};

/// Lets the device end the iterations by itself: launches that find the flag raised have nothing to do.
struct StopFlag {
    int raised;
};

}  // namespace gnnd::cuda

// SPDX-License-Identifier: MIT
#pragma once
/// \file bounds.h
/// The steps of a sweep around the comparison of pairs: from the lists' bounds to thresholds before, and from hits to
/// candidates with exact distances after. They start a kernel on the stream and return.
///
/// The products that a sweep sees may be so far from the true ones, and no neighbour is lost:
///
///  - integers: they are exact. Halved norms are rounded down, which lets pairs pass that are one unit too far.
///  - codes (int8, codes.h): a row's code differs from the scaled row a by at most e(a), which was found as it was
///    packed, and products of codes are exact. So a pair within the distance r of a is one within r + e(a) + e(b) as
///    codes. Most rows have about the same error: in the place of e(b) stands `usual`, whose square is two deviations
///    more than the mean of theirs, and a row with more of it, by x, is compared as if its squared norm were less by 2
///    (R + usual) x + x^2, which is what (R + usual + x)^2 is more than (R + usual)^2 for all r + e(a) up to R, the
///    distance of rows that have nothing to do with each other. The few whose r + e(a) is larger take the largest error
///    of all for e(b). For inner products as below, without what a tensor core cuts.
///  - projections (projection.h): likewise, since a projection makes distances at most `longest` times as long, which r
///    is multiplied by: a pair within r of a is one within r + e(a) + e(b) as codes, though not the other way round.
///  - halves (float16): a packed row a' differs from the scaled and centred row a by at most e(a) = 2^-11 |a'| (each
///    component by half a unit of its 11 bits), and by 2^-25 a component where numbers are subnormal. So, by the
///    triangle inequality, |a - b| >= |a' - b'| - e(a) - e(b): a pair within the distance r of a is one within
///    r + e(a) + e(b) as packed, where |b| is at most |a| + r, and e(b) grows with it. For inner products |a b - a' b'|
///    <= e(a) |b'| + e(b) |a'| + e(a) e(b). A tensor core adds 16 products and the sum so far as 17 addends, each cut
///    25 bits below the largest or finer (Fasi, Higham, Mikaitis, Pranesh, 2021): an error of at most 17 * 2^-25 of
///    |a'| |b'| < 2^-20.9 |a'| |b'| each step, and |a'| |b'| <= (|a'|^2 + |b'|^2) / 2: half of it is taken off each
///    norm, as 2^-20 a step, which holds the rounding of the norms, too.
///  - split (two float16): x = h + l, each the nearest float16 of what is left, so that what is left in the end is at
///    most 2^-22 of x (2^-25 where l is subnormal) and one rounding of float32 before: e(a) = 2^-21.5 |a'|. Products
///    are h l + l h + h h, in this order: the sums of the first two are less than 2^-9.9 of |a'| |b'|, and what their
///    steps cut is as much less. l l, less than 2^-22 of |a'| |b'|, counts as one step more, which holds that, too.
///  - floats: sums of float32, in another order than device/exact.cuh's; 2^-18 of the bound is added.
///
/// A list's bound itself is a float32 sum, for which 2^-18 of it is added in all but the first, and 2^-149 for each
/// term, which counts where squares are subnormal.

#include <functional>

#include "gnnd/cuda/space/space.h"
#include "gnnd/cuda/sweep/sweep_launch.h"

namespace gnnd::cuda {

/// The numbers that a sweep compares.
enum class SweepForm { integers, projections, codes, halves, split, floats };

/// True of int8 codes of floats, of all components or of a projection.
GNND_HOST_DEVICE inline bool is_codes(SweepForm form) {
    return form == SweepForm::projections || form == SweepForm::codes;
}

/// The vectors, as prepare_space() left them.
struct SweepSpace {
    RawVectors raw;  ///< as they came
    Metric metric;
    PackedType packed;
    SweptRows rows;         ///< packed
    const u32* norms;       ///< n: squared norms of the packed rows, int or float
    const SpaceInfo* info;  ///< of the packed rows
    std::int64_t columns;   ///< the first so many objects are what others are compared with; the rest are rows only
    u32 border = 0;         ///< pairs among the objects before it, and from it on, are known; 0: none
    std::size_t spare = 0;  ///< device memory that may be taken for rows that are split
    const float* errors = nullptr;  ///< n: of codes, see pack_codes(); null: rows do not become codes
    /// Packs the rows as codes, or as float16 again. Null: they are what they are.
    std::function<SweptRows(SweepForm)> pack{};
};

/// Of the packed rows.
struct RowNorms {
    u32 largest;                    ///< squared, as the norms are: int or bits of float
    u64 sum;                        ///< squared, of codes
    double errors, squared_errors;  ///< of codes: sums of their squared errors, and of the squares of these
};

/// So many of its nearest each row wants: `at`, but the first `whole` of the rows all that their lists have places for.
struct Wanted {
    u32 whole = ~0u;
    int at = 1;
};

/// Lists' bounds, from which thresholds are made.
struct BoundArgs {
    const u32* objects;  ///< count: chosen ones; null: all
    u32 count, padded;   ///< rows, and places to write
    /// Of the rows: ascending distances, -similarity for similarities, and in `bounds` the last ones. No bounds: only
    /// offsets count.
    Lists lists;
    Wanted wanted;
    const float* ceilings;  ///< of all objects: no bound is larger; null: none
    const RowNorms* norms;  ///< of all rows; not of integers and floats
    Threshold* out;         ///< padded
};

/// Sums with a sample (maxima.cuh), from which bounds of lists are made that are empty.
struct CeilingArgs {
    u32 count;          ///< all rows
    const u32* maxima;  ///< count x groups x kMaxima
    u32 groups;         ///< kMostGroups at most
    u32 rank;           ///< the object whose sum is the rank-th largest maximum lies within the ceiling
    float* out;         ///< count
};
inline constexpr u32 kMostGroups = 4;

/// Lists and hits of all objects, or of chosen ones.
struct ScoreArgs {
    const u32* objects;  ///< count: chosen ones; null: all
    u32 count;
    Lists lists;         ///< with exact distances
    Candidates hits;     ///< entries hold ids
    u32* overflowed;     ///< count: rows that had more hits than places, once each
    u32* overflows;      ///< their number
    u32* is_overflowed;  ///< count: flags
};

void sum_up_norms(SweepForm, const SweepSpace&, RowNorms*, cudaStream_t);
void make_thresholds(SweepForm, const SweepSpace&, const BoundArgs&, cudaStream_t);
/// Not of codes and floats.
void make_ceilings(SweepForm, const SweepSpace&, const CeilingArgs&, cudaStream_t);
/// Hits become candidates that apply_candidates() takes: with exact distances, and without those that the list has.
void score_hits(const SweepSpace&, const ScoreArgs&, cudaStream_t);
/// Adds to those that overflowed the rows whose lists do not end below their ceiling, so that others may belong there.
/// \param ceilings  of all objects
void find_short_lists(const ScoreArgs&, const float* ceilings, cudaStream_t);
/// A graph as lists, and back: distances negated for similarities, and in `bounds` the last ones.
void open_graph(Metric, const Lists&, std::int64_t n, cudaStream_t);
void close_graph(Metric, const Lists&, std::int64_t n, cudaStream_t);
/// n: one by the vectors' norms.
void make_factors(const SweepSpace&, float* factors, cudaStream_t);

}  // namespace gnnd::cuda

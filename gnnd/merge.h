// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file merge.h
/// GGM, the paper's Algorithm 3: two graphs become one. What the graphs know is kept, and GNND's steps run on pairs of
/// one object of each set only. With it, or by searching the graph for them, vectors are added to one.

#include <cstdint>
#include <string_view>

#include "gnnd/builder.h"

namespace gnnd {

/// Merges the graphs of two sets of vectors.
///
/// With Init::random as in the paper: of every list the nearer half stays, and the farther half is set aside for random
/// objects of the other set. They are NEW; GNND's iterations go on from there and compare pairs across only. In the end
/// what was set aside is merged back. With Init::projection lists stay whole, and the objects of the other set that
/// come in first are those that random-projection trees over both sets put next to an object.
///
/// No entry of a graph is lost to a farther one, on a GPU as far as its lists tell them apart: float vectors are
/// compared as float16 there, and segments with locks of their own drop what finds no room (see Locks).
///
/// \param x1, x2   n1 x d and n2 x d vectors, of the same type. Either set may be small or, as its graph, empty.
/// \param g1, g2   n1 x k1 and n2 x k2, over x1 and x2, as build() returns them: rows sorted, distances right. Entries
///                 of -1 are passed over.
/// \param params   as for build(); params.k is the result's, and may be any. With more than k1 (or k2) columns rows may
///                 hold farther objects of their own set than there are, since those are not looked for. Of sets that
///                 mix, lists of all n objects hold E = 2 n1 n2 k / n entries of the other set; a merge stops when
///                 fewer than 20 delta E are NEW after an iteration. Measured: later ones add at most 0.0002 to the
///                 recall. A set that has less than half as many objects as the other is held to the recall apart, on a
///                 sample of 256 of them; pairs of both sets are all compared where that costs less than iterations.
/// \return (n1 + n2) x k: object i of the first set keeps its number, object j of the second one becomes n1 + j
/// \throws as build(), and InvalidArgument where graphs and vectors do not fit, or a graph holds ids outside of its set
BuildResult merge(const VectorView& x1, const KnnGraphView& g1, const VectorView& x2, const KnnGraphView& g2,
                  const BuildParams& params, const Callbacks& callbacks = {}, Resources* resources = nullptr);

/// The same into arrays of the caller, (n1 + n2) x k each; none of them may overlap the graphs. On a GPU vectors,
/// graphs and arrays may each lie on the host or on the device that params.device names, as for build_into(); nothing
/// is copied where both sets of vectors lie there, one behind the other.
BuildStats merge_into(const VectorView& x1, const KnnGraphView& g1, const VectorView& x2, const KnnGraphView& g2,
                      const BuildParams& params, std::int32_t* ids, float* distances, const Callbacks& callbacks = {},
                      Resources* resources = nullptr);

/// The ways in which append() adds vectors to a graph.
enum class AppendMethod {
    automatic,  ///< `search` where few are added, `merge` otherwise: see append()
    merge,      ///< the paper's incremental construction: GNND on the added ones, then GGM
    search,     ///< every added vector is searched for in the graph, and offered to the rows of all that it finds
};

/// "auto", "merge" or "search".
std::string_view name_of(AppendMethod method);
/// \throws InvalidArgument that lists the known names
AppendMethod parse_append_method(std::string_view name);

/// The largest share of the old vectors that may be added for append() to search. Measured: see benchs/NOTEBOOK.md.
inline constexpr double kSearchedShare = 0.03;

/// Adds vectors to a graph.
///
/// Merging costs 0.4 to 0.6 of building the whole anew, however few are added, and their own graph is built before.
/// Searching costs the same for each added vector, whatever the graph's size, but for the copy of the graph; so it is
/// what `automatic` takes for up to kSearchedShare times as many vectors as there are, unless params.k is larger than
/// the graph's. Many are searched for batch after batch. Of params only k, metric, seed, threads, device,
/// device_memory and the recall matter to it then. The recall of the old and of the added objects is measured apart,
/// on samples in proportion to what was added, so that this costs a part of what the searches do; where either is less
/// than asked for, the graph is refined as by refine() in the end. Otherwise the result is the same bit for bit every
/// time; on the CPU it is in any case.
///
/// \param x, g    as a set of merge(). Searching takes the values of x as good, as they were when the graph was built,
///                and finds what a walk along the graph's rows can reach: the better where rows are long (16 and more).
/// \param added   vectors of the same type; one is enough, and none leave the graph as merge() does
/// \param params  as for merge(); the added vectors' own graph, where there is one, is built with them too
/// \param method  where there are no old vectors, or none added, there is nothing to search: all methods do the same
/// \param unmeasured  so many of the last old vectors were added with a recall of 0, and count as added where it is
///                    measured; fewer than x.n
/// \return (x.n + added.n) x k: old objects keep their numbers, added object j becomes x.n + j. The statistics are of
///         the merge, but seconds and peak_work_bytes of both; of a search they have a record for every batch
/// \throws as build() and merge()
BuildResult append(const VectorView& x, const KnnGraphView& g, const VectorView& added, const BuildParams& params,
                   const Callbacks& callbacks = {}, Resources* resources = nullptr,
                   AppendMethod method = AppendMethod::automatic, std::int64_t unmeasured = 0);

/// The same into arrays of the caller, as merge_into().
BuildStats append_into(const VectorView& x, const KnnGraphView& g, const VectorView& added, const BuildParams& params,
                       std::int32_t* ids, float* distances, const Callbacks& callbacks = {},
                       Resources* resources = nullptr, AppendMethod method = AppendMethod::automatic,
                       std::int64_t unmeasured = 0);

/// The number of columns of the graphs that a merge with these parameters starts from, the nearest ones; the others
/// take no part in its iterations, and return to the result at its end.
int merge_columns(const BuildParams& params);

}  // namespace gnnd

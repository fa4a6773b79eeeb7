#pragma once
/// \file merge.h
/// GGM, the paper's Algorithm 3: two graphs become one. What the graphs know is kept, and GNND's steps run on pairs of
/// one object of each set only. With it vectors are added to a graph.

#include <cstdint>

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
///                 hold farther objects of their own set than there are, since those are not looked for.
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

/// Adds vectors to a graph, the paper's incremental construction: GNND on the added ones, then GGM. It costs a merge of
/// the whole, however few are added, so that it pays to add many at once.
/// \param x, g    as a set of merge()
/// \param added   vectors of the same type; one is enough, and none leave the graph as merge() does
/// \param params  as for merge(); the added vectors' own graph is built with them too
/// \return (x.n + added.n) x k: old objects keep their numbers, added object j becomes x.n + j. The statistics are of
///         the merge, but seconds and peak_work_bytes of both
/// \throws as build() and merge()
BuildResult append(const VectorView& x, const KnnGraphView& g, const VectorView& added, const BuildParams& params,
                   const Callbacks& callbacks = {}, Resources* resources = nullptr);

/// How many columns of the graphs steer a merge with these parameters; the others only return to the result.
int merge_columns(const BuildParams& params);

}  // namespace gnnd

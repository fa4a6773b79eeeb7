// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file operations.h
/// What others make of a k-NN graph before they work with it: symmetric and mutual graphs, cuts by a radius, weights
/// for clustering and embedding, components and duplicates. In: a k-NN graph in host memory. Out: a sparse matrix in
/// compressed rows (CSR), whose arrays SciPy, cuGraph and others take as they are, or a label for each object.
///
/// All of them run on the CPU, and give the same bits on any number of threads. The graph's rows must be as graph.h
/// says: best first, -1 at their end only, no object in its own row or twice in one; where they are not, or a value is
/// NaN, they throw InvalidArgument that names the row. Ids are of the graph's own rows, [0, n): the rows of some
/// objects of a larger set are no graph here. n may be 0, k larger than n - 1.

#include <cstdint>
#include <optional>

#include "gnnd/array.h"
#include "gnnd/builder.h"
#include "gnnd/graph.h"

namespace gnnd {

/// A sparse n x n matrix in compressed rows: row i has the columns indices[indptr[i]] to indices[indptr[i + 1] - 1],
/// which ascend, each once, and never i itself. An entry may be 0, as distances of copies are: it is there all the
/// same.
struct CsrGraph {
    std::int64_t n = 0;             ///< rows and columns
    Array<std::int64_t> indptr{0};  ///< n + 1
    Array<std::int32_t> indices;    ///< indptr[n]
    Array<float> values;            ///< as many
    /// Entries of all rows.
    std::int64_t entries() const { return indptr.back(); }
};

/// What the numbers in a graph are taken as.
enum class GraphValues {
    metric,    ///< the metric's values as they are: squared under l2, similarities under ip and cosine
    distance,  ///< as true_distances() gives them
};

/// "metric" or "distance".
std::string_view name_of(GraphValues values);
/// \throws InvalidArgument that lists the known names
GraphValues parse_graph_values(std::string_view name);

/// Distances that are 0 for equal vectors, as SciPy, scikit-learn, UMAP and HDBSCAN expect them: under l2 the root of
/// the value, under cosine 1 - value, under ip the same, which is the cosine distance if all vectors have length 1;
/// other metrics' values as they are. Never below 0; +inf for padding. \param values   `count` values of the metric
/// \param out      `count` distances; may be `values`
/// \param threads  0: as many as OpenMP gives
/// \throws InvalidArgument for a value that is NaN, negative but no similarity, or under ip or cosine above 1.01: the
///         vectors were not of length 1
void true_distances(Metric metric, const float* values, std::int64_t count, float* out, int threads = 0);

/// Which entries of a graph count, and as what.
struct EdgeParams {
    int neighbors = 0;                         ///< first entries of a row that count; 0: all k
    GraphValues values = GraphValues::metric;  ///< what the result holds, and the radius is compared with
    /// Entries farther than this do not count (for similarities under GraphValues::metric: those of less than this).
    /// Not NaN. Without: all do.
    std::optional<float> radius;
    int threads = 0;  ///< 0: as many as OpenMP gives
};

/// Every object's own entries: scikit-learn's kneighbors_graph, without the objects themselves. With a radius it is
/// radius_neighbors_graph as far as the rows reach: see full_rows().
/// Takes 8 bytes an entry for the result, under GraphValues::distance 4 n k more for a while.
/// \throws InvalidArgument for parameters or a graph outside of what is allowed, Interrupted when the callback (of
/// which
///         only `interrupt` is asked) asked for it, std::bad_alloc
CsrGraph neighbors_graph(const KnnGraphView& graph, const EdgeParams& params = {}, const Callbacks& callbacks = {});

/// The objects all of whose entries (the first params.neighbors, n - 1 where there are fewer objects) are within
/// params.radius: an object of these may have more neighbours there than its row tells.
/// \throws as neighbors_graph()
std::int64_t full_rows(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks = {});

/// The union: i and j are joined where either is among the other's entries. Both directions hold the same value, that
/// of the pair; where a graph from elsewhere has two for it, the nearer one. SciPy: A.maximum(A.T) for similarities.
/// Takes at its peak, with E entries that count, up to 12 E bytes beside the result of up to 16 E (reserved, as far as
/// it is not needed untouched), under GraphValues::distance 4 n k more.
/// \throws as neighbors_graph()
CsrGraph symmetric_graph(const KnnGraphView& graph, const EdgeParams& params = {}, const Callbacks& callbacks = {});

/// The intersection: i and j are joined where each is among the other's entries. Values and memory as
/// symmetric_graph(), the result of up to 8 E bytes.
/// \throws as neighbors_graph()
CsrGraph mutual_graph(const KnnGraphView& graph, const EdgeParams& params = {}, const Callbacks& callbacks = {});

}  // namespace gnnd

// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file operations.h
/// Makes of a k-NN graph what others work with: symmetric and mutual graphs, cuts by a radius, weights
/// for clustering and embedding, components and duplicates. In: a k-NN graph in host memory or on a GPU. Out: a sparse
/// matrix in compressed rows (CSR), whose arrays SciPy, cuGraph and others take as they are, in host memory or where a
/// CsrRoom of the parameters has it; or, in host memory, a label for each object.
///
/// Each runs on the `device` of its parameters. `automatic` is the GPU in whose memory the graph lies, and the CPU for
/// a graph in host memory. On a GPU ids and distances may each lie on the host or on that device, and work is in order
/// with Resources::stream(). The result has the same bits on any number of threads and on a GPU, but for weights of
/// fuzzy_simplicial_set(), which see. A GPU takes, beside the graph where it lies on the host, at its peak 33 bytes for
/// each of the n k entries that are looked at for a matrix of both directions, 4 n k more for distances and for
/// weights, and 16 n for components. `resources` are where a GPU's work memory comes from, the driver's pool when null.
/// Beside what stands with the functions they throw Unavailable for a device that is not there, InvalidArgument for a
/// graph in a memory that it cannot reach, OutOfDeviceMemory and DeviceError.
///
/// The graph's rows must be as graph.h says: best first, -1 at their end only, no object in its own row or twice in
/// one; where they are not, or a value is NaN, they throw InvalidArgument that names the row. Ids are of the graph's
/// own rows, [0, n): the rows of some objects of a larger set are no graph here. n may be 0, k larger than n - 1.

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "gnnd/array.h"
#include "gnnd/builder.h"
#include "gnnd/device.h"
#include "gnnd/graph.h"
#include "gnnd/resources.h"

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

/// The arrays of a CsrGraph in somebody else's memory: n + 1, and twice as many as it has entries.
struct CsrSpan {
    std::int64_t* indptr;   ///< see CsrGraph
    std::int32_t* indices;  ///< see CsrGraph
    float* values;          ///< see CsrGraph
};

/// Gives memory for a matrix of n rows and so many entries, once that number is known: each array in host memory or,
/// where a GPU works, on that GPU, for work on its stream. It is called once, from the thread of the call, of a graph
/// without rows for host memory, and not at all for bad input. What it throws ends the call.
using CsrRoom = std::function<CsrSpan(std::int64_t n, std::int64_t entries)>;

/// The meaning that is given to the numbers in a graph.
enum class GraphValues {
    metric,    ///< the metric's values as they are: squared under l2, similarities under ip and cosine
    distance,  ///< as true_distances() gives them
};

/// For instance "metric". \throws InvalidArgument for a number that is none
std::string_view name_of(GraphValues values);
/// \throws InvalidArgument that lists the known names
GraphValues parse_graph_values(std::string_view name);

/// Distances that are 0 for equal vectors, as SciPy, scikit-learn, UMAP and HDBSCAN expect them: under l2 the root of
/// the value, under cosine 1 - value, under ip the same, which is the cosine distance if all vectors have length 1;
/// other metrics' values as they are. Never below 0; +inf for padding.
/// \param values   `count` values of the metric
/// \param out      `count` distances; may be `values`
/// \param threads  0: as many as OpenMP gives
/// \throws InvalidArgument for a value that is NaN, negative but no similarity, or under ip or cosine above 1.01: the
///         vectors were not of length 1
void true_distances(Metric metric, const float* values, std::int64_t count, float* out, int threads = 0);

/// The entries of a graph that count, and their meaning.
struct EdgeParams {
    int neighbors = 0;                         ///< first entries of a row that count; 0: all k
    GraphValues values = GraphValues::metric;  ///< what the result holds, and the radius is compared with
    /// Entries farther than this do not count (for similarities under GraphValues::metric: those of less than this).
    /// Not NaN. Without: all do.
    std::optional<float> radius;
    int threads = 0;     ///< 0: as many as OpenMP gives
    Device device = {};  ///< where to run, see operations.h
    /// Memory for a matrix: the result has `n` alone then. Without, the result holds the matrix.
    CsrRoom room = {};
};

/// Every object's own entries: scikit-learn's kneighbors_graph, without the objects themselves. With a radius it is
/// radius_neighbors_graph as far as the rows reach: see full_rows().
/// Takes 8 bytes an entry for the result, under GraphValues::distance 4 n k more for a while.
/// \throws InvalidArgument for parameters or a graph outside of what is allowed, Interrupted when the callback (of
///         which only `interrupt` is asked) asked for it, std::bad_alloc
CsrGraph neighbors_graph(const KnnGraphView& graph, const EdgeParams& params = {}, const Callbacks& callbacks = {},
                         Resources* resources = nullptr);

/// The objects all of whose entries (the first params.neighbors, n - 1 where there are fewer objects) are within
/// params.radius: an object of these may have more neighbours there than its row tells.
/// \throws as neighbors_graph()
std::int64_t full_rows(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks = {},
                       Resources* resources = nullptr);

/// The union: i and j are joined where either is among the other's entries. Both directions hold the same value, that
/// of the pair; where a graph from elsewhere has two for it, the nearer one. SciPy: A.maximum(A.T) for similarities.
/// Takes at its peak, with E entries that count, up to 12 E bytes beside the result of up to 16 E (reserved, as far as
/// it is not needed untouched), under GraphValues::distance 4 n k more.
/// \throws as neighbors_graph()
CsrGraph symmetric_graph(const KnnGraphView& graph, const EdgeParams& params = {}, const Callbacks& callbacks = {},
                         Resources* resources = nullptr);

/// The intersection: i and j are joined where each is among the other's entries. Values and memory as
/// symmetric_graph(), the result of up to 8 E bytes.
/// \throws as neighbors_graph()
CsrGraph mutual_graph(const KnnGraphView& graph, const EdgeParams& params = {}, const Callbacks& callbacks = {},
                      Resources* resources = nullptr);

/// The parameters of jaccard_graph().
struct JaccardParams {
    int neighbors = 0;  ///< first entries of a row that count; 0: all k
    /// An object counts as one of its own neighbours, as in Seurat's SNN graphs. PhenoGraph and cuGraph say no.
    bool include_self = false;
    float prune = 0;     ///< pairs of less weight than this are left out, 0 to 1; Seurat takes 1/15
    int threads = 0;     ///< 0: as many as OpenMP gives
    Device device = {};  ///< where to run, see operations.h
    /// Memory for a matrix: the result has `n` alone then. Without, the result holds the matrix.
    CsrRoom room = {};
};

/// Shared-neighbour weights (Jarvis and Patrick 1973; PhenoGraph, Levine et al. 2015): the union, where the value of a
/// pair is the Jaccard index of both rows' ids, |A and B| / |A or B|, from 0 to 1. Pairs that share nobody are left
/// out. Distances do not matter. Compares about k n rows of k ids: the one operation that takes long, seconds for a
/// million objects of 32 neighbours. Takes at its peak 4 n k bytes and n / 8 for each thread beside what
/// symmetric_graph() does. \throws as neighbors_graph()
CsrGraph jaccard_graph(const KnnGraphView& graph, const JaccardParams& params = {}, const Callbacks& callbacks = {},
                       Resources* resources = nullptr);

/// The parameters of fuzzy_simplicial_set(); names and defaults are umap-learn's.
struct FuzzyParams {
    int neighbors = 0;             ///< first entries of a row that count; 0: all k. umap's n_neighbors less 1
    float local_connectivity = 1;  ///< that many of the nearest (between two of them where it is no whole number) get
                                   ///< weight 1; 0 to k
    float set_op_mix_ratio = 1;    ///< 1: fuzzy union, 0: fuzzy intersection, between: a mix
    float bandwidth = 1;           ///< more than 0: the weights of a row add up to log2(neighbors + 1) times this
    int threads = 0;               ///< 0: as many as OpenMP gives
    Device device = {};            ///< where to run, see operations.h
    /// Memory for a matrix: the result has `n` alone then. Without, the result holds the matrix.
    CsrRoom room = {};
};

/// UMAP's weights (McInnes, Healy, Melville, arXiv 1802.03426): a row's entries get exp(-(d - rho) / sigma), where d is
/// the true distance, rho that of the first `local_connectivity` neighbours that are no copies, and sigma such that the
/// row adds up as FuzzyParams::bandwidth says; both directions a and b become a + b - a b. As umap-learn 0.5.12
/// computes it from a graph that has each object in its own row in addition; its n_neighbors is k + 1. Weights agree to
/// 1e-4, by umap's own stop of the search for sigma. Rows with fewer entries are weighed by these (umap takes missing
/// ones as infinitely far, which makes all of the row's weights 1). A GPU's and the CPU's weights agree to 3e-5. Takes
/// at its peak 4 n k bytes beside what symmetric_graph() does. \throws as neighbors_graph(), and InvalidArgument for
/// values that are no distances: see true_distances()
CsrGraph fuzzy_simplicial_set(const KnnGraphView& graph, const FuzzyParams& params = {},
                              const Callbacks& callbacks = {}, Resources* resources = nullptr);

/// The parameters of mutual_reachability_graph(); names and defaults are hdbscan's.
struct ReachabilityParams {
    int neighbors = 0;    ///< first entries of a row that count; 0: all k
    int min_samples = 5;  ///< an object's core distance is that of its min_samples-th neighbour, itself not counted:
                          ///< 1 to the number of entries that count. scikit-learn's min_samples counts it: one more
    float alpha = 1;      ///< distances are divided by it, core distances are not; more than 0
    int threads = 0;      ///< 0: as many as OpenMP gives
    Device device = {};   ///< where to run, see operations.h
    /// Memory for a matrix: the result has `n` alone then. Without, the result holds the matrix.
    CsrRoom room = {};
};

/// The true distance of every object's min_samples-th neighbour, or of its last where it has fewer; +inf of one
/// without. \return n values \throws as neighbors_graph(), and InvalidArgument for values that are no distances: see
/// true_distances()
Array<float> core_distances(const KnnGraphView& graph, const ReachabilityParams& params = {},
                            const Callbacks& callbacks = {}, Resources* resources = nullptr);

/// HDBSCAN's mutual reachability (Campello, Moulavi, Sander 2013): the union, where the value of a pair is the largest
/// of its distance and both core distances. As hdbscan's for all pairs, of those pairs that are in the graph and not
/// infinitely far.
/// Takes at its peak 4 n k + 4 n bytes beside what symmetric_graph() does.
/// \throws as core_distances()
CsrGraph mutual_reachability_graph(const KnnGraphView& graph, const ReachabilityParams& params = {},
                                   const Callbacks& callbacks = {}, Resources* resources = nullptr);

/// A number for each object's component.
struct Components {
    Array<std::int32_t> labels;       ///< n: 0, 1, ... in the order of the components' first objects, as SciPy's
    std::vector<std::int64_t> sizes;  ///< objects of each component
};

/// Connected components of the union: along an entry one may go either way. Takes 8 n bytes.
/// \throws as neighbors_graph()
Components connected_components(const KnnGraphView& graph, const EdgeParams& params = {},
                                const Callbacks& callbacks = {}, Resources* resources = nullptr);

/// Those of a matrix, for instance of a mutual graph; also where it is not symmetric.
/// \throws InvalidArgument for columns outside of [0, n) or offsets that do not ascend, Interrupted
Components connected_components(const CsrGraph& graph, int threads = 0, const Callbacks& callbacks = {});

/// Rows that are equal to the bit, in a time that their bytes decide.
/// \param vectors  in host memory, of any number of rows
/// \return n: the lowest row that is equal to this one, itself where there is none before it. Takes 24 n bytes.
/// \throws InvalidArgument for what are no vectors, Interrupted
Array<std::int32_t> equal_rows(const VectorView& vectors, int threads = 0, const Callbacks& callbacks = {});

/// The rows that duplicates() takes as copies.
struct DuplicateParams {
    float threshold = 0;  ///< farthest value of a pair of copies; for similarities the least. Not NaN
    GraphValues values = GraphValues::metric;  ///< what the threshold is compared with
    int neighbors = 0;                         ///< first entries of a row that count; 0: all k
    int threads = 0;                           ///< 0: as many as OpenMP gives
    /// n, as equal_rows() gives it, or null: each object and the one that is named are copies too, if the threshold
    /// lets through a distance of 0, or a cosine of 1. Under ip they are in any case.
    const std::int32_t* equal = nullptr;  ///< in host memory
    Device device = {};                   ///< where to run, see operations.h
};

/// Groups of objects that are copies, or near copies, of each other.
struct Duplicates {
    Array<std::int32_t> labels;        ///< n: the object's group 0, 1, ...; -1: it has no copy
    std::vector<std::int64_t> sizes;   ///< objects of each group, 2 or more
    std::vector<std::int32_t> firsts;  ///< of each group the object of the lowest number; these ascend
    std::int64_t full = 0;  ///< objects all of whose entries are copies: their groups may be larger than rows show
};

/// Groups of near-equal rows across the whole set: the components of the graph's pairs that are no farther apart than
/// the threshold. To keep one of each group, drop all objects of a group but its first.
///
/// Copies of copies are in one group, as in single linkage, and its ends may be farther apart than the threshold. A
/// group of more than k + 1 objects is found whole where its rows connect it, though none holds all of it. Rows of an
/// exact graph always do for exact copies: of equal distances the lowest ids are in each row. In an approximate graph
/// rows that are full of copies may close up among themselves, so that a group falls apart: `full` objects tell that it
/// is possible; DuplicateParams::equal joins those that are equal, and a graph with a larger k, or an exact one,
/// decides for the others. Takes as connected_components(). \throws as neighbors_graph(), and for ids in
/// DuplicateParams::equal that are outside of [0, n)
Duplicates duplicates(const KnnGraphView& graph, const DuplicateParams& params = {}, const Callbacks& callbacks = {},
                      Resources* resources = nullptr);

/// The same of vectors: one of each kind of equal rows goes into the graph, so that however many there are of it, they
/// are one group, and no row is full of them. Takes a copy of the vectors that differ, where some are equal.
/// \param vectors       n x d in host memory, n >= 1
/// \param params        `equal` is not looked at
/// \param build_params  of the graph; its k is lowered to the number of different vectors - 1
/// \param callbacks     hooks into the build
/// \param resources     where its work memory comes from; the heap when null
/// \return as above; an object is full where the row of its kind is
/// \throws as build() and neighbors_graph()
Duplicates duplicates(const VectorView& vectors, const DuplicateParams& params, const BuildParams& build_params,
                      const Callbacks& callbacks = {}, Resources* resources = nullptr);

}  // namespace gnnd

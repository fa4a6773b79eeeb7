// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file graph.h
/// The k-NN graph. For every graph that leaves a public function:
///  1. both arrays are n x k, row-major, each row sorted best first: by (distance, id) ascending, by similarity
///     descending and then id ascending where the metric is a similarity;
///  2. no self, no duplicate id in a row; every id in [0, n) or -1; -1 only where n - 1 < k, at the row's end, with
///     distance +inf (-inf for similarities);
///  3. distances are the metric's value of the pair, in float32 arithmetic on the input vectors (L2 is squared). Sums
///     of products of uint8 and int8 (l2, ip, cosine) are integers, exact up to kMaxIntegerDim components, and rounded
///     to float32 once, as they are stored: l2 and ip are exact below 2^24.

#include <cstdint>

#include "gnnd/array.h"
#include "gnnd/metric.h"

namespace gnnd {

/// Entries of a row, at most.
inline constexpr std::int64_t kMaxColumns = 65535;

/// Rows of a graph in somebody else's memory. \tparam Id  std::int32_t or std::int64_t
template <class Id>
struct GraphView {
    std::int64_t n = 0;                ///< rows, one for each object
    std::int64_t k = 0;                ///< entries of a row
    Metric metric = Metric::L2;        ///< of the distances
    const Id* ids = nullptr;           ///< n x k
    const float* distances = nullptr;  ///< n x k

    const Id* ids_of(std::int64_t i) const { return ids + i * k; }                 ///< row i, k ids
    const float* distances_of(std::int64_t i) const { return distances + i * k; }  ///< row i, k values
};
/// A graph as builds and merges work with it.
using KnnGraphView = GraphView<std::int32_t>;
/// Rows of a graph in shards, whose objects may be more than 32 bits tell apart.
using WideGraphView = GraphView<std::int64_t>;

/// A graph that owns its arrays.
class KnnGraph {
  public:
    /// A graph of no objects.
    KnnGraph() = default;
    /// An n x k graph without neighbours: all ids -1, all distances worst_value(metric). Takes 8 n k bytes of the heap.
    /// \param n       0 to kMaxObjects
    /// \param k       1 to kMaxColumns
    /// \param metric  what the distances will be of
    /// \throws InvalidArgument for n or k outside of these, std::bad_alloc
    KnnGraph(std::int64_t n, std::int64_t k, Metric metric);

    /// Gives it as many rows: those behind the present ones hold no neighbours, fewer are cut off (which throws
    /// nothing). Rows are added in a time that their number decides, but now and then, when all are copied to a larger
    /// array.
    /// \throws InvalidArgument for n out of 0 to kMaxObjects and of a graph of no columns, std::bad_alloc; the graph is
    ///         as it was then
    void resize(std::int64_t n);
    /// Takes memory for as many rows, which is not touched before there are: up to them resize() copies nothing.
    /// \throws std::bad_alloc, std::length_error; the graph is as it was then
    void reserve(std::int64_t n);

    std::int64_t n() const { return n_; }                                              ///< rows, one for each object
    std::int64_t k() const { return k_; }                                              ///< entries of a row
    Metric metric() const { return metric_; }                                          ///< of the distances
    std::int32_t* ids() { return ids_.data(); }                                        ///< n x k
    float* distances() { return distances_.data(); }                                   ///< n x k
    const std::int32_t* ids() const { return ids_.data(); }                            ///< n x k
    const float* distances() const { return distances_.data(); }                       ///< n x k
    const std::int32_t* ids_of(std::int64_t i) const { return ids_.data() + i * k_; }  ///< row i, k ids
    const float* distances_of(std::int64_t i) const { return distances_.data() + i * k_; }  ///< row i, k values

    /// Valid as long as this graph, unmoved.
    KnnGraphView view() const { return {n_, k_, metric_, ids_.data(), distances_.data()}; }
    operator KnnGraphView() const { return view(); }  ///< view()

  private:
    std::int64_t n_ = 0, k_ = 0;
    Metric metric_ = Metric::L2;
    Array<std::int32_t> ids_;
    Array<float> distances_;  // untouched: several threads fill them
};

/// Checks invariants 1 and 2 (not the distances themselves); throws InvalidArgument that names the first offending row.
void check_structure(const KnnGraphView& graph);

}  // namespace gnnd

// SPDX-License-Identifier: MIT
#pragma once
/// \file flat_search.h
/// FAISS's flat search, on the CPU or a GPU, and how far its values can be trusted.

#include <cstdint>
#include <memory>
#include <vector>

#include "faiss_ext/detail/gpu.h"
#include "faiss_ext/detail/rows.h"
#include "faiss_ext/vector_source.h"

namespace faiss_ext::detail {

/// Asked for beyond what is wanted, to see how far off the next ones are.
inline constexpr std::int64_t kSpare = 8;

/// The results of FAISS's flat search for a batch of queries: ids and distances, queries x m, best first.
struct Found {
    std::int64_t m;
    std::vector<idx_t> ids;
    std::vector<float> distances;

    /// True where rounding can have kept a nearer object out of a finished row: what FAISS did not report is no better
    /// than its last, less what both values may be off by.
    /// \param values  the true distances of the row, `count`
    /// \param bound   the most by which a reported value differs from the true one
    bool doubtful(std::int64_t row, const std::int32_t* kept, const float* values, std::int64_t count, double bound,
                  bool similarity) const;
};

/// FAISS's flat search among all vectors of a source, which FAISS has a metric for.
class FlatSearch {
  public:
    /// \param m              neighbours of each query, at most n; on a GPU at most 2048
    /// \param device_memory  as GpuFlatSearch has it
    FlatSearch(const VectorSource& source, std::int64_t m, const Gpu& gpu, std::int64_t device_memory = 0);

    /// Queries that are best searched for at once.
    std::int64_t block() const { return on_gpu_ ? gpu_block(source_.vectors().d) : kBlock; }
    /// \param asked    holds the queries: the source itself, or another of its dimension and metric
    /// \param objects  which of them, count
    /// \return valid until the next search
    const Found& search(const VectorSource& asked, const std::int32_t* objects, std::int64_t count);

  private:
    const VectorSource& source_;
    const faiss::MetricType metric_;
    std::unique_ptr<GpuFlatSearch> on_gpu_;
    std::unique_ptr<FloatMatrix> rows_;  // on the CPU
    std::vector<float> queries_;
    Found found_;
};

/// Bounds how far FAISS's values can be from the true ones. It expands |x-y|^2 to |x|^2 + |y|^2 - 2xy, whose rounding
/// grows with the vectors' lengths, however near they are to each other: sums of d products err by less than d units in
/// the last place of the sum of their absolute values. Integers that float32 holds are not rounded.
class Rounding {
  public:
    /// \param searched  the metric that FAISS searches the source under
    /// \param queries   their type
    Rounding(const VectorSource& source, faiss::MetricType searched, gnnd::DType queries);

    /// The most by which a value of the query, as float_rows() gives it, and of what may be nearer than `last` is off.
    double bound(const float* query, double last) const;

  private:
    const faiss::MetricType searched_;
    const std::int64_t d_;
    double unit_ = 0;     // what a value of 1 errs by
    double longest_ = 1;  // of all vectors, where it matters
};

}  // namespace faiss_ext::detail

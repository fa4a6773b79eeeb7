// SPDX-License-Identifier: MIT
#pragma once
/// \file flat_search.h
/// FAISS's flat search on the CPU, and how far its values can be trusted.

#include <cstdint>
#include <vector>

#include "faiss_ext/vector_source.h"

namespace faiss_ext::detail {

/// Asked for beyond what is wanted, to see how far off the next ones are.
inline constexpr std::int64_t kSpare = 8;

/// The results of FAISS's flat search for a batch of queries: ids and distances, queries x m, best first.
struct Found {
    std::int64_t m;
    std::vector<idx_t> ids;
    std::vector<float> distances;

    /// \param queries  count x d
    /// \param base     n x d
    void search(faiss::MetricType metric, const float* queries, std::int64_t count, const float* base, std::int64_t n,
                std::int64_t d);

    /// True where rounding can have kept a nearer object out of a finished row: what FAISS did not report is no better
    /// than its last, less what both values may be off by.
    /// \param values  the true distances of the row, `count`
    /// \param bound   the most by which a reported value differs from the true one
    bool doubtful(std::int64_t row, const std::int32_t* kept, const float* values, std::int64_t count, double bound,
                  bool similarity) const;
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

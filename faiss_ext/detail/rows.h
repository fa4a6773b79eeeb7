// SPDX-License-Identifier: MIT
#pragma once
/// \file rows.h
/// Rows of vectors on their way into FAISS, and rows of ids on their way out of it.

#include <faiss/IndexFlat.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "faiss_ext/vector_source.h"

namespace faiss_ext::detail {

/// True for the flat indexes whose codes are the rows in order; derived ones (Panorama) may arrange them otherwise.
bool holds_plain_rows(const faiss::Index& index);

/// The metric under which FAISS finds the neighbours of float_rows(): inner product for cosine.
/// \throws faiss::FaissException for metrics that FAISS does not have; `what` names who asks
faiss::MetricType search_metric(gnnd::Metric metric, const char* what);

/// Copies rows [begin, begin + count) to out (count x d) as float32; under cosine every row is normalised.
void float_rows(const VectorSource& source, std::int64_t begin, std::int64_t count, float* out);

/// True where objects follow one another.
bool is_consecutive(const std::int32_t* objects, std::int64_t count);

/// The rows of `count` objects in the same form, in the order in which they are named.
void float_objects(const VectorSource& source, const std::int32_t* objects, std::int64_t count, float* out);

/// Puts all rows of a source into an empty index: those of a GPU without another copy on the host, and what
/// gnnd::build() would refuse of them is refused here.
/// \throws gnnd::InvalidArgument, gnnd::Interrupted, gnnd::DeviceError
void fill_storage(faiss::IndexFlat& storage, const VectorSource& source);

/// All rows of a source as one float32 array, n x d. The source's own memory where that is one already; otherwise a
/// copy (4 n d bytes).
class FloatMatrix {
  public:
    explicit FloatMatrix(const VectorSource& source);
    const float* data() const { return data_; }
    const float* row(std::int64_t i) const { return data_ + i * d_; }

  private:
    std::vector<float> copy_;
    const float* data_;
    std::int64_t d_;
};

/// Rows that CPU indexes get at once.
inline constexpr std::int64_t kBlock = 4096;
/// And GPU indexes that are added to: as many as FAISS adds at once, in 256 MiB. An inverted file looks at each of its
/// lists once a call.
inline std::int64_t gpu_add_block(std::int64_t d) {
    return std::clamp<std::int64_t>((std::int64_t(1) << 26) / d, 1, 1 << 19);
}
/// And those that are searched, many in the time of a few; at most 256 MiB (FAISS counts components in int).
inline std::int64_t gpu_block(std::int64_t d) {
    return std::min<std::int64_t>(gpu_add_block(d), 65536);
}

/// Calls use(begin, count, rows) for all rows of the source in order, `block` at a time, as float_rows() gives them;
/// asks faiss::InterruptCallback in between.
void for_float_rows(const VectorSource& source, std::int64_t block,
                    const std::function<void(std::int64_t begin, std::int64_t count, const float* rows)>& use);

/// Refuses what gnnd::build() would refuse: k out of 1 to gnnd::kMaxK, fewer than two vectors, NaN and the like.
/// \throws gnnd::InvalidArgument, gnnd::Interrupted
void check_request(const VectorSource& source, int k);

/// Turns what a search found into rows of a valid graph: self, -1 and duplicates are dropped, the metric's own values
/// computed, the best k kept in order. A row that falls short is filled with other objects, distinct and reproducible
/// from the seed, so that -1 stands only where n - 1 < k.
/// \param objects     whose rows they are, count ids
/// \param candidates  count x m ids, -1 where there is none
/// \param ids         result, count x k
/// \param distances   result, count x k
void finish_rows(const VectorSource& source, const std::int32_t* objects, std::int64_t count, const idx_t* candidates,
                 std::int64_t m, int k, std::uint64_t seed, std::int32_t* ids, float* distances);

}  // namespace faiss_ext::detail

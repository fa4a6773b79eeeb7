// SPDX-License-Identifier: MIT
#pragma once
/// \file unresolved.h
/// Neighbours whose order float32 does not tell. A similarity near its best value has an absolute error, however small
/// the distance to the best is: vectors that share a direction, as prices and spectra do, have cosines of 1 - 1e-7, of
/// which rounding decides. FAISS's inner products of normalised vectors round alike, and so does what a build measures
/// its recall by. Sums of products under l2 and ip have the error of the least numbers that float32 has: of components
/// below 1e-22 nothing is left.

#include <cstdint>

#include "gnnd/detail/input.h"
#include "gnnd/graph.h"

namespace gnnd::detail {

/// Of at most 1,000 rows, evenly spread, the share whose at-th neighbour float32 does not tell from others.
///  - Under cosine one less than 2^-16 sqrt(d) from 1, where d is the dimension: 256 times what sums of d products in
///    float32 err by. (Measured, 3,000 rows of Gaussian components around an offset, d from 2 to 256: there Recall@10
///    in float64 is 0.95 to 0.998, 16 times nearer 0.62 to 0.94.) Neighbours that are copies do not count.
///  - Under l2 and ip one nearer to 0 than 2^-141 sqrt(d), 256 times float32's least number for each product, whose
///    value in float64 is another by more than 1/256, unless its products are 2^-120 and more: judged by 16 of them. 0
///    where the graph lies on a GPU.
///  - 0 for other metrics, and for cosines of d = 1, where all are 1 or -1.
/// \param graph    on the host or on a GPU
/// \param objects  of each row which object it is of, on the host; null: of each in turn
/// \param at       1 to graph.k; rows that are shorter do not count
/// \param input    the vectors, on the host or on a GPU
double unresolved_share(const KnnGraphView& graph, const std::int32_t* objects, int at, const Input& input);

}  // namespace gnnd::detail

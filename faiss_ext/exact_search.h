// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file exact_search.h
/// The exact neighbours of vectors that are not among those searched: the right answers to queries.

#include "faiss_ext/gpu.h"
#include "faiss_ext/vector_source.h"
#include "gnnd/graph.h"

namespace faiss_ext {

/// FAISS's flat search, with the care of ExactGraphBuilder: distances are the metric's own values, ties in the order of
/// ids, and where FAISS's rounding leaves doubt all vectors are compared again without it. Takes 4 n d bytes where the
/// vectors are not contiguous float32 rows, on a GPU as much of its free memory as is allowed and what remains in
/// parts. \param source   n vectors, finite, not zero under cosine \param queries  any number of the source's
/// dimension, in host memory, the same holds for them \param k        1 to gnnd::kMaxK; rows are padded with -1 where n
/// < k \param gpu      where FAISS searches; the CPU by default, and for metrics that FAISS does not have \return row i
/// for query i: rows of the source, nearest first \throws faiss::FaissException. faiss::InterruptCallback is honoured
gnnd::KnnGraph exact_search(const VectorSource& source, const gnnd::VectorView& queries, int k, const Gpu& gpu = {});

}  // namespace faiss_ext

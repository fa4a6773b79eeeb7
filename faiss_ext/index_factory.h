// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file index_factory.h
/// Indexes with add() by GNND (gnnd_index.h), alone or inside of FAISS's wrappers: made by description, and of what
/// FAISS has read.

#include <faiss/Index.h>

#include <memory>
#include <string>

#include "faiss_ext/compat.h"
#include "faiss_ext/graph_builder.h"

namespace faiss_ext {

/// faiss::index_factory(), in whose descriptions "GNND64," may stand before "NSG32" or "HNSW32" (with or without
/// ",Flat" behind): an IndexNSGGnnd or IndexHNSWGnnd of R or M so many, whose graphs have 64 columns. 64 and 32 may be
/// left out, and mean themselves. Before it may come what FAISS takes before an index, such as "PCA64," or "OPQ16,",
/// and behind it ",RFlat" or ",Refine(...)"; "IDMap" and "IDMap2" on either side. "OPQ16_64,GNND64,NSG32,RFlat" is one.
/// What goes into the graph's search is float32.
/// \param d            components of a vector
/// \param description  others than these are FAISS's alone
/// \throws faiss::FaissException that names the part it does not understand
std::unique_ptr<faiss::Index> index_factory(int d, const std::string& description,
                                            faiss::MetricType metric = faiss::METRIC_L2);

/// The index with add() by GNND: in place of an IndexNSGFlat or IndexHNSWFlat, also inside of IDMap, PreTransform and
/// Refine (the index before refining), comes an IndexNSGGnnd or IndexHNSWGnnd with its vectors and links.
/// \throws faiss::FaissException that names the class of what is neither; the index is lost then
std::unique_ptr<faiss::Index> with_gnnd(std::unique_ptr<faiss::Index> index);

/// The builder of an IndexNSGGnnd or IndexHNSWGnnd, also inside of these wrappers; null of others.
GnndGraphBuilder* builder_of(faiss::Index& index);

}  // namespace faiss_ext

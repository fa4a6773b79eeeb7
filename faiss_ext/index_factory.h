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

/// faiss::index_factory(), in whose descriptions "GNND64," may stand before "NSG32" or "HNSW32": FAISS's index with
/// add() by GNND, whose graphs have 64 columns; without a number 64, too. Storages are those that FAISS spells behind
/// it, ",Flat" (or nothing), "_SQ8" and the like, "_PQ16", ",SQ8". Before it may come what FAISS takes before an index,
/// such as "PCA64," or "OPQ16,", and behind it ",RFlat" or ",Refine(...)"; "IDMap" and "IDMap2" on either
/// side, but beside a refinement FAISS 1.7.3 puts them inside of it, where nothing can be added.
/// "OPQ16_64,GNND64,NSG32_SQ8,RFlat" is one.
/// \param d            components of a vector
/// \param description  others than these are FAISS's alone
/// \throws faiss::FaissException that names the part it does not understand
std::unique_ptr<faiss::Index> index_factory(int d, const std::string& description,
                                            faiss::MetricType metric = faiss::METRIC_L2);

/// The index with add() by GNND: in place of an NSG or HNSW that gnnd_index.h has a class for, also inside of IDMap,
/// PreTransform and Refine (the index before refining), comes that class with its vectors and links.
/// \throws faiss::FaissException that names the class of others; the index is lost then
std::unique_ptr<faiss::Index> with_gnnd(std::unique_ptr<faiss::Index> index);

/// The builder of an index with GNND, also inside of these wrappers; null of others.
GnndGraphBuilder* builder_of(faiss::Index& index);

}  // namespace faiss_ext

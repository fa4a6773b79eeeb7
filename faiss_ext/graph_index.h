// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file graph_index.h
/// The adapters (adapters.h) by name, for programs that offer the choice.

#include <faiss/Index.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "faiss_ext/gpu.h"
#include "faiss_ext/options.h"
#include "faiss_ext/vector_source.h"

namespace faiss_ext {

/// A kind of graph index, by name. `make` gives one of a graph and its vectors with these values of its options; links
/// are chosen on a GPU where one is given. Its errors are those of adapters.h.
using GraphIndexType = Choice<std::function<std::unique_ptr<faiss::Index>(
    const VectorSource& source, const gnnd::KnnGraphView& graph, const OptionValues& values, const Gpu& gpu)>>;

/// All of them. What programs offer, and what they say of it, follows from this list.
const std::vector<GraphIndexType>& graph_index_types();

/// The index of that name over the graph.
/// \throws faiss::FaissException as the adapters do; for other names one that lists those there are
std::unique_ptr<faiss::Index> make_graph_index(const std::string& name, const VectorSource& source,
                                               const gnnd::KnnGraphView& graph, const OptionValues& values = {},
                                               const Gpu& gpu = {});

}  // namespace faiss_ext

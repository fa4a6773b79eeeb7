// SPDX-License-Identifier: MIT
#pragma once
/// \file optimize.h
/// optimize_graph() for who has the vectors as FAISS's storage already.

#include <faiss/IndexFlat.h>

#include "faiss_ext/detail/link_tree.h"
#include "faiss_ext/optimize.h"
#include "gnnd/builder.h"

namespace faiss_ext::detail {

/// \throws faiss::FaissException unless the graph has the source's n and metric; `who` asks
void check_fit(const char* who, const VectorSource& source, const gnnd::KnnGraphView& graph);

/// \throws faiss::FaissException unless graph and source fit, the graph is valid and there are vectors to build from;
/// `who` asks. Those on a GPU are checked when they are in the storage, see fill_storage()
void check_graph(const char* who, const VectorSource& source, const gnnd::KnnGraphView& graph);

/// The device that chooses links.
struct LinkPlace {
    gnnd::Device device = {gnnd::Device::Kind::cpu, 0};  ///< the CPU or a certain GPU
    gnnd::Resources* resources = nullptr;                ///< of the GPU; null: gnnd's own memory
};

/// Room for the links of n objects.
/// \param upper_degree  as in LinkTree
/// \param room          objects whose links there is memory for, where there is so much
LinkTree room_for_links(std::int64_t n, int degree, int upper_degree, std::int64_t room = 0);

/// \param source   on the host, or on the GPU of `place`; where the CPU chooses, the storage stands for one on a GPU
/// \param storage  the source's vectors, normalised under cosine; its distances decide what reaches what
/// \param graph    lies where the source does or on the host
/// \param tree     room_for_links(), written
/// \param former   as for TreeGrowth::attach_others()
void make_links(const VectorSource& source, const faiss::IndexFlat& storage, const gnnd::KnnGraphView& graph,
                const LinkPlace& place, LinkTree& tree, const std::vector<std::int32_t>& former = {});
/// \param upper_degree  as in LinkTree
/// \param gpu           who chooses; without resources the GPU that the source lies on, or the CPU
LinkTree make_links(const VectorSource& source, const faiss::IndexFlat& storage, const gnnd::KnnGraphView& graph,
                    int degree, int upper_degree, const Gpu& gpu);

}  // namespace faiss_ext::detail

// SPDX-License-Identifier: MIT
#pragma once
/// \file grow_links.h
/// Links for objects that were added to a graph, without choosing those of all others anew.

#include <vector>

#include "faiss_ext/detail/link_tree.h"
#include "gnnd/detail/device_graph.h"

namespace faiss_ext::detail {

/// The objects whose nearest neighbours are others than before, by number; the added ones are not among them.
/// \param before   old n x k
/// \param after    n x k, the same objects first
/// \param columns  of a row that count
std::vector<std::int32_t> changed_rows(const gnnd::KnnGraphView& before, const gnnd::KnnGraphView& after,
                                       std::int64_t columns);

/// Chooses links for the added objects, and anew for those whose rows have changed and for whom the added are linked
/// to. As for a whole graph (gnnd/search_links.h) their rows are pruned and get opposites; then, as far as there is
/// room, come the links that they had, and the rest of the row. Edges of the tree stay, and it grows until it holds the
/// added objects.
/// \param storage  all n objects, old ones first
/// \param graph    of them, n x k, on the host
/// \param pruned   what DeviceGraph::prune_around() says of it; null: the host prunes
/// \param old      so many of them are not added
/// \param changed  old objects whose rows have changed
/// \param tree     has n rows and parents, those of added objects without links and parents; old objects' links are
///                 kept there before they change
/// \param missed   the share of the objects that narrow searches missed when the links of all were chosen
/// \return the number of objects whose links were chosen
std::int64_t grow_links(const faiss::IndexFlat& storage, const gnnd::KnnGraphView& graph,
                        const gnnd::detail::PrunedObjects* pruned, std::int64_t old,
                        const std::vector<std::int32_t>& changed, LinkRows& tree, double missed);

}  // namespace faiss_ext::detail

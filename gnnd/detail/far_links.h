// SPDX-License-Identifier: MIT
#pragma once
/// \file far_links.h
/// Links for sets whose k-NN graph leads nowhere far: on a line or a plane, where all that an object's row holds lies
/// in a few directions, in tight groups, and among copies, whose rows hold little else. Pruned rows have few links
/// there, and what fills the room are neighbours next door, along which a narrow search does not get on. So rows get
/// candidates of all scales, as the levels of an HNSW give it them: from k-NN graphs over samples, each of an eighth of
/// the one before.

#include <cstdint>

#include "gnnd/builder.h"
#include "gnnd/search_links.h"

namespace gnnd::detail {

/// True where step 1 of search_links() leaves few links of an object, on average of a sample, and many of hardly any:
/// there choose_far_links() finds more. Where a line runs through a cloud, whoever searches in the cloud would be led
/// away from it. benchs/NOTEBOOK.md has what is left of sets of many kinds. Levels (link_levels.h) lead as far
/// in a plane, whose samples are like the whole.
/// \param vectors, graph, resources  as for prune_rows()
/// \param levels  the same vectors on the host, where links will have levels; null: they will not
bool needs_far_links(const VectorView& vectors, const KnnGraphView& graph, const VectorView* levels,
                     const Callbacks& callbacks = {}, Resources* resources = nullptr);

/// Chooses the links of all objects: by steps 1 and 2 of search_links() among candidates of all scales, of copies one;
/// then, where there is room, far ones of each scale, nearest first; two of the object's own copies, so that those that
/// see each other are a binary tree; and what is left of the candidates. The result is the same on any number of
/// threads wherever search_links() and build() give the same.
/// \param vectors, graph  on the host; the others as for search_links(), whose device also builds the samples' graphs
void choose_far_links(const VectorView& vectors, const KnnGraphView& graph, const LinkParams& params,
                      std::int32_t* links, const Callbacks& callbacks = {}, Resources* resources = nullptr);

/// For links without levels (link_levels.h): half of those of the object from which searches start lead anywhere then,
/// the first ones of its row, for searches may follow no others. Whoever would have to walk far from the middle is
/// spared half of the way. Of few objects, which are not far away, only where links are choose_far_links()'s.
/// \param far    whether they are
/// \param links  n x degree
void link_anywhere(bool far, std::int64_t n, int degree, std::int32_t entry, std::int32_t* links);

}  // namespace gnnd::detail

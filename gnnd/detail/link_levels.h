// SPDX-License-Identifier: MIT
#pragma once
/// \file link_levels.h
/// Levels above the links of all objects, as HNSW has them (Malkov and Yashunin, arXiv 1603.09320): on each are fewer
/// objects, with links among themselves. A search comes down them to where its walk begins.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gnnd/builder.h"
#include "gnnd/search_links.h"

namespace gnnd::detail {

/// Where links lie: those of level 0, which has all objects, and behind these, of some, those of the levels above, as
/// FAISS keeps an HNSW's.
struct LinkLayout {
    int degree = 0;                        ///< links of an object on level 0
    const std::size_t* offsets = nullptr;  ///< where those of each object begin; null: one row lies behind the other
    int top = 0;                           ///< the highest level
    int upper_degree = 0;                  ///< links on each level above 0

    std::size_t begin_of(std::int64_t object) const {
        return offsets == nullptr ? std::size_t(object) * std::size_t(degree) : offsets[object];
    }
    /// \param level  above 0, one that the object is on
    std::size_t begin_of(std::int64_t object, int level) const {
        return begin_of(object) + std::size_t(degree + (level - 1) * upper_degree);
    }
};

/// The levels above 0 of n objects, and what is on them.
class LinkLevels {
  public:
    /// How many objects are on each level above 0, the lowest first: one in `degree` of those below, as FAISS has it,
    /// but no more than one in eight, until nearly all can be linked to each other. The table that FAISS makes for an
    /// HNSW has room for as many.
    static std::vector<std::int64_t> sizes_for(std::int64_t n, int degree);
    /// Places for the links of n objects on all levels.
    /// \param upper_degree  on each level above 0; 0: there are none
    static std::size_t places_for(std::int64_t n, int degree, int upper_degree);

    /// Draws the objects, and links those of each level by search_links() over a graph of them. The result is the same
    /// on any number of threads wherever search_links() and build() give the same.
    /// \param vectors  on the host
    /// \param entry    is on all levels
    /// \param params   degree: links of an object on each level; the device also builds the graphs
    LinkLevels(const VectorView& vectors, Metric metric, std::int32_t entry, const LinkParams& params,
               const Callbacks& callbacks, Resources* resources);

    int top() const { return int(sizes_.size()); }
    /// Puts these behind the links of level 0. A quarter of those that objects of level 1 have there, the last ones,
    /// become links of level 1: a search that has come down beside what it looks for finds the way across as a wide
    /// one would there.
    /// \param degree   of level 0
    /// \param links    n x degree, in places_for() places; afterwards as LinkLayout says
    /// \param levels   n: on how many each object is
    /// \param offsets  n + 1: where the links of each begin, and all end
    void put_into(int degree, std::int32_t* links, int* levels, std::size_t* offsets) const;

  private:
    void link_across(std::int32_t* links, int degree) const;

    const std::int64_t n_;
    const int degree_;
    const std::vector<std::int64_t> sizes_;
    std::vector<std::int32_t> order_;               // those of level 1, of each higher level the first ones
    std::vector<std::vector<std::int32_t>> links_;  // of each level, objects in this order
};

}  // namespace gnnd::detail

// SPDX-License-Identifier: MIT
#pragma once
/// \file beam_search.h
/// The search that a graph index answers a query by: down the levels, where there are any, then along links, nearest
/// first.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gnnd/cpu/beam.h"
#include "gnnd/detail/link_levels.h"

namespace gnnd::detail {

/// Distances of the objects that are linked; smaller is nearer.
class ObjectDistances {
  public:
    virtual ~ObjectDistances() = default;
    virtual float between(std::int32_t a, std::int32_t b) = 0;
    /// The same for many others. `out` has room for up to kSpareKeys more.
    virtual void between_all(std::int32_t object, const std::int32_t* others, int count, float* out) {
        for (int i = 0; i < count; ++i) out[i] = between(object, others[i]);
    }
    static constexpr int kSpareKeys = 16;
    /// Says that distances of the object come next: most of a search is waiting for vectors from memory.
    virtual void prefetch(std::int32_t /*object*/) const {}
    /// The same for another thread: one of these is asked by one thread at a time.
    virtual std::unique_ptr<ObjectDistances> clone() const = 0;
};

/// True where one object is so far from another that lies this far from those around it: 16 times, four times where
/// distances are squared. Copies have nothing around them, and of similarities nothing is a multiple.
inline bool lies_apart(float distance, float around) {
    return around > 0 && distance > 16 * around;
}

/// Greedy searches for objects among the objects.
class BeamSearch {
  public:
    /// Links, -1 at the end of rows with fewer; read anew by every search.
    struct Links {
        const std::int32_t* rows;
        LinkLayout layout;
        std::int32_t entry;
        int of_entry;  ///< so many of the entry's are followed on level 0
    };

    /// \param beam   at most so many are found
    /// \param steps  after walking along the links of so many the search ends
    BeamSearch(const Links& links, int beam, int steps, ObjectDistances& distances)
        : links_(links),
          steps_(steps),
          distances_(distances),
          beam_(std::size_t(beam), std::size_t(beam)),
          keys_(std::size_t(std::max(links.layout.degree, links.layout.upper_degree) + ObjectDistances::kSpareKeys)) {}

    /// Searches for an object. \return true where it is found, or one that lies where it does
    bool find(std::int32_t object);
    /// The same answer, sooner; found() is of use only where it is false.
    bool finds(std::int32_t object);
    /// As finds(), where what lies as near to the object as half of those that it is linked to is as good; unless that
    /// lies far from the object beside its own links, as what is linked to one that lies apart, or to few that do.
    bool find_near(std::int32_t object);
    /// The entries that the last search has found, nearest first.
    const std::vector<cpu::Entry>& found() const { return beam_.entries(); }
    /// The same after half of the steps.
    const std::vector<cpu::Entry>& found_by_half() const { return by_half_; }
    /// Those whose links the last search has followed on level 0. Until these change it would go the same way.
    const std::vector<std::int32_t>& walked() const { return walked_; }

  private:
    bool search(std::int32_t object, bool to_tell);
    std::int32_t come_down(std::int32_t object);
    float middle_of_links(std::int32_t object);
    void visit(std::int32_t object, const std::int32_t* ids, int count);
    const std::int32_t* links_of(std::int32_t object) const { return links_.rows + links_.layout.begin_of(object); }

    const Links links_;
    const int steps_;
    ObjectDistances& distances_;
    cpu::Beam beam_;
    cpu::Seen seen_;
    std::vector<cpu::Entry> by_half_;
    std::vector<std::int32_t> walked_;
    std::vector<std::int32_t> fresh_;  // of the objects that are visited, those not seen before
    std::vector<float> keys_;          // how far
};

}  // namespace gnnd::detail

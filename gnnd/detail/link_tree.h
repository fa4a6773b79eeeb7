// SPDX-License-Identifier: MIT
#pragma once
/// \file link_tree.h
/// Links under which searches reach every object. Some of the links are the edges of a tree from the entry; whoever
/// changes links leaves these alone.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gnnd/array.h"
#include "gnnd/builder.h"
#include "gnnd/detail/beam_search.h"

namespace gnnd::detail {

/// Links and their tree where they lie, to be changed there.
class LinkRows {
  public:
    /// \param links    -1 at the end of rows with fewer
    /// \param layout   where they are; those of levels above 0 stay as they are
    /// \param parents  n: through whom each object is reached, the entry through itself; -1: not yet
    LinkRows(std::int32_t* links, const LinkLayout& layout, std::int32_t entry, std::vector<std::int32_t>& parents)
        : degree(layout.degree), entry(entry), parents(parents), links_(links), layout_(layout) {}

    std::int64_t n() const { return std::int64_t(parents.size()); }
    const std::int32_t* of(std::int64_t i) const { return links_ + layout_.begin_of(i); }
    /// Behind the last one.
    const std::int32_t* end_of(std::int64_t i) const { return std::find(of(i), of(i) + degree, -1); }
    std::int32_t* row(std::int64_t i) { return links_ + layout_.begin_of(i); }
    void prefetch(std::int64_t i) const {
        for (int j = 0; j < degree; j += 16) __builtin_prefetch(of(i) + j);
    }
    /// True where the link is an edge of the tree.
    bool is_edge(std::int32_t from, std::int32_t to) const { return parents[to] == from; }
    bool has_levels() const { return layout_.top > 0; }
    /// What a query's search walks along. \param of_entry  so many of the entry's links are followed on level 0
    BeamSearch::Links to_search(int of_entry) const { return {links_, layout_, entry, of_entry}; }
    /// The same on level 0 alone, where searches see what the entry's links lead to and nothing else.
    BeamSearch::Links on_level_0() const { return {links_, {degree, layout_.offsets}, entry, degree}; }
    /// Where a link from one object to another is, or could be: in place of none, or of the last one that is no edge of
    /// the tree; null where all are.
    std::int32_t* place_for(std::int32_t from, std::int32_t to);
    /// Links one object to another behind those it has; false where it is linked already, or all places are taken.
    bool add(std::int32_t from, std::int32_t to);
    /// Remembers an object's links, which are about to change.
    void keep(std::int32_t object);
    /// The same for many, by all threads. \return objects.size() x degree, the rows that are kept, until the next call
    const std::int32_t* keep(const std::vector<std::int32_t>& objects);
    /// Makes a link an edge of the tree, through which the object is reached from now on; unless it is itself what
    /// `from` is reached through.
    void make_edge(std::int32_t from, std::int32_t object);
    /// All that were kept are as they were, whatever came after, and edges made of links are what they were. Throws
    /// nothing.
    void undo();

    const int degree;
    const std::int32_t entry;
    std::vector<std::int32_t>& parents;

  private:
    std::int32_t* const links_;
    const LinkLayout layout_;
    std::vector<std::int32_t> kept_;                                   // objects, some more than once
    Array<std::int32_t> kept_links_;                                   // the links that they had
    std::vector<std::pair<std::int32_t, std::int32_t>> kept_parents_;  // objects, likewise, and their parents
};

/// Makes the tree grow until it holds all objects.
class TreeGrowth {
  public:
    /// \param distances  of the objects
    /// \param tree       its entry is reached; whoever else is has a parent
    /// \param callbacks  of them `interrupt` is asked, and Interrupted thrown
    TreeGrowth(ObjectDistances& distances, LinkRows& tree, const Callbacks& callbacks = {});
    /// Reaches all that the links of the object lead to, and theirs. The object itself is reached.
    void follow(std::int32_t object);
    /// The same for many, one after the other. Those of them that are not reached are passed over.
    /// \param first  all before this one are reached
    void follow(const std::vector<std::int32_t>& objects, std::int64_t first);
    /// Searches for objects that are not reached among those that are, and links them from the nearest found, but
    /// only few from each. Under inner products most objects are nobody's neighbour, and searches for all of them end
    /// at the few long ones: with their links taken no query would get on from there.
    /// \param first   all before this one are reached
    /// \param former  n, or none: through whom each object was reached when others were linked, -1 where that is not
    ///                known. It is linked from there without a search, as far as that one may take it
    void attach_others(std::int64_t first = 0, const std::vector<std::int32_t>& former = {});
    /// Lets narrow searches, as wide as FAISS's indexes search by default, find what they could not: where one for a
    /// sample of the objects, or for those that lie apart, ends elsewhere, in another cluster or at the border of what
    /// was added, a link leads on. The tree holds all objects. Links with levels lead back to the entry from everywhere
    /// afterwards, so that wide searches find all wherever they begin.
    /// \return the share of the objects that narrow searches miss whatever ways there are; 0 where ways help them
    double open_ways();
    /// The same where objects from this one on were added: these are searched for, and all where links were made.
    /// \param missed  what open_ways() has returned
    void open_ways_from(std::int64_t added, double missed);

  private:
    static constexpr int kMendings = 4;  // at most so many passes over those attached, or searched for
    using Found = std::vector<cpu::Entry>;
    using NarrowSearches = std::vector<BeamSearch>;  // of each kind of index that the links may be for
    /// Searches as FAISS's indexes make them by default, of one thread.
    struct Searcher {
        std::unique_ptr<ObjectDistances> distances;
        NarrowSearches searches;
    };
    /// An object, and what narrow searches for it have come to.
    struct Sought {
        std::int32_t object;
        std::size_t when = 0;             // links had been made so many times
        std::vector<Found> ends;          // of each kind: nothing where it gets near to the object
        std::vector<std::int32_t> along;  // while their links are the same the searches come to the same
        bool is_found() const { return std::all_of(ends.begin(), ends.end(), std::mem_fn(&Found::empty)); }
    };

    void check_interrupt() const;
    void follow_reached();
    void reach(std::int32_t object, std::int32_t from);
    void follow_links(std::int32_t from);
    bool mark_unreached();
    template <class Use>
    void for_each_marked(std::size_t first, std::size_t end, const Use& use) const;
    void follow_level(std::size_t first, std::size_t end);
    void mend(const std::vector<std::int32_t>& attached);
    bool make_link(std::int32_t from, std::int32_t to, int most);
    void spare_link(const Found& found, std::int32_t object, int most);
    std::vector<std::int32_t> those_apart();
    double lead_to(std::int64_t first, std::size_t searches, double usual);
    std::vector<std::int32_t> linked_by(const std::vector<Sought>& objects) const;
    void link(std::vector<Sought> missed);
    void lead_back();
    Searcher& searcher(int thread);
    std::vector<Sought> not_found(const std::int32_t* objects, std::int64_t count);
    void seek(std::vector<Sought>& sought, std::size_t begin, std::size_t end);
    bool comes_elsewhere(const Sought& sought) const;

    LinkRows& tree_;
    ObjectDistances& distances_;
    const Callbacks callbacks_;
    std::int64_t all_reached_ = 0;       // all before this one are
    std::vector<std::int32_t> reached_;  // from the object that is followed, in the order in which they were reached
    std::vector<std::uint32_t> claims_;  // n: the first place in reached_ that links to an object, until it is reached
    /// n bits, for a level of many: small enough for a processor's caches, which parents are not
    std::vector<std::uint64_t> unreached_;
    std::int32_t spare_ = 0;  // the object that is asked next for a link to spare
    BeamSearch search_;
    const int threads_;
    std::vector<std::unique_ptr<Searcher>> searchers_;         // of each thread, once it has any
    std::size_t times_made_ = 0;                               // links were made so many times
    std::unordered_map<std::int32_t, std::size_t> made_from_;  // whose links these are, and the last of the times
    const int most_edges_;                                     // of an object to which others are attached
};

}  // namespace gnnd::detail

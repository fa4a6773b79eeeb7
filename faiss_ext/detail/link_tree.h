// SPDX-License-Identifier: MIT
#pragma once
/// \file link_tree.h
/// Links under which searches reach every object. Some of the links are the edges of a tree from the entry; whoever
/// changes links leaves these alone.

#include <faiss/IndexFlat.h>
#include <faiss/impl/DistanceComputer.h>

#include <memory>
#include <vector>

#include "faiss_ext/optimize.h"

namespace faiss_ext::detail {

/// A search graph with its tree.
struct LinkTree : SearchGraph {
    std::vector<std::int32_t> parents;  ///< through whom each object is reached, the entry through itself; -1: not yet
};

/// Links and their tree where they lie, to be changed there.
class LinkRows {
  public:
    explicit LinkRows(LinkTree& tree) : LinkRows(tree.links.data(), tree.degree, tree.entry, tree.parents) {}
    /// \param links    n x degree
    /// \param parents  n
    LinkRows(std::int32_t* links, int degree, std::int32_t entry, std::vector<std::int32_t>& parents)
        : degree(degree), entry(entry), parents(parents), links_(links) {}

    std::int64_t n() const { return std::int64_t(parents.size()); }
    const std::int32_t* of(std::int64_t i) const { return links_ + i * degree; }
    std::int32_t* row(std::int64_t i) { return links_ + i * degree; }
    /// True where the link is an edge of the tree.
    bool is_edge(std::int32_t from, std::int32_t to) const { return parents[to] == from; }
    /// Links one object to another behind those it has; false where it is linked already, or all places are taken.
    bool add(std::int32_t from, std::int32_t to);
    /// Remembers an object's links, which are about to change.
    void keep(std::int32_t object);
    /// All that were kept are as they were, whatever came after. Throws nothing.
    void undo();

    const int degree;
    const std::int32_t entry;
    std::vector<std::int32_t>& parents;  ///< as in LinkTree

  private:
    std::int32_t* const links_;
    std::vector<std::int32_t> kept_, kept_links_;  // objects, some more than once, and the links that they had
};

/// Distances under the storage's metric; smaller is nearer.
class StorageDistances {
  public:
    explicit StorageDistances(const faiss::IndexFlat& storage);
    float between(idx_t a, idx_t b) { return sign_ * computer_->symmetric_dis(a, b); }
    void set_query(const float* x) { computer_->set_query(x); }
    float to_query(idx_t i) { return sign_ * (*computer_)(i); }

  private:
    std::unique_ptr<faiss::DistanceComputer> computer_;
    float sign_;
};

/// Makes the tree grow until it holds all objects.
class TreeGrowth {
  public:
    /// \param storage  the objects' vectors
    /// \param tree     its entry is reached; whoever else is has a parent
    TreeGrowth(const faiss::IndexFlat& storage, LinkRows& tree);
    /// Reaches all that the links of the object lead to, and theirs. The object itself is reached.
    void follow(std::int32_t object);
    /// Searches for objects that are not reached as a query would, and links them from the nearest found.
    void attach_others();

  private:
    static constexpr int kBeam = 64;  // width of the search

    struct Step {
        float distance;
        std::int32_t id;
        bool expanded;
        bool operator<(const Step& other) const;
    };

    void reach(std::int32_t object, std::int32_t parent);
    void follow_links(std::int32_t from);
    void follow_level(std::size_t first, std::size_t end);
    void mend(const std::vector<std::int32_t>& attached);
    bool make_link(std::int32_t from, std::int32_t to);
    std::int32_t spare_link(const std::vector<Step>& found, std::int32_t object);
    const std::vector<Step>& beam_search(std::int32_t object);
    std::size_t visit(std::int32_t query, std::int32_t id);

    LinkRows& tree_;
    StorageDistances distances_;
    std::vector<std::int32_t> reached_;  // in the order in which they were reached
    std::vector<std::uint32_t> claims_;  // n: the first place in reached_ that links to an object
    std::size_t claimed_ = 0;            // those before it in reached_ have been claimed
    std::size_t spare_ = 0;              // those before it in reached_ have no link to spare
    std::vector<std::uint32_t> seen_;    // in which search last
    std::uint32_t search_ = 0;
    std::vector<Step> pool_;
};

}  // namespace faiss_ext::detail

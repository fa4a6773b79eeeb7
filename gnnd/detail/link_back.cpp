// SPDX-License-Identifier: MIT
// Links back to the entry, from which all is reached: for searches that come down levels and begin anywhere.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gnnd/cpu/parallel.h"
#include "gnnd/detail/link_tree.h"

namespace gnnd::detail {

namespace {

class LinksBack {
  public:
    LinksBack(LinkRows& tree, const cpu::Team& team) : tree_(tree), team_(team), leads_(tree.n()) {
        leads_[tree.entry] = 1;
        for (std::int64_t i = 0; i < tree.n(); ++i)
            if (i != tree.entry) others_.push_back(std::int32_t(i));
    }

    void run() {
        while (sweep()) continue;
        if (others_.empty()) return;
        collect_sources();
        for (const std::int32_t object : others_)
            if (leads_to(object)) follow(object);
        std::vector<std::int32_t> path;  // up the tree
        for (const std::int32_t other : others_) {
            path.clear();
            for (std::int32_t at = other; leads_[at] == 0; at = tree_.parents[at]) path.push_back(at);
            std::for_each(path.rbegin(), path.rend(), [&](std::int32_t object) { link_back(object); });
        }
    }

  private:
    /// True where some link of the object leads to one from which the entry is reached.
    bool leads_to(std::int32_t object) {
        return std::any_of(tree_.of(object), tree_.end_of(object), [&](std::int32_t link) {
            return std::atomic_ref(leads_[link]).load(std::memory_order_relaxed) != 0;
        });
    }

    /// One step back from all that lead to the entry, or several. \return false when little came of it, or nothing is
    /// left
    bool sweep() {
        constexpr std::int64_t kChunk = 1024;
        constexpr std::size_t kLeast = 4;  // one in so many
        const std::size_t before = others_.size();
        team_.for_chunks(std::int64_t(before), kChunk, [&](int, std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i)
                if (leads_to(others_[i])) std::atomic_ref(leads_[others_[i]]).store(1, std::memory_order_relaxed);
        });
        std::erase_if(others_, [&](std::int32_t object) { return leads_[object] != 0; });
        return !others_.empty() && (before - others_.size()) * kLeast >= before;
    }

    /// Who links to each of those that are left, as far as these are left, too.
    void collect_sources() {
        slots_.assign(tree_.n(), -1);
        for (std::size_t slot = 0; slot < others_.size(); ++slot) slots_[others_[slot]] = std::int32_t(slot);
        begins_.assign(others_.size() + 1, 0);
        const auto for_links = [&](const auto& use) {
            for (const std::int32_t object : others_)
                std::for_each(tree_.of(object), tree_.end_of(object), [&](std::int32_t link) {
                    if (slots_[link] >= 0) use(object, std::size_t(slots_[link]));
                });
        };
        for_links([&](std::int32_t, std::size_t slot) { ++begins_[slot + 1]; });
        for (std::size_t slot = 0; slot < others_.size(); ++slot) begins_[slot + 1] += begins_[slot];
        sources_.resize(begins_.back());
        std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
        for_links([&](std::int32_t object, std::size_t slot) { sources_[next[slot]++] = object; });
    }

    /// The object leads to the entry: so do those that link to it, and theirs.
    void follow(std::int32_t object) {
        if (leads_[object] != 0) return;
        leads_[object] = 1;
        std::vector<std::int32_t> queue{object};
        for (std::size_t i = 0; i < queue.size(); ++i) {
            const auto slot = std::size_t(slots_[queue[i]]);
            for (std::size_t s = begins_[slot]; s < begins_[slot + 1]; ++s) {
                if (leads_[sources_[s]] != 0) continue;
                leads_[sources_[s]] = 1;
                queue.push_back(sources_[s]);
            }
        }
    }

    /// Links an object that does not lead to the entry to the one through which it is reached, and which does; or one
    /// that it links to, where all its own links are edges of the tree.
    void link_back(std::int32_t object) {
        const std::int32_t parent = tree_.parents[object];
        if (leads_[object] != 0 || leads_[parent] == 0) return;
        std::vector<std::int32_t> ways{object};
        ways.insert(ways.end(), tree_.of(object), tree_.end_of(object));
        const auto way = std::find_if(ways.begin(), ways.end(),
                                      [&](std::int32_t from) { return leads_[from] == 0 && add(from, parent); });
        if (way != ways.end()) follow(*way);
    }

    /// False where there is no place for a link.
    bool add(std::int32_t from, std::int32_t to) {
        std::int32_t* const place = tree_.place_for(from, to);
        if (place == nullptr) return false;
        tree_.keep(from);
        *place = to;
        return true;
    }

    LinkRows& tree_;
    const cpu::Team& team_;
    std::vector<std::uint8_t> leads_;    // n: 1 where the entry is reached
    std::vector<std::int32_t> slots_;    // n: which of the others each object is, or -1
    std::vector<std::int32_t> others_;   // those that were left when sweeps had ended
    std::vector<std::size_t> begins_;    // of each other's sources, and the end
    std::vector<std::int32_t> sources_;  // who links to them
};

}  // namespace

void TreeGrowth::lead_back() {
    const cpu::Team team{threads_, &callbacks_.interrupt};
    LinksBack(tree_, team).run();
}

}  // namespace gnnd::detail

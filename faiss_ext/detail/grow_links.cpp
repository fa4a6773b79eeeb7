// SPDX-License-Identifier: MIT
#include "faiss_ext/detail/grow_links.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/index_rows.h"
#include "gnnd/array.h"
#include "gnnd/cpu/parallel.h"
#include "gnnd/search_links.h"

namespace faiss_ext::detail {

namespace {

constexpr std::int64_t kChunk = 256, kAhead = 8;  // objects

class LinkGrowth {
  public:
    /// The host prunes.
    LinkGrowth(const gnnd::VectorView& vectors, const gnnd::KnnGraphView& graph, std::int64_t old,
               const std::vector<std::int32_t>& changed, LinkRows& tree)
        : LinkGrowth(graph, old, tree) {
        for (std::int64_t i = old_; i < tree.n(); ++i) objects_.push_back(std::int32_t(i));
        prune(vectors);
        add_targets(changed);
        prune(vectors);
        links_ = pruned_.data();
    }
    /// It is done.
    LinkGrowth(const gnnd::detail::PrunedObjects& pruned, const gnnd::KnnGraphView& graph, std::int64_t old,
               LinkRows& tree)
        : LinkGrowth(graph, old, tree) {
        objects_.assign(pruned.objects(), pruned.objects() + pruned.count);
        links_ = pruned.links();
    }

    void run() {
        before_ = tree_.keep(objects_);
        kept_.resize(count());
        for_objects([&](std::int64_t c) { take_pruned(c); });
        add_opposites();
        for_objects([&](std::int64_t c) { fill_up(c); });
    }

    const std::vector<std::int32_t>& objects() const { return objects_; }

  private:
    LinkGrowth(const gnnd::KnnGraphView& graph, std::int64_t old, LinkRows& tree)
        : graph_(graph), tree_(tree), old_(old), degree_(tree.degree) {}

    std::int64_t count() const { return std::int64_t(objects_.size()); }

    /// use(c) for all objects, by all threads. Rows lie in no order that a processor foresees.
    template <class Use>
    void for_objects(const Use& use) const {
        team_.for_chunks(count(), kChunk, [&](int, std::int64_t begin, std::int64_t end) {
            for (std::int64_t c = begin; c < end; ++c) {
                if (c + kAhead < end) tree_.prefetch(objects_[c + kAhead]);
                use(c);
            }
        });
    }

    /// Prunes the rows of those objects that have joined since.
    void prune(const gnnd::VectorView& vectors) {
        const std::size_t done = pruned_.size() / degree_;
        pruned_.resize(objects_.size() * degree_);
        gnnd::LinkParams params;
        params.degree = degree_;
        gnnd::prune_rows(vectors, graph_, objects_.data() + done, count() - std::int64_t(done), params,
                         pruned_.data() + done * degree_, hooks_);
    }

    /// Beside those whose rows have changed, the old ones that added objects are linked to: they get opposites.
    void add_targets(const std::vector<std::int32_t>& changed) {
        constexpr int kBits = 64;
        std::vector<std::uint64_t> joins(old_ / kBits + 1);  // a bit for each object; to sort them takes longer
        const auto join = [&](std::int32_t object) { joins[object / kBits] |= std::uint64_t(1) << (object % kBits); };
        for (const std::int32_t object : changed) join(object);
        for (const std::int32_t target : pruned_)
            if (target >= 0 && target < old_) join(target);
        for (std::size_t word = 0; word < joins.size(); ++word)
            for (std::uint64_t bits = joins[word]; bits != 0; bits &= bits - 1)
                objects_.push_back(std::int32_t(word) * kBits + std::countr_zero(bits));
    }

    /// The object's row becomes what pruning has left, with room for the tree's edges, and these.
    void take_pruned(std::int64_t c) {
        const std::int32_t object = objects_[c];
        std::int32_t* row = tree_.row(object);
        const std::int32_t *before = before_ + c * degree_, *pruned = links_ + c * degree_;
        const std::int32_t* end = std::find(pruned, pruned + degree_, -1);
        const auto is_lost = [&](std::int32_t link) {
            return link >= 0 && tree_.is_edge(object, link) && std::find(pruned, end, link) == end;
        };
        while (end - pruned + std::count_if(before, before + degree_, is_lost) > degree_) --end;
        kept_[c] = int(end - pruned);
        std::fill(std::copy(pruned, end, row), row + degree_, -1);
        std::copy_if(before, before + degree_, row + kept_[c], is_lost);
    }

    /// As in gnnd/search_links.h, between added objects and those that link them or are linked by them.
    void add_opposites() {
        struct Link {
            int rank;
            std::int32_t from, to;
        };
        std::vector<std::vector<Link>> found((count() + kChunk - 1) / kChunk);
        for_objects([&](std::int64_t c) {
            for (int j = 0; j < kept_[c]; ++j) {
                const std::int32_t from = objects_[c], to = tree_.of(from)[j];
                if (from >= old_ || to >= old_) found[c / kChunk].push_back({j, from, to});
            }
        });
        // A row is changed by one thread, in the order of the ranks. A product finds its part in less time than a rest.
        const auto parts = std::uint64_t(team_.threads);
        const auto part_of = [&](const Link& link) { return (std::uint32_t(link.to) * 0x9e3779b1u) * parts >> 32; };
        team_.for_chunks(std::int64_t(parts), 1, [&](int, std::int64_t part, std::int64_t) {
            std::vector<Link> mine;
            for (const std::vector<Link>& here : found)
                std::copy_if(here.begin(), here.end(), std::back_inserter(mine),
                             [&](const Link& link) { return part_of(link) == std::uint64_t(part); });
            std::stable_sort(mine.begin(), mine.end(), [](const Link& a, const Link& b) { return a.rank < b.rank; });
            for (std::int64_t i = 0; i < std::int64_t(mine.size()); ++i) {
                if (i + kAhead < std::int64_t(mine.size())) tree_.prefetch(mine[i + kAhead].to);
                tree_.add(mine[i].to, mine[i].from);
            }
        });
    }

    void fill_up(std::int64_t c) {
        const std::int32_t object = objects_[c];
        std::int32_t* row = tree_.row(object);
        int size = int(std::find(row, row + degree_, -1) - row);
        // Most links are there already; to look at all places without a branch takes half the time.
        const auto has = [&](std::int32_t link) {
            int equal = 0;
            for (int j = 0; j < size; ++j) equal += row[j] == link;
            return equal != 0;
        };
        const auto add_all = [&](const std::int32_t* links, std::int64_t count) {
            for (std::int64_t j = 0; j < count && links[j] >= 0 && size < degree_; ++j)
                if (links[j] != object && !has(links[j])) row[size++] = links[j];
        };
        add_all(before_ + c * degree_, degree_);
        add_all(graph_.ids_of(object), graph_.k);
    }

    const gnnd::KnnGraphView graph_;
    LinkRows& tree_;
    const std::int64_t old_;  // so many objects were there before
    const int degree_;
    const gnnd::Callbacks hooks_ = interrupt_hooks();
    const gnnd::cpu::Team team_{gnnd::cpu::Team::resolve(0), &hooks_.interrupt};
    std::vector<std::int32_t> objects_;  // whose links are chosen: the added ones, then the others by number
    gnnd::Array<std::int32_t> pruned_;   // a row for each of them, where the host prunes
    const std::int32_t* links_;          // what pruning has left, likewise
    const std::int32_t* before_;         // the links that they had, likewise
    std::vector<int> kept_;              // so many of what pruning has left are in the row
};

}  // namespace

std::vector<std::int32_t> changed_rows(const gnnd::KnnGraphView& before, const gnnd::KnnGraphView& after,
                                       std::int64_t columns) {
    const gnnd::Callbacks hooks = interrupt_hooks();
    const gnnd::cpu::Team team{gnnd::cpu::Team::resolve(0), &hooks.interrupt};
    columns = std::min({columns, before.k, after.k});
    std::vector<char> differs(before.n);
    team.for_chunks(before.n, 16 * kChunk, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
            differs[i] = !std::equal(before.ids_of(i), before.ids_of(i) + columns, after.ids_of(i));
    });
    std::vector<std::int32_t> changed;
    for (std::int64_t i = 0; i < before.n; ++i)
        if (differs[i] != 0) changed.push_back(std::int32_t(i));
    return changed;
}

std::int64_t grow_links(const faiss::IndexFlat& storage, const gnnd::KnnGraphView& graph,
                        const gnnd::detail::PrunedObjects* pruned, std::int64_t old,
                        const std::vector<std::int32_t>& changed, LinkRows& tree, double missed) {
    const VectorSource rows = view_rows(storage, 0, storage.ntotal, graph.metric);
    LinkGrowth links = pruned != nullptr ? LinkGrowth(*pruned, graph, old, tree)
                                         : LinkGrowth(rows.on_host(), graph, old, changed, tree);
    links.run();
    StorageDistances distances(storage);
    TreeGrowth growth(distances, tree, interrupt_hooks());
    growth.follow(links.objects(), old);
    growth.attach_others(old);
    growth.open_ways_from(old, missed);
    return std::int64_t(links.objects().size());
}

}  // namespace faiss_ext::detail

// SPDX-License-Identifier: MIT
#include "faiss_ext/detail/grow_links.h"

#include <algorithm>

#include "faiss_ext/detail/errors.h"
#include "gnnd/cpu/parallel.h"
#include "gnnd/search_links.h"

namespace faiss_ext::detail {

namespace {

constexpr std::int64_t kChunk = 256;  // objects

class LinkGrowth {
  public:
    LinkGrowth(const VectorSource& source, const gnnd::KnnGraphView& graph, std::int64_t old,
               const std::vector<std::int32_t>& changed, LinkRows& tree)
        : source_(source), graph_(graph), tree_(tree), old_(old), degree_(tree.degree) {
        for (std::int64_t i = old_; i < tree.n(); ++i) objects_.push_back(std::int32_t(i));
        prune();
        add_targets(changed);
        prune();
    }

    void run() {
        for (const std::int32_t object : objects_) tree_.keep(object);
        before_.resize(std::size_t(count()) * degree_);
        kept_.resize(count());
        team_.for_chunks(count(), kChunk, [&](int, std::int64_t begin, std::int64_t end) {
            for (std::int64_t c = begin; c < end; ++c) take_pruned(c);
        });
        add_opposites();
        team_.for_chunks(count(), kChunk, [&](int, std::int64_t begin, std::int64_t end) {
            for (std::int64_t c = begin; c < end; ++c) fill_up(c);
        });
    }

    const std::vector<std::int32_t>& objects() const { return objects_; }

  private:
    std::int64_t count() const { return std::int64_t(objects_.size()); }

    /// Prunes the rows of those objects that have joined since.
    void prune() {
        const std::size_t done = pruned_.size() / degree_;
        pruned_.resize(objects_.size() * degree_);
        gnnd::LinkParams params;
        params.degree = degree_;
        gnnd::prune_rows(source_.on_host(), graph_, objects_.data() + done, std::int64_t(objects_.size() - done),
                         params, pruned_.data() + done * degree_, hooks_);
    }

    /// Beside those whose rows have changed, the old ones that added objects are linked to: they get opposites.
    void add_targets(const std::vector<std::int32_t>& changed) {
        std::vector<std::int32_t> others = changed;
        for (const std::int32_t target : pruned_)
            if (target >= 0 && target < old_) others.push_back(target);
        std::sort(others.begin(), others.end());
        others.erase(std::unique(others.begin(), others.end()), others.end());
        objects_.insert(objects_.end(), others.begin(), others.end());
    }

    /// The object's row becomes what pruning has left, with room for the tree's edges, and these.
    void take_pruned(std::int64_t c) {
        const std::int32_t object = objects_[c];
        std::int32_t *row = tree_.row(object), *before = &before_[std::size_t(c) * degree_];
        std::copy_n(row, degree_, before);
        const std::int32_t* pruned = &pruned_[std::size_t(c) * degree_];
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
        for (int j = 0; j < degree_; ++j)
            for (std::int64_t c = 0; c < count(); ++c) {
                if (j >= kept_[c]) continue;
                const std::int32_t from = objects_[c], to = tree_.row(from)[j];
                if (from >= old_ || to >= old_) tree_.add(to, from);
            }
    }

    void fill_up(std::int64_t c) {
        const std::int32_t object = objects_[c];
        const auto add_all = [&](const std::int32_t* links, std::int64_t count) {
            for (std::int64_t j = 0; j < count && links[j] >= 0 && tree_.row(object)[degree_ - 1] < 0; ++j)
                if (links[j] != object) tree_.add(object, links[j]);
        };
        add_all(&before_[std::size_t(c) * degree_], degree_);
        add_all(graph_.ids_of(object), graph_.k);
    }

    const VectorSource& source_;
    const gnnd::KnnGraphView graph_;
    LinkRows& tree_;
    const std::int64_t old_;  // so many objects were there before
    const int degree_;
    const gnnd::Callbacks hooks_ = interrupt_hooks();
    const gnnd::cpu::Team team_{gnnd::cpu::Team::resolve(0), &hooks_.interrupt};
    std::vector<std::int32_t> objects_;  // whose links are chosen: the added ones, then the others by number
    std::vector<std::int32_t> pruned_;   // a row for each of them
    std::vector<std::int32_t> before_;   // the links that they had, likewise
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

std::int64_t grow_links(const VectorSource& source, const faiss::IndexFlat& storage, const gnnd::KnnGraphView& graph,
                        std::int64_t old, const std::vector<std::int32_t>& changed, LinkRows& tree) {
    LinkGrowth links(source, graph, old, changed, tree);
    links.run();
    StorageDistances distances(storage);
    TreeGrowth growth(distances, tree, interrupt_hooks());
    for (const std::int32_t object : links.objects())
        if (tree.parents[object] >= 0) growth.follow(object);
    growth.attach_others();
    return std::int64_t(links.objects().size());
}

}  // namespace faiss_ext::detail

// SPDX-License-Identifier: MIT
#include "gnnd/detail/link_tree.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "gnnd/cpu/parallel.h"
#include "gnnd/error.h"

namespace gnnd::detail {

namespace {

constexpr int kBeam = 64;                   // of searches for what is not reached
constexpr int kSpared = 8;                  // of an object's links one in so many may lead to others, and two at least
constexpr int kAhead = 8;                   // rows lie in no order that a processor foresees
constexpr std::size_t kManyReached = 8192;  // from so many on their links are followed by all threads

}  // namespace

std::int32_t* LinkRows::place_for(std::int32_t from, std::int32_t to) {
    std::int32_t *links = row(from), *end = links + degree, *place = std::find(links, end, to);
    if (place == end) place = std::find(links, end, -1);
    while (place == end || (*place >= 0 && *place != to && is_edge(from, *place)))
        if (place-- == links) return nullptr;
    return place;
}

bool LinkRows::add(std::int32_t from, std::int32_t to) {
    std::int32_t *begin = row(from), *end = begin + degree;
    for (; begin != end && *begin >= 0; ++begin)
        if (*begin == to) return false;
    if (begin == end) return false;
    *begin = to;
    return true;
}

void LinkRows::keep(std::int32_t object) {
    kept_links_.insert(kept_links_.end(), of(object), of(object) + degree);
    kept_.push_back(object);
}

const std::int32_t* LinkRows::keep(const std::vector<std::int32_t>& objects) {
    constexpr std::int64_t kObjects = 256;
    const std::size_t before = kept_.size();
    kept_links_.resize((before + objects.size()) * degree);
    try {
        kept_.insert(kept_.end(), objects.begin(), objects.end());
    } catch (...) {
        kept_links_.resize(before * degree);
        throw;
    }
    const auto count = std::int64_t(objects.size());
#pragma omp parallel for schedule(static) if (count > kObjects)
    for (std::int64_t i = 0; i < count; ++i)
        std::copy_n(of(objects[i]), degree, &kept_links_[(before + std::size_t(i)) * degree]);
    return kept_links_.data() + before * degree;
}

void LinkRows::undo() {
    for (std::size_t i = kept_.size(); i-- > 0;) std::copy_n(&kept_links_[i * degree], degree, row(kept_[i]));
    for (std::size_t i = kept_parents_.size(); i-- > 0;) parents[kept_parents_[i].first] = kept_parents_[i].second;
}

void LinkRows::make_edge(std::int32_t from, std::int32_t object) {
    for (std::int32_t above = from, below = -1; above != below; below = above, above = parents[above])
        if (above == object) return;  // the entry is its own parent
    kept_parents_.emplace_back(object, parents[object]);
    parents[object] = from;
}

TreeGrowth::TreeGrowth(ObjectDistances& distances, LinkRows& tree, const Callbacks& callbacks)
    : tree_(tree),
      distances_(distances),
      callbacks_(callbacks),
      search_(tree.on_level_0(), kBeam, std::numeric_limits<int>::max(), distances),
      threads_(cpu::Team::resolve(0)),
      searchers_(threads_),
      most_edges_(std::max(tree.degree / kSpared, 2)) {
    tree.parents[tree.entry] = tree.entry;
}

void TreeGrowth::check_interrupt() const {
    if (callbacks_.interrupt && callbacks_.interrupt()) throw Interrupted("interrupted by the caller");
}

void TreeGrowth::attach_others(std::int64_t first, const std::vector<std::int32_t>& former) {
    std::vector<std::int32_t> attached;
    spare_ = std::int32_t(first);  // those before may have given what they can
    all_reached_ = first;
    for (std::int64_t i = first; i < tree_.n(); ++i) {
        if (tree_.parents[i] >= 0) continue;
        if (attached.size() % 1024 == 0) check_interrupt();
        const auto object = std::int32_t(i);
        const std::int32_t before = former.empty() ? -1 : former[object];
        if (before < 0 || before == object || tree_.parents[before] < 0 || !make_link(before, object, most_edges_)) {
            search_.find(object);
            spare_link(search_.found(), object, most_edges_);
        }
        // All that the search finds may have given what they can, as equal vectors, or long ones under inner products.
        // Some other reached object never has, since there are fewer edges than objects that are reached.
        while (tree_.parents[object] < 0)
            if (tree_.parents[spare_] < 0 || !make_link(spare_, object, most_edges_))
                spare_ = std::int32_t((spare_ + 1) % tree_.n());
        follow(object);
        attached.push_back(object);
    }
    mend(attached);
}

/// A search for an object that was attached early may now end at others, attached later and nearer to it.
void TreeGrowth::mend(const std::vector<std::int32_t>& attached) {
    bool missed = true;
    for (int round = 0; round < kMendings && missed; ++round) {
        missed = false;
        for (const std::int32_t object : attached) {
            if (search_.finds(object)) continue;
            missed = true;
            spare_link(search_.found(), object, most_edges_);
        }
        check_interrupt();
    }
}

void TreeGrowth::follow(std::int32_t object) {
    reached_.clear();
    follow_links(object);
    follow_reached();
}

/// Links to what is not reached are few, and looked for by all threads.
void TreeGrowth::follow(const std::vector<std::int32_t>& objects, std::int64_t first) {
    constexpr std::int64_t kObjects = 1024;
    struct Link {
        std::int32_t from, to;
    };
    all_reached_ = first;
    const cpu::Team team{threads_, &callbacks_.interrupt};
    const auto count = std::int64_t(objects.size());
    std::vector<std::vector<Link>> found((count + kObjects - 1) / kObjects);
    team.for_chunks(count, kObjects, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            if (i + kAhead < end) tree_.prefetch(objects[i + kAhead]);
            if (tree_.parents[objects[i]] < 0) continue;
            const std::int32_t* links = tree_.of(objects[i]);
            for (int j = 0; j < tree_.degree && links[j] >= 0; ++j)
                if (links[j] >= first && tree_.parents[links[j]] < 0)
                    found[begin / kObjects].push_back({objects[i], links[j]});
        }
    });
    std::int32_t from = -1;
    reached_.clear();
    for (const std::vector<Link>& here : found)
        for (const Link& link : here) {
            if (link.from != from) {
                follow_reached();
                reached_.clear();
                from = link.from;
            }
            reach(link.to, from);
        }
    follow_reached();
}

/// Follows what was reached so far.
void TreeGrowth::follow_reached() {
    std::size_t next = 0;  // whose links come next
    while (next != reached_.size()) {
        const std::size_t end = reached_.size();
        if (end - next < kManyReached) {
            follow_links(reached_[next++]);
        } else {
            if (!mark_unreached()) return;
            if (threads_ > 1)
                follow_level(next, end);
            else
                for_each_marked(next, end, [&](std::size_t place, std::int32_t to) { reach(to, reached_[place]); });
            next = end;
        }
    }
}

/// \return whether there are any
bool TreeGrowth::mark_unreached() {
    constexpr std::int64_t kWords = 256;
    const auto words = (tree_.n() + 63) / 64;
    unreached_.resize(words);
    std::atomic<bool> any{false};
    const cpu::Team team{threads_, &callbacks_.interrupt};
    team.for_chunks(words, kWords, [&](int, std::int64_t begin, std::int64_t end) {
        std::uint64_t some = 0;
        for (std::int64_t word = begin; word < end; ++word) {
            std::uint64_t bits = 0;
            const std::int64_t first = 64 * word, last = std::min(first + 64, tree_.n());
            for (std::int64_t i = first; i < last; ++i) bits |= std::uint64_t(tree_.parents[i] < 0) << (i - first);
            unreached_[word] = bits;
            some |= bits;
        }
        if (some != 0) any = true;
    });
    return any;
}

void TreeGrowth::follow_links(std::int32_t from) {
    const std::int32_t* links = tree_.of(from);
    for (int j = 0; j < tree_.degree && links[j] >= 0; ++j) reach(links[j], from);
}

void TreeGrowth::reach(std::int32_t object, std::int32_t from) {
    if (object < all_reached_ || tree_.parents[object] >= 0) return;
    tree_.parents[object] = from;
    reached_.push_back(object);
}

/// Calls use(place, object) for each link from the places [first, end) of reached_ to an object that is marked.
template <class Use>
void TreeGrowth::for_each_marked(std::size_t first, std::size_t end, const Use& use) const {
    for (std::size_t place = first; place < end; ++place) {
        if (place + kAhead < end) tree_.prefetch(reached_[place + kAhead]);
        const std::int32_t* links = tree_.of(reached_[place]);
        for (int j = 0; j < tree_.degree && links[j] >= 0; ++j)
            if ((unreached_[links[j] / 64] >> (links[j] % 64) & 1) != 0) use(place, links[j]);
    }
}

/// Follows the links of the places [first, end) of reached_ on all threads: every object that they link to is claimed
/// by the first of them, and comes in the order in which one thread would have come to it.
void TreeGrowth::follow_level(std::size_t first, std::size_t end) {
    constexpr std::int64_t kPlaces = 1024;
    struct Claim {
        std::size_t place;
        std::int32_t to;
    };
    const cpu::Team team{threads_, &callbacks_.interrupt};
    const auto places = std::int64_t(end - first);
    std::vector<std::vector<Claim>> found((places + kPlaces - 1) / kPlaces);
    claims_.resize(tree_.parents.size(), ~0U);
    team.for_chunks(places, kPlaces, [&](int, std::int64_t begin, std::int64_t stop) {
        std::vector<Claim>& here = found[begin / kPlaces];
        for_each_marked(first + std::size_t(begin), first + std::size_t(stop), [&](std::size_t place, std::int32_t to) {
            const std::atomic_ref<std::uint32_t> claim(claims_[to]);
            std::uint32_t seen = claim.load(std::memory_order_relaxed);
            while (place < seen)
                if (claim.compare_exchange_weak(seen, std::uint32_t(place), std::memory_order_relaxed)) {
                    here.push_back({place, to});
                    break;
                }
        });
    });
    team.for_chunks(std::int64_t(found.size()), 1, [&](int, std::int64_t chunk, std::int64_t) {
        std::erase_if(found[chunk], [&](const Claim& claim) { return claims_[claim.to] != claim.place; });
    });
    std::vector<std::size_t> offsets{end};
    for (const auto& here : found) offsets.push_back(offsets.back() + here.size());
    reached_.resize(offsets.back());
    team.for_chunks(std::int64_t(found.size()), 1, [&](int, std::int64_t chunk, std::int64_t) {
        std::size_t place = offsets[chunk];
        for (const Claim& claim : found[chunk]) {
            tree_.parents[claim.to] = reached_[claim.place];
            reached_[place++] = claim.to;
        }
    });
}

/// Links one object to another, unless all its links are edges of the tree, or `most`; this becomes one, so that no
/// other takes its place.
bool TreeGrowth::make_link(std::int32_t from, std::int32_t to, int most) {
    std::int32_t *links = tree_.row(from), *end = links + tree_.degree;
    const auto is_edge = [&](std::int32_t other) { return other >= 0 && tree_.is_edge(from, other); };
    if (most < tree_.degree && std::count_if(links, end, is_edge) >= most) return false;
    std::int32_t* const link = tree_.place_for(from, to);
    if (link == nullptr) return false;
    tree_.keep(from);
    *link = to;
    if (from == tree_.entry) std::rotate(links, link, link + 1);  // narrow searches may follow the first ones only
    tree_.make_edge(from, to);
    made_from_[from] = ++times_made_;
    return true;
}

/// Makes a link to the object from the nearest entry that can take one: of those that the search has walked from, and
/// where none of them can, of those that it had found but not walked from yet.
/// \param most  an entry with so many edges takes none
void TreeGrowth::spare_link(const Found& found, std::int32_t object, int most) {
    for (const bool is_new : {false, true})
        for (const cpu::Entry& entry : found)
            if (cpu::is_new(entry) == is_new && make_link(cpu::id_of(entry), object, most)) return;
}

}  // namespace gnnd::detail

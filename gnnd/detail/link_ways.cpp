// SPDX-License-Identifier: MIT
// Ways: links by which narrow searches come to what they have missed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "gnnd/cpu/parallel.h"
#include "gnnd/detail/link_tree.h"
#include "gnnd/detail/recall.h"
#include "gnnd/random.h"

namespace gnnd::detail {
namespace {

constexpr int kNarrow = 16;                                // FAISS's default for NSG and HNSW
constexpr std::size_t kSearches = 256, kFewSearches = 64;  // for a sample of all, and where little has changed
constexpr std::uint64_t kWaysSeed = 0x3a95;                // samples that ways are opened to are drawn from

}  // namespace

double TreeGrowth::open_ways() {
    const std::vector<std::int32_t> apart = those_apart();
    link(not_found(apart.data(), std::int64_t(apart.size())));
    const double missed = lead_to(0, kSearches, 0);
    if (tree_.has_levels()) lead_back();
    return missed;
}

/// The objects that lie apart, alone or with fewer than they have links, which few samples have one of: the last of
/// their links, mostly the farthest, leads far beside that of whom it leads to. Every so many-th where they are more
/// than a few.
std::vector<std::int32_t> TreeGrowth::those_apart() {
    constexpr std::int64_t kChunk = 1024;
    constexpr std::size_t kMostApart = 1024;
    const std::int64_t n = tree_.n();
    std::vector<std::int32_t> last(n);
    std::vector<float> far(n);
    const cpu::Team team{threads_, &callbacks_.interrupt};
    team.for_chunks(n, kChunk, [&](int thread, std::int64_t begin, std::int64_t end) {
        ObjectDistances& distances = *searcher(thread).distances;
        const auto last_of = [&](std::int64_t i) {
            const std::int32_t* end_of_links = tree_.end_of(i);
            return end_of_links == tree_.of(i) ? std::int32_t(i) : end_of_links[-1];
        };
        for (std::int64_t i = begin; i < end; ++i) distances.prefetch(last[i] = last_of(i));
        for (std::int64_t i = begin; i < end; ++i) far[i] = distances.between(std::int32_t(i), last[i]);
    });
    std::vector<std::int32_t> apart;
    for (std::int64_t i = 0; i < n; ++i)
        if (lies_apart(far[i], far[last[i]])) apart.push_back(std::int32_t(i));
    const std::size_t step = apart.size() / kMostApart + 1;
    for (std::size_t i = 0; i * step < apart.size(); ++i) apart[i] = apart[i * step];
    apart.resize((apart.size() + step - 1) / step);
    return apart;
}

void TreeGrowth::open_ways_from(std::int64_t added, double missed) {
    lead_to(added, kFewSearches, missed);
    // An object that now links to added ones has lost other links, which searches for old objects may have needed.
    if (times_made_ != 0) lead_to(0, kFewSearches, missed);
}

/// Searches for a sample of the objects from `first` on, narrowly, and makes links to those that were not found. The
/// sample is doubled while many are not: twice as many as usual, where that is more than a few.
/// \param searches  objects of the sample to begin with
/// \param usual     the share that is missed although ways were opened to all
/// \return the share that was missed of what the sample was doubled by last; 0 where it was not, or by few, and where
///         that is less than half of what was missed at first, since ways are of use there
double TreeGrowth::lead_to(std::int64_t first, std::size_t searches, double usual) {
    constexpr std::int64_t kMost = 4096;  // of the sample
    constexpr double kFew = 1.0 / 32;     // a share
    const std::int64_t count = tree_.n() - first;
    std::vector<std::int32_t> sample =
        sample_objects<std::int32_t>(count, std::min(count, kMost), kWaysSeed, std::uint64_t(count));
    Random random(kWaysSeed, std::uint64_t(count));
    for (std::size_t i = 0; i < sample.size(); ++i) {  // which is in order
        std::swap(sample[i], sample[i + random.below(std::uint32_t(sample.size() - i))]);
        sample[i] += std::int32_t(first);
    }
    bool many = true, doubled = false;
    double share = 0, first_share = 0;
    for (std::size_t tried = 0, end = searches; many && tried < sample.size(); tried = end, end *= 2) {
        end = std::min(end, sample.size());
        std::vector<Sought> missed = not_found(&sample[tried], std::int64_t(end - tried));
        share = double(missed.size()) / double(end - tried);
        if (tried == 0) first_share = share;
        doubled = tried > 0 && 2 * (end - tried) >= tried;
        many = share > std::max(kFew, 2 * usual);
        if (share <= kFew) {  // those around them are searched for, too: they may be a small cluster's
            const std::vector<std::int32_t> linked = linked_by(missed);
            std::vector<Sought> around = not_found(linked.data(), std::int64_t(linked.size()));
            std::move(around.begin(), around.end(), std::back_inserter(missed));
        }
        link(std::move(missed));
    }
    return !doubled || 2 * share < first_share ? 0 : share;
}

/// Whom any of the objects is linked to, each once.
std::vector<std::int32_t> TreeGrowth::linked_by(const std::vector<Sought>& objects) const {
    std::vector<std::int32_t> linked;
    for (const Sought& sought : objects)
        linked.insert(linked.end(), tree_.of(sought.object), tree_.end_of(sought.object));
    std::sort(linked.begin(), linked.end());
    linked.erase(std::unique(linked.begin(), linked.end()), linked.end());
    return linked;
}

/// Links those that narrow searches have missed from where these lead, until they are found. The first ones one after
/// another, for the way to one may be that to others; then more at a time.
void TreeGrowth::link(std::vector<Sought> missed) {
    constexpr std::size_t kMostAtOnce = 64;
    for (int round = 0; round < kMendings && !missed.empty(); ++round) {
        for (std::size_t begin = 0, end = 1; begin < missed.size(); begin = end, end += std::min(end, kMostAtOnce)) {
            end = std::min(end, missed.size());
            seek(missed, begin, end);
            for (std::size_t i = begin; i < end; ++i)
                for (const Found& found : missed[i].ends)
                    if (!found.empty()) spare_link(found, missed[i].object, tree_.degree);
        }
        seek(missed, 0, missed.size());
        std::erase_if(missed, std::mem_fn(&Sought::is_found));
    }
}

/// The searches of a thread. Those of an HNSW are over after 16 steps up to FAISS 1.7.4, where every candidate that is
/// dropped counts as one that was walked along; an NSG's follow the first 16 links of the entry. Links with levels are
/// an HNSW's, others may be for both.
TreeGrowth::Searcher& TreeGrowth::searcher(int thread) {
    if (!searchers_[thread]) {
        auto distances = distances_.clone();
        ObjectDistances& own = *distances;
        searchers_[thread] = std::make_unique<Searcher>(Searcher{std::move(distances), {}});
        const auto add = [&](int of_entry) {
            searchers_[thread]->searches.emplace_back(tree_.to_search(of_entry), kNarrow, kNarrow, own);
        };
        add(tree_.degree);
        if (!tree_.has_levels()) add(std::min(kNarrow, tree_.degree));
    }
    return *searchers_[thread];
}

/// Those of the objects that narrow searches of either kind do not get near to, in their order.
std::vector<TreeGrowth::Sought> TreeGrowth::not_found(const std::int32_t* objects, std::int64_t count) {
    std::vector<Sought> sought(count);
    for (std::int64_t i = 0; i < count; ++i) sought[i].object = objects[i];
    seek(sought, 0, sought.size());
    std::erase_if(sought, std::mem_fn(&Sought::is_found));
    return sought;
}

/// Searches narrowly for those of [begin, end) that were not searched for yet, or whose searches would come elsewhere.
/// Their ends are what each kind of search has found after half of its steps: a link from there leaves the others for
/// what lies around the object.
void TreeGrowth::seek(std::vector<Sought>& sought, std::size_t begin, std::size_t end) {
    std::vector<Sought*> changed;
    for (std::size_t i = begin; i < end; ++i)
        if (comes_elsewhere(sought[i])) changed.push_back(&sought[i]);
    if (changed.empty()) return;
    const cpu::Team team{changed.size() > 1 ? threads_ : 1, &callbacks_.interrupt};  // one needs no others to wake
    team.for_chunks(std::int64_t(changed.size()), 1, [&](int thread, std::int64_t c, std::int64_t) {
        Sought& one = *changed[c];
        one.when = times_made_;
        one.along.assign(1, one.object);  // whose own links tell what is near
        NarrowSearches& searches = searcher(thread).searches;
        one.ends.resize(searches.size());
        for (std::size_t kind = 0; kind < searches.size(); ++kind) {
            BeamSearch& search = searches[kind];
            one.ends[kind].clear();
            if (!search.find_near(one.object)) one.ends[kind] = search.found_by_half();
            one.along.insert(one.along.end(), search.walked().begin(), search.walked().end());
        }
    });
}

bool TreeGrowth::comes_elsewhere(const Sought& sought) const {
    return sought.along.empty() || std::any_of(sought.along.begin(), sought.along.end(), [&](std::int32_t from) {
               const auto made = made_from_.find(from);
               return made != made_from_.end() && made->second > sought.when;
           });
}

}  // namespace gnnd::detail

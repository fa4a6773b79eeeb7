// SPDX-License-Identifier: MIT
#include "gnnd/detail/far_links.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "gnnd/cpu/space.h"
#include "gnnd/detail/checks.h"
#include "gnnd/detail/recall.h"
#include "gnnd/detail/sample_graph.h"
#include "gnnd/random.h"

namespace gnnd::detail {

namespace {

constexpr std::int64_t kShare = 8;       // a sample is one in so many of the one before
constexpr std::int64_t kLeast = 4;       // objects of the last one
constexpr std::int64_t kSmallest = 512;  // sets of fewer have all that is far in their rows
constexpr std::int64_t kNear = 64;       // candidates from an object's own row at most; the rest are from samples
constexpr std::int64_t kCandidates = kMaxPruned;
constexpr int kCopies = 2;  // of an object that it links to
constexpr std::uint64_t kSeed = 0xfa7;
constexpr std::int64_t kChunk = 256;

class FarLinks {
  public:
    FarLinks(const VectorView& vectors, const KnnGraphView& graph, const LinkParams& params, const Callbacks& callbacks,
             Resources* resources)
        : vectors_(vectors),
          graph_(graph),
          params_(params),
          callbacks_(callbacks),
          resources_(resources),
          order_(sample_in_any_order(graph.n, graph.n / kShare, kSeed)),
          positions_(graph.n, -1),
          is_wide_(graph.n),
          copies_(graph.n * kCopies, -1),
          candidates_(graph.n, kCandidates, graph.metric) {
        for (std::size_t position = 0; position < order_.size(); ++position)
            positions_[order_[position]] = std::int32_t(position);
        for (auto size = std::int64_t(order_.size()); size >= kLeast; size /= kShare) add_sample(size);
        const cpu::Space space(vectors, graph.metric, team_, or_heap(nullptr));
        team_.for_chunks(graph.n, kChunk, [&](int, std::int64_t begin, std::int64_t end) {
            Gathering gathering(*this, space);
            for (std::int64_t i = begin; i < end; ++i) gathering.run(std::int32_t(i));
        });
    }

    void choose(std::int32_t* links) const {
        const int degree = params_.degree;
        LinkParams params = params_;
        params.fill = false;
        search_links(vectors_, candidates_, params, links, callbacks_, resources_);
        team_.for_chunks(graph_.n, kChunk, [&](int, std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) complete(std::int32_t(i), links + i * degree, degree);
        });
    }

  private:
    /// The first `size` of the order, with the graph over them.
    struct Sample {
        std::int64_t size;
        KnnGraph graph;
        bool has(std::int32_t position) const { return position >= 0 && position < size; }
    };

    std::size_t row_size() const { return std::size_t(vectors_.d) * size_of(vectors_.dtype); }

    void add_sample(std::int64_t size) {
        SampleGraph sample(vectors_, order_.data(), size, kNear, graph_.metric, params_, callbacks_, resources_);
        samples_.push_back({size, std::move(sample.graph)});
    }

    bool are_copies(std::int32_t a, std::int32_t b) const {
        return std::memcmp(vectors_.row(a), vectors_.row(b), row_size()) == 0;
    }

    /// Gathers the candidates of one object after the other.
    class Gathering {
      public:
        Gathering(FarLinks& to, const cpu::Space& space)
            : to_(to), space_(space), block_(space, 1, kCandidates + 1, or_heap(nullptr)) {}

        void run(std::int32_t object) {
            object_ = object;
            ids_.clear();
            copies_.clear();
            add_all(to_.graph_.ids_of(object), to_.graph_.k, kNear, [](std::int32_t id) { return id; });
            const std::size_t near = ids_.size();
            std::int32_t at = to_.positions_[object];
            auto left = std::int64_t(to_.samples_.size());
            for (const Sample& sample : to_.samples_) {
                at = nearest_in(sample, at);
                if (at < 0) break;
                const auto id_of = [&](std::int32_t position) { return to_.order_[position]; };
                add_all(&at, 1, 1, id_of);
                const std::int64_t most = (kCandidates - std::int64_t(ids_.size())) / left--;
                add_all(sample.graph.ids() + at * sample.graph.k(), sample.graph.k(), most, id_of);
            }
            measure();
            to_.is_wide_[object] = is_wide(near);
            write();
            write_copies();
        }

      private:
        /// The position of the member that lies nearest to the object, as far as is known; -1: none is known.
        /// \param at  of that of the sample before; of the object itself for the first one, -1 where it is in none
        std::int32_t nearest_in(const Sample& sample, std::int32_t at) const {
            if (sample.has(at)) return at;
            if (&sample != to_.samples_.data()) {
                const KnnGraph& before = (&sample)[-1].graph;
                const std::int32_t *row = before.ids() + at * before.k(), *end = row + before.k();
                const auto* member = std::find_if(row, end, [&](std::int32_t there) { return sample.has(there); });
                return member == end ? -1 : *member;
            }
            const std::int32_t* row = to_.graph_.ids_of(object_);
            if (const std::int32_t there = first_of(sample, row); there >= 0) return there;
            for (std::int64_t j = 0; j < to_.graph_.k && row[j] >= 0; ++j)  // short rows may have none
                if (const std::int32_t there = first_of(sample, to_.graph_.ids_of(row[j])); there >= 0) return there;
            return -1;
        }

        /// The position of the first member in a row of the graph; -1: there is none.
        std::int32_t first_of(const Sample& sample, const std::int32_t* row) const {
            for (std::int64_t j = 0; j < to_.graph_.k && row[j] >= 0; ++j)
                if (const std::int32_t there = to_.positions_[row[j]]; sample.has(there)) return there;
            return -1;
        }

        /// Adds candidates from a row, as long as there is room.
        /// \param most  at most so many
        template <class IdOf>
        void add_all(const std::int32_t* row, std::int64_t k, std::int64_t most, const IdOf& id_of) {
            most = std::min(most, kCandidates - std::int64_t(ids_.size()));
            for (std::int64_t j = 0; j < k && most > 0 && row[j] >= 0; ++j) {
                const std::int32_t id = id_of(row[j]);
                if (id == object_ || std::find(ids_.begin(), ids_.end(), id) != ids_.end()) continue;
                if (to_.are_copies(object_, id)) {
                    copies_.push_back(id);
                    continue;
                }
                ids_.push_back(id);
                --most;
            }
        }

        void measure() {
            ids_.push_back(object_);
            block_.compute(&object_, 1, ids_.data(), int(ids_.size()));
            ids_.pop_back();
        }

        /// True where some candidate of a sample lies at least twice as far away as the row's own, the first `near`
        /// ones; four times, since distances may be squared.
        bool is_wide(std::size_t near) const {
            constexpr float kTimes = 4;
            const float *keys = block_.row(0), own = keys[ids_.size()];
            const auto farthest = [&](std::size_t begin, std::size_t end) {
                return begin == end ? 0 : *std::max_element(keys + begin, keys + end) - own;
            };
            return farthest(near, ids_.size()) >= kTimes * farthest(0, near);
        }

        /// Nearest first. Of copies one counts, not the same for all objects, so that each of them gets links.
        void write() {
            sorted_.clear();
            for (std::size_t c = 0; c < ids_.size(); ++c) sorted_.emplace_back(block_.row(0)[c], ids_[c]);
            std::sort(sorted_.begin(), sorted_.end());
            KnnGraph& out = to_.candidates_;
            std::int32_t* ids = out.ids() + object_ * kCandidates;
            float* distances = out.distances() + object_ * kCandidates;
            Random random(kSeed, std::uint64_t(object_));
            for (auto next = sorted_.begin(); next != sorted_.end();) {
                const float key = next->first;
                const std::int32_t id = next->second;
                const auto farther = std::find_if(next, sorted_.end(), [&](const auto& c) { return c.first != key; });
                const auto others = std::stable_partition(
                    next, farther, [&](const auto& c) { return c.second == id || to_.are_copies(c.second, id); });
                *ids++ = next[random.below(std::uint32_t(others - next))].second;
                *distances++ = space_.value_of(key);
                next = others;
            }
        }

        /// Those of the object's copies that come under it in a heap of all that it sees, by number.
        void write_copies() {
            copies_.push_back(object_);
            std::sort(copies_.begin(), copies_.end());
            copies_.erase(std::unique(copies_.begin(), copies_.end()), copies_.end());
            const auto rank = std::find(copies_.begin(), copies_.end(), object_) - copies_.begin();
            for (int c = 0; c < kCopies; ++c)
                if (const std::size_t at = rank * kCopies + c + 1; at < copies_.size())
                    to_.copies_[object_ * kCopies + c] = copies_[at];
        }

        FarLinks& to_;
        const cpu::Space& space_;
        cpu::Block block_;
        std::int32_t object_ = 0;
        std::vector<std::int32_t> ids_, copies_;  // of others, and of the object
        std::vector<std::pair<float, std::int32_t>> sorted_;
    };

    /// The row has the links of steps 1 and 2.
    void complete(std::int32_t object, std::int32_t* row, int degree) const {
        const std::int32_t* candidates = candidates_.ids() + object * kCandidates;
        const std::int32_t* copies = &copies_[std::size_t(object) * kCopies];
        const int own = std::min(int(std::find(copies, copies + kCopies, -1) - copies), degree / 8);
        int size = std::min(int(std::find(row, row + degree, -1) - row), degree - own);
        const auto add = [&](std::int32_t id, int limit) {
            if (size >= limit || std::find(row, row + size, id) != row + size) return false;
            row[size++] = id;
            return true;
        };
        // The less room pruning and opposites leave, the more of what is near is needed there.
        const int room = degree - own - size;
        const int far = is_wide_[object] != 0 ? std::clamp(2 * room - degree * 9 / 8, 0, degree / 2) : 0;
        const int limit = size + far;
        std::vector<std::int64_t> next(samples_.size());
        for (bool any = true; any && size < limit;) {
            any = false;
            for (std::size_t s = 0; s < samples_.size(); ++s)
                for (bool added = false; !added && next[s] < kCandidates && candidates[next[s]] >= 0; ++next[s])
                    if (samples_[s].has(positions_[candidates[next[s]]]))
                        any |= added = add(candidates[next[s]], limit);
        }
        for (int c = 0; c < own; ++c) add(copies[c], degree);
        for (std::int64_t c = 0; c < kCandidates && candidates[c] >= 0; ++c) add(candidates[c], degree);
        std::fill(row + size, row + degree, -1);
    }

    const VectorView vectors_;
    const KnnGraphView graph_;
    const LinkParams params_;
    const Callbacks& callbacks_;
    Resources* const resources_;
    const cpu::Team team_{cpu::Team::resolve(params_.threads), &callbacks_.interrupt};
    const std::vector<std::int32_t> order_;  // of the first sample
    std::vector<std::int32_t> positions_;    // of every object there, or -1
    std::vector<Sample> samples_;            // smaller and smaller
    std::vector<char> is_wide_;              // of every object
    std::vector<std::int32_t> copies_;       // kCopies of each object, -1 where there are fewer
    KnnGraph candidates_;                    // of each object, nearest first
};

/// What step 1 of search_links() leaves of rows.
struct Pruned {
    double links = 0;  ///< of a row, on average of a sample
    double many = 0;   ///< the share of rows with many links
};

Pruned prune_some(const VectorView& vectors, const KnnGraphView& graph, const Callbacks& callbacks,
                  Resources* resources) {
    constexpr std::int64_t kObjects = 256;
    constexpr int kManyLinks = 10, kDegree = 32;
    const std::vector<std::int32_t> sample = sample_objects(graph.n, kObjects, kSeed);
    std::vector<std::int32_t> links(sample.size() * kDegree);
    LinkParams params;
    params.degree = kDegree;
    prune_rows(vectors, graph, sample.data(), std::int64_t(sample.size()), params, links.data(), callbacks, resources);
    Pruned left;
    for (std::size_t i = 0; i < sample.size(); ++i) {
        const auto begin = links.begin() + std::ptrdiff_t(i * kDegree);
        const auto count = std::find(begin, begin + kDegree, -1) - begin;
        left.links += double(count) / double(sample.size());
        left.many += double(count >= kManyLinks) / double(sample.size());
    }
    return left;
}

/// True where rows of samples have as few links as those of all objects, as in a plane: then each level leads as far as
/// its rows do, and the one above it farther. Of groups and copies a sample holds one object each, which has others
/// around it on all sides.
/// \param links  of a row of all objects, on average
bool are_samples_alike(const VectorView& vectors, Metric metric, double links, const Callbacks& callbacks) {
    constexpr std::int64_t kMost = 4096, kOneIn = 16, kFewest = 256;
    constexpr double kAlike = 1.25;
    constexpr double kWaysAround = 2.5;  // a line's rows have two links: one pair of copies there cuts the way
    const std::int64_t first = std::min(kMost, vectors.n / kOneIn);
    if (first < kFewest || links < kWaysAround) return false;
    const std::vector<std::int32_t> order = sample_in_any_order(vectors.n, first, kSeed);
    LinkParams params;
    params.device = {Device::Kind::cpu, 0};  // a GPU may not be the caller's wish
    for (const std::int64_t size : {first, std::max(first / kShare, kFewest)}) {
        const SampleGraph sample(vectors, order.data(), size, kNear, metric, params, callbacks, nullptr);
        if (prune_some(sample.vectors, sample.graph, callbacks, nullptr).links > kAlike * links) return false;
    }
    return true;
}

}  // namespace

bool needs_far_links(const VectorView& vectors, const KnnGraphView& graph, const VectorView* levels,
                     const Callbacks& callbacks, Resources* resources) {
    constexpr double kFewLinks = 8, kHomogeneous = 1.0 / 16;  // so many rows may have many
    if (graph.n < kSmallest) return false;
    const Pruned left = prune_some(vectors, graph, callbacks, resources);
    if (left.links >= kFewLinks || left.many > kHomogeneous) return false;
    return levels == nullptr || !are_samples_alike(*levels, graph.metric, left.links, callbacks);
}

void choose_far_links(const VectorView& vectors, const KnnGraphView& graph, const LinkParams& params,
                      std::int32_t* links, const Callbacks& callbacks, Resources* resources) {
    FarLinks(vectors, graph, params, callbacks, resources).choose(links);
}

void link_anywhere(bool far, std::int64_t n, int degree, std::int32_t entry, std::int32_t* links) {
    constexpr std::int64_t kMany = 50'000;
    if (!far && n < kMany) return;
    std::int32_t* row = links + std::int64_t(entry) * degree;
    std::vector<std::int32_t> wanted = sample_in_any_order(n, std::min<std::int64_t>(n, degree / 2), kSeed);
    wanted.insert(wanted.end(), row, std::find(row, row + degree, -1));
    std::erase(wanted, entry);
    std::int32_t* end = row;
    for (const std::int32_t id : wanted)
        if (end != row + degree && std::find(row, end, id) == end) *end++ = id;
}

}  // namespace gnnd::detail

#include "faiss_ext/detail/search_links.h"

#include <faiss/impl/DistanceComputer.h>
#include <omp.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "faiss_ext/detail/errors.h"

namespace faiss_ext::detail {

namespace {

constexpr int kBeam = 64;     // width of the search that places unreached objects
constexpr int kMendings = 4;  // at most so many passes over those placed

/// Distances under the storage's metric; smaller is nearer.
class Distances {
  public:
    explicit Distances(const faiss::IndexFlat& storage)
        : computer_(storage.get_distance_computer()),
          sign_(storage.metric_type == faiss::METRIC_INNER_PRODUCT ? -1.0f : 1.0f) {}
    float between(idx_t a, idx_t b) { return sign_ * computer_->symmetric_dis(a, b); }
    void set_query(const float* x) { computer_->set_query(x); }
    float to_query(idx_t i) { return sign_ * (*computer_)(i); }

  private:
    std::unique_ptr<faiss::DistanceComputer> computer_;
    float sign_;
};

class Linker {
  public:
    Linker(const faiss::IndexFlat& storage, const gnnd::KnnGraphView& graph, int degree)
        : storage_(storage), graph_(graph), n_(graph.n), degree_(degree), sizes_(n_), distances_(storage) {
        links_.degree = degree;
        links_.ids.assign(std::size_t(n_) * degree, -1);
    }

    SearchLinks run() {
        prune();
        check_interrupt();
        add_reverse_links();
        fill_up();
        check_interrupt();
        find_entry();
        connect();
        return std::move(links_);
    }

  private:
    std::int32_t* row(std::int64_t i) { return links_.ids.data() + i * degree_; }

    bool add(std::int64_t from, std::int32_t to) {
        std::int32_t* links = row(from);
        if (sizes_[from] == degree_ || std::find(links, links + sizes_[from], to) != links + sizes_[from]) return false;
        links[sizes_[from]++] = to;
        return true;
    }

    void prune() {
        // One per thread, made here: what is thrown in a parallel region ends the process.
        std::vector<Distances> distances;
        const int threads = omp_get_max_threads();
        distances.reserve(threads);
        for (int t = 0; t < threads; ++t) distances.emplace_back(storage_);
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads)
        for (std::int64_t i = 0; i < n_; ++i) {
            Distances& dis = distances[omp_get_thread_num()];
            std::int32_t* kept = row(i);
            int size = 0;
            for (std::int64_t j = 0; j < graph_.k && size < degree_; ++j) {
                const std::int32_t candidate = graph_.ids_of(i)[j];
                if (candidate < 0) break;
                const float distance = dis.between(i, candidate);
                // Not nearer to one linked before, nor as near: of equal vectors one is enough.
                if (std::all_of(kept, kept + size,
                                [&](std::int32_t other) { return dis.between(other, candidate) > distance; }))
                    kept[size++] = candidate;
            }
            sizes_[i] = size;
        }
    }

    void add_reverse_links() {
        const std::vector<int> forward = sizes_;
        for (int j = 0; j < degree_; ++j)
            for (std::int64_t i = 0; i < n_; ++i)
                if (j < forward[i]) add(row(i)[j], std::int32_t(i));
    }

    void fill_up() {
        for (std::int64_t i = 0; i < n_; ++i)
            for (std::int64_t j = 0; j < graph_.k && sizes_[i] < degree_ && graph_.ids_of(i)[j] >= 0; ++j)
                add(i, graph_.ids_of(i)[j]);
    }

    void find_entry() {
        const std::int64_t d = storage_.d;
        std::vector<double> sums(d);
        for (std::int64_t i = 0; i < n_; ++i)
            for (std::int64_t c = 0; c < d; ++c) sums[c] += storage_.get_xb()[i * d + c];
        std::vector<float> mean(d);
        std::transform(sums.begin(), sums.end(), mean.begin(), [&](double sum) { return float(sum / double(n_)); });
        distances_.set_query(mean.data());
        std::pair<float, std::int32_t> best{distances_.to_query(0), 0};
        for (std::int64_t i = 1; i < n_; ++i) best = std::min(best, {distances_.to_query(i), std::int32_t(i)});
        links_.entry = best.second;
    }

    void connect() {
        parents_.assign(n_, -1);
        seen_.assign(n_, 0);
        reach(links_.entry, links_.entry);
        std::vector<std::int32_t> attached;
        for (std::int64_t i = 0; i < n_; ++i) {
            if (parents_[i] >= 0) continue;
            if (attached.size() % 1024 == 0) check_interrupt();
            const auto object = std::int32_t(i);
            std::int32_t from = spare_link(beam_search(object), object);
            // Among many equal vectors all that the search finds may be taken; some other reached object never is,
            // since there are more links than objects to reach.
            while (from < 0 && !make_link(reached_[spare_], object)) ++spare_;
            reach(object, from < 0 ? reached_[spare_] : from);
            attached.push_back(object);
        }
        mend(attached);
    }

    /// A search for an object that was attached early may now end at others, attached later and nearer to it.
    void mend(const std::vector<std::int32_t>& attached) {
        bool missed = true;
        for (int round = 0; round < kMendings && missed; ++round) {
            missed = false;
            for (const std::int32_t object : attached) {
                const std::vector<Step>& found = beam_search(object);
                if (found.front().distance <= distances_.between(object, object)) continue;
                missed = true;
                spare_link(found, object);
            }
            check_interrupt();
        }
    }

    /// Marks an object, and all that it leads to, as reached.
    void reach(std::int32_t object, std::int32_t parent) {
        parents_[object] = parent;
        std::size_t next = reached_.size();
        reached_.push_back(object);
        for (; next < reached_.size(); ++next) {
            const std::int32_t from = reached_[next];
            for (int j = 0; j < sizes_[from]; ++j) {
                const std::int32_t to = row(from)[j];
                if (parents_[to] >= 0) continue;
                parents_[to] = from;
                reached_.push_back(to);
            }
        }
    }

    struct Step {
        float distance;
        std::int32_t id;
        bool expanded;
        bool operator<(const Step& other) const {
            return std::pair(distance, id) < std::pair(other.distance, other.id);
        }
    };

    /// Links one object to another that it does not link to yet, unless all its links are how their targets are
    /// reached.
    bool make_link(std::int32_t from, std::int32_t to) {
        if (add(from, to)) return true;
        int j = degree_ - 1;
        while (j >= 0 && parents_[row(from)[j]] == from) --j;
        if (j < 0) return false;
        row(from)[j] = to;
        return true;
    }

    /// Links the nearest found that has a link to spare to the object; which one that is, or -1.
    std::int32_t spare_link(const std::vector<Step>& found, std::int32_t object) {
        for (const Step& step : found)
            if (make_link(step.id, object)) return step.id;
        return -1;
    }

    /// What a greedy search for the object finds, nearest first.
    const std::vector<Step>& beam_search(std::int32_t object) {
        pool_.clear();
        ++search_;
        visit(object, links_.entry);
        for (std::size_t at = 0; at < pool_.size();) {
            if (pool_[at].expanded) {
                ++at;
                continue;
            }
            pool_[at].expanded = true;
            const std::int32_t id = pool_[at].id;
            for (int j = 0; j < sizes_[id]; ++j) at = std::min(at, visit(object, row(id)[j]));
        }
        return pool_;
    }

    /// Puts an object into the pool if it belongs there and was not seen by this search; where, or kBeam.
    std::size_t visit(std::int32_t query, std::int32_t id) {
        if (std::exchange(seen_[id], search_) == search_) return kBeam;
        const Step step{distances_.between(query, id), id, false};
        const auto position = std::lower_bound(pool_.begin(), pool_.end(), step) - pool_.begin();
        if (position == kBeam) return kBeam;
        if (pool_.size() == kBeam) pool_.pop_back();
        pool_.insert(pool_.begin() + position, step);
        return std::size_t(position);
    }

    const faiss::IndexFlat& storage_;
    const gnnd::KnnGraphView graph_;
    const std::int64_t n_;
    const int degree_;
    SearchLinks links_;
    std::vector<int> sizes_;
    Distances distances_;
    std::vector<std::int32_t> parents_;  // through whom each object is reached, -1: not yet
    std::vector<std::int32_t> reached_;  // in the order in which they were reached
    std::size_t spare_ = 0;              // those before it in reached_ have no link to spare
    std::vector<std::uint32_t> seen_;    // in which search last
    std::uint32_t search_ = 0;
    std::vector<Step> pool_;
};

}  // namespace

SearchLinks make_search_links(const faiss::IndexFlat& storage, const gnnd::KnnGraphView& graph, int degree) {
    return Linker(storage, graph, degree).run();
}

}  // namespace faiss_ext::detail

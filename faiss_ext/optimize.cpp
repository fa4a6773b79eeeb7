// SPDX-License-Identifier: MIT
#include "faiss_ext/optimize.h"

#include <faiss/impl/DistanceComputer.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/optimize.h"
#include "faiss_ext/detail/rows.h"
#include "faiss_ext/faiss_resources.h"
#include "gnnd/cpu/parallel.h"
#include "gnnd/search_links.h"

namespace faiss_ext::detail {

namespace {

constexpr int kBeam = 64;              // width of the search that places unreached objects
constexpr std::int64_t kChunk = 4096;  // objects
constexpr int kMendings = 4;           // at most so many passes over those placed

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
    Linker(const VectorSource& source, const faiss::IndexFlat& storage, const gnnd::KnnGraphView& graph, int degree)
        : source_(source),
          storage_(storage),
          graph_(graph),
          n_(graph.n),
          degree_(degree),
          sizes_(n_),
          distances_(storage) {
        links_.degree = degree;
        links_.links.resize(std::size_t(n_) * degree);
    }

    SearchGraph run(const Gpu& gpu) {
        choose(gpu);
        find_entry();
        connect();
        return std::move(links_);
    }

  private:
    std::int32_t* row(std::int64_t i) { return links_.links.data() + i * degree_; }

    /// Steps 1 to 3.
    void choose(const Gpu& gpu) {
        gnnd::LinkParams params;
        params.degree = degree_;
        if (gpu.resources != nullptr && degree_ <= gnnd::kMaxGpuDegree) {
            FaissResources resources(gpu);
            params.device = {gnnd::Device::Kind::cuda, gpu.device};
            gnnd::search_links(source_.vectors(), graph_, params, links_.links.data(), interrupt_hooks(), &resources);
        } else {
            params.device.kind = gnnd::Device::Kind::cpu;
            gnnd::search_links(source_.on_host(), graph_, params, links_.links.data(), interrupt_hooks());
        }
        for (std::int64_t i = 0; i < n_; ++i) sizes_[i] = int(std::find(row(i), row(i) + degree_, -1) - row(i));
    }

    bool add(std::int64_t from, std::int32_t to) {
        std::int32_t* links = row(from);
        if (sizes_[from] == degree_ || std::find(links, links + sizes_[from], to) != links + sizes_[from]) return false;
        links[sizes_[from]++] = to;
        return true;
    }

    /// The object nearest to the mean.
    void find_entry() {
        const gnnd::Callbacks hooks = interrupt_hooks();
        const gnnd::cpu::Team team{gnnd::cpu::Team::resolve(0), &hooks.interrupt};
        const std::int64_t d = storage_.d, chunks = (n_ + kChunk - 1) / kChunk;
        // Sums of chunks, which no number of threads changes.
        std::vector<double> sums(std::size_t(chunks * d));
        team.for_chunks(n_, kChunk, [&](int, std::int64_t begin, std::int64_t end) {
            double* sum = sums.data() + begin / kChunk * d;
            for (std::int64_t i = begin; i < end; ++i)
                for (std::int64_t c = 0; c < d; ++c) sum[c] += storage_.get_xb()[i * d + c];
        });
        std::vector<float> mean(d);
        for (std::int64_t c = 0; c < d; ++c) {
            double sum = 0;
            for (std::int64_t chunk = 0; chunk < chunks; ++chunk) sum += sums[chunk * d + c];
            mean[c] = float(sum / double(n_));
        }
        using Found = std::pair<float, std::int32_t>;
        std::vector<Found> nearest(chunks);
        team.for_chunks(n_, kChunk, [&](int, std::int64_t begin, std::int64_t end) {
            Distances distances(storage_);
            distances.set_query(mean.data());
            Found best{distances.to_query(begin), std::int32_t(begin)};
            for (std::int64_t i = begin + 1; i < end; ++i)
                best = std::min(best, {distances.to_query(i), std::int32_t(i)});
            nearest[begin / kChunk] = best;
        });
        links_.entry = std::min_element(nearest.begin(), nearest.end())->second;
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

    const VectorSource& source_;
    const faiss::IndexFlat& storage_;
    const gnnd::KnnGraphView graph_;
    const std::int64_t n_;
    const int degree_;
    SearchGraph links_;
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

void check_fit(const char* who, const VectorSource& source, const gnnd::KnnGraphView& graph) {
    if (graph.n != source.vectors().n || graph.metric != source.metric())
        fail(std::string(who) + ": the graph has " + std::to_string(graph.n) + " objects under " +
             std::string(gnnd::name_of(graph.metric)) + ", the source " + std::to_string(source.vectors().n) +
             " under " + std::string(gnnd::name_of(source.metric())));
}

void check_graph(const char* who, const VectorSource& source, const gnnd::KnnGraphView& graph) {
    check_fit(who, source, graph);
    check_request(source, 1);
    gnnd::check_structure(graph);
}

SearchGraph make_search_graph(const VectorSource& source, const faiss::IndexFlat& storage,
                              const gnnd::KnnGraphView& graph, int degree, const Gpu& gpu) {
    return Linker(source, storage, graph, degree).run(gpu);
}

}  // namespace faiss_ext::detail

namespace faiss_ext {

SearchGraph optimize_graph(const VectorSource& source, const gnnd::KnnGraphView& graph, int degree, const Gpu& gpu) {
    return detail::with_faiss_errors([&] {
        detail::check_graph("optimize_graph", source, graph);
        faiss::IndexFlat storage(source.vectors().d, detail::search_metric(source.metric(), "optimize_graph"));
        detail::fill_storage(storage, source);
        return detail::make_search_graph(source, storage, graph, degree, gpu);
    });
}

}  // namespace faiss_ext

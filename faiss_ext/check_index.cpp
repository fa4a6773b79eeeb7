// SPDX-License-Identifier: MIT
#include "faiss_ext/check_index.h"

#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVF.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexIVFPQ.h>
#include <faiss/IndexNNDescent.h>
#include <faiss/IndexNSG.h>
#include <faiss/IndexPQ.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/IndexScalarQuantizer.h>
#include <faiss/VectorTransform.h>
#include <faiss/impl/DistanceComputer.h>
#include <faiss/invlists/InvertedLists.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>

#include "faiss_ext/detail/class_name.h"
#include "faiss_ext/detail/errors.h"
#include "gnnd/vectors.h"

namespace faiss_ext {
namespace {

/// The checks of one index; `require` says what is wrong with it.
class Check {
  public:
    explicit Check(const faiss::Index& index) : index_(index), n_(index.ntotal), d_(index.d) {}

    void run() {
        require(d_ >= 1 && d_ <= gnnd::kMaxDim, "has vectors of " + std::to_string(d_) + " components");
        constexpr std::int64_t kMost = std::int64_t(1) << 40;  // sizes in bytes do not overflow
        require(n_ >= 0 && n_ <= kMost, "holds " + std::to_string(n_) + " vectors");
        require(index_.is_trained, "is not trained");
        // The first that it is; derived classes before their base.
        if (as<faiss::IndexHNSW>() || as<faiss::IndexNSG>() || as<faiss::IndexNNDescent>() || as<faiss::IndexIVF>() ||
            as<faiss::IndexIDMap>() || as<faiss::IndexPreTransform>() || as<faiss::IndexRefine>() ||
            as<faiss::IndexScalarQuantizer>() || as<faiss::IndexPQ>() || as<faiss::IndexFlat>())
            return;
    }

  private:
    void require(bool holds, const std::string& what) const {
        if (!holds) detail::fail(detail::class_of(index_) + " is damaged: it " + what);
    }

    template <class T>
    bool as() const {
        const auto* derived = dynamic_cast<const T*>(&index_);
        if (derived == nullptr) return false;
        check(*derived);
        return true;
    }

    /// An index inside of this one: it is there, whole, and fits.
    void check_inside(const faiss::Index* inside, const char* what, std::int64_t n) const {
        require(inside != nullptr, std::string("has no ") + what);
        faiss_ext::check_index(*inside);
        require(inside->ntotal == n,
                "holds " + std::to_string(n) + " vectors, its " + what + " " + std::to_string(inside->ntotal));
    }

    /// The index in which a graph index keeps its vectors is there and fits.
    void check_storage(const faiss::Index* storage) const {
        check_inside(storage, "storage", n_);
        require(storage->d == d_ && storage->metric_type == index_.metric_type, "does not fit its storage");
    }

    void require_link(std::int64_t link, std::int64_t of) const {
        require(link >= -1 && link < n_, "links object " + std::to_string(of) + " to " + std::to_string(link));
    }

    void check(const faiss::IndexHNSW& index) const {
        check_storage(index.storage);
        const faiss::HNSW& hnsw = index.hnsw;
        const auto& cumulated = hnsw.cum_nneighbor_per_level;
        require(hnsw.levels.size() == std::size_t(n_) && hnsw.offsets.size() == std::size_t(n_) + 1,
                "has no level for every vector");
        require(!cumulated.empty() && cumulated[0] == 0, "has no links");
        for (std::size_t level = 1; level < cumulated.size(); ++level)
            require(cumulated[level] >= cumulated[level - 1], "has levels of negative size");
        require(n_ > 0 ? hnsw.entry_point >= 0 && hnsw.entry_point < n_ : hnsw.entry_point == -1,
                "begins at " + std::to_string(hnsw.entry_point));
        require(n_ == 0 || hnsw.levels[hnsw.entry_point] == hnsw.max_level + 1, "begins on another level than the top");
        require(hnsw.efSearch >= 1 && upper_beam_of(hnsw) >= 1 && upper_beam_of(hnsw) <= std::max<std::int64_t>(n_, 1),
                "searches with a beam of " + std::to_string(hnsw.efSearch));
        require(hnsw.offsets[0] == 0 && hnsw.offsets[n_] == hnsw.neighbors.size(), "has not all links");
        for (std::int64_t i = 0; i < n_; ++i) {
            const int levels = hnsw.levels[i];
            require(levels >= 1 && levels <= hnsw.max_level + 1 && std::size_t(levels) < cumulated.size(),
                    "has object " + std::to_string(i) + " on " + std::to_string(levels) + " levels");
            require(hnsw.offsets[i + 1] - hnsw.offsets[i] == std::size_t(cumulated[levels]),
                    "has not all links of object " + std::to_string(i));
        }
        for (std::int64_t i = 0; i < n_; ++i)
            for (int level = 0; level < hnsw.levels[i]; ++level)
                for (int j = cumulated[level]; j < cumulated[level + 1]; ++j) {
                    const auto link = hnsw.neighbors[hnsw.offsets[i] + j];
                    require_link(link, i);
                    require(link < 0 || hnsw.levels[link] > level,
                            "links object " + std::to_string(i) + " to one that is not on its level");
                }
    }

    void check(const faiss::IndexNSG& index) const {
        check_storage(index.storage);
        const faiss::NSG& nsg = index.nsg;
        require(nsg.is_built && nsg.final_graph != nullptr, "is not built");
        require(nsg.ntotal == n_ && nsg.final_graph->N == n_ && nsg.final_graph->K == nsg.R && nsg.R >= 1,
                "has links of " + std::to_string(nsg.ntotal) + " objects for " + std::to_string(n_) + " vectors");
        require(nsg.enterpoint >= 0 && nsg.enterpoint < n_, "begins at " + std::to_string(nsg.enterpoint));
        require_beam(nsg.search_L, n_);
        for (std::int64_t i = 0; i < n_; ++i)
            for (int j = 0; j < nsg.R; ++j) require_link(nsg.final_graph->at(int(i), j), i);
    }

    void check(const faiss::IndexNNDescent& index) const {
        check_storage(index.storage);
        const faiss::NNDescent& graph = index.nndescent;
        require(graph.has_built, "is not built");
        require(
            graph.ntotal == n_ && graph.K >= 1 && graph.final_graph.size() == std::size_t(n_) * graph.K,
            "has neighbours of " + std::to_string(graph.ntotal) + " objects for " + std::to_string(n_) + " vectors");
        require_beam(graph.search_L, n_ - 1);
        for (std::size_t i = 0; i < graph.final_graph.size(); ++i)
            require(graph.final_graph[i] >= 0 && graph.final_graph[i] < n_,
                    "links object " + std::to_string(i / graph.K) + " to " + std::to_string(graph.final_graph[i]));
    }

    /// Searches begin at so many distinct random objects: of fewer they would draw without end.
    void require_beam(std::int64_t beam, std::int64_t most) const {
        require(beam >= 1 && beam <= most,
                "searches with a beam of " + std::to_string(beam) + " among " + std::to_string(n_) + " vectors");
    }

    void check(const faiss::IndexIVF& index) const {
        check_inside(index.quantizer, "quantizer", std::int64_t(index.nlist));
        require(index.nlist >= 1 && index.quantizer->d == d_, "does not fit its quantizer");
        require(index.nprobe >= 1 && index.nprobe <= std::size_t(std::numeric_limits<int>::max()),
                "visits " + std::to_string(index.nprobe) + " lists");
        const faiss::InvertedLists* lists = index.invlists;
        require(lists != nullptr && lists->nlist == index.nlist, "has not all inverted lists");
        if (const auto* arrays = dynamic_cast<const faiss::ArrayInvertedLists*>(lists)) {
            require(arrays->code_size == index.code_size, "has codes of another size");
            std::size_t sum = 0;
            for (std::size_t list = 0; list < index.nlist; ++list) sum += arrays->ids[list].size();
            require(sum == std::size_t(n_),
                    "holds " + std::to_string(n_) + " vectors, its lists " + std::to_string(sum));
        }
        const std::unique_ptr<faiss::InvertedListScanner> scanner(index.get_InvertedListScanner());  // as check_codes()
        require(scanner != nullptr, "has no such metric");
        if (dynamic_cast<const faiss::IndexIVFFlat*>(&index) != nullptr) require_code_size(index.code_size, 4 * d_);
        if (const auto* pq = dynamic_cast<const faiss::IndexIVFPQ*>(&index)) check_pq(pq->pq, index.code_size);
        if (const auto* sq = dynamic_cast<const faiss::IndexIVFScalarQuantizer*>(&index))
            check_sq(sq->sq, index.code_size);
    }

    void check(const faiss::IndexIDMap& index) const {
        check_inside(index.index, "index inside", n_);
        require(index.index->d == d_ && index.id_map.size() == std::size_t(n_),
                "maps " + std::to_string(index.id_map.size()) + " ids");
    }

    void check(const faiss::IndexPreTransform& index) const {
        std::int64_t d = d_;
        for (const faiss::VectorTransform* transform : index.chain) {
            require(transform != nullptr && transform->is_trained && transform->d_in == d && transform->d_out >= 1,
                    "has a transformation that does not fit");
            d = transform->d_out;
            if (const auto* linear = dynamic_cast<const faiss::LinearTransform*>(transform))
                require(linear->A.size() == std::size_t(linear->d_in) * linear->d_out &&
                            (!linear->have_bias || linear->b.size() == std::size_t(d)),
                        "has a matrix of another size");
        }
        check_inside(index.index, "index inside", n_);
        require(index.index->d == d, "does not fit the index inside");
    }

    void check(const faiss::IndexRefine& index) const {
        constexpr float kMostFactor = 1e6;
        check_inside(index.base_index, "index inside", n_);
        check_inside(index.refine_index, "refining index", n_);
        require(index.base_index->d == d_ && index.refine_index->d == d_, "does not fit the indexes inside");
        require(index.k_factor >= 1 && index.k_factor <= kMostFactor, "refines by another factor than 1 to 1e6");
    }

    void check(const faiss::IndexScalarQuantizer& index) const {
        check_sq(index.sq, index.code_size);
        check_codes(index);
    }

    void check(const faiss::IndexPQ& index) const {
        check_pq(index.pq, index.code_size);
        require(
            index.search_type >= faiss::IndexPQ::ST_PQ && index.search_type <= faiss::IndexPQ::ST_polysemous_generalize,
            "searches in no known way");
        check_codes(index);
    }

    void check(const faiss::IndexFlat& index) const {
        require_code_size(index.code_size, 4 * d_);
        check_codes(index);
    }

    void check_codes(const faiss::IndexFlatCodes& index) const {
        // Fails where there is no such metric. FAISS asks among threads, where what is thrown ends the process.
        const std::unique_ptr<faiss::DistanceComputer> distances(index.get_distance_computer());
        require(index.codes.size() == std::size_t(n_) * index.code_size, "has not all codes");
    }

    void require_code_size(std::size_t size, std::int64_t expected) const {
        require(size == std::size_t(expected), "has codes of " + std::to_string(size) + " bytes");
    }

    void check_pq(const faiss::ProductQuantizer& pq, std::size_t code_size) const {
        require(pq.d == std::size_t(d_) && pq.M >= 1 && pq.nbits >= 1 && pq.nbits <= 16 && pq.dsub * pq.M == pq.d &&
                    pq.centroids.size() == pq.d * pq.ksub,
                "has a product quantizer that does not fit");
        require_code_size(code_size, std::int64_t(pq.code_size));
    }

    void check_sq(const faiss::ScalarQuantizer& sq, std::size_t code_size) const {
        require(sq.d == std::size_t(d_), "has a scalar quantizer of " + std::to_string(sq.d) + " components");
        require_code_size(code_size, std::int64_t(sq.code_size));
        // One range for all components or one each, but for codes that need none.
        using Sq = faiss::ScalarQuantizer;
        const bool each = sq.qtype == Sq::QT_8bit || sq.qtype == Sq::QT_6bit || sq.qtype == Sq::QT_4bit;
        const bool one = sq.qtype == Sq::QT_8bit_uniform || sq.qtype == Sq::QT_4bit_uniform;
        const std::size_t expected = each ? 2 * sq.d : one ? 2 : 0;
        require(sq.trained.size() >= expected, "has a scalar quantizer without all ranges");
    }

    const faiss::Index& index_;
    const std::int64_t n_, d_;
};

}  // namespace

void check_index(const faiss::Index& index) {
    detail::with_faiss_errors([&] { Check(index).run(); });
}

}  // namespace faiss_ext

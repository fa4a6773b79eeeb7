// SPDX-License-Identifier: MIT
// The parts in which the indexes with GNND differ.
#include <algorithm>
#include <string>
#include <utility>

#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/gnnd_kinds.h"
#include "faiss_ext/gnnd_index.h"
#include "gnnd/detail/checks.h"
#include "gnnd/search_links.h"

namespace faiss_ext {

namespace {

int checked(const char* who, const char* name, int value, int least, int most) {
    detail::with_faiss_errors([&] { gnnd::detail::check_range(who, name, value, least, most); });
    return value;
}
int dimension(const char* who, int d) {
    return checked(who, "d", d, 1, int(gnnd::kMaxDim));
}
int nsg_links(const char* who, int R) {
    return checked(who, "R", R, 1, gnnd::kMaxDegree);
}
int hnsw_links(const char* who, int M) {
    return checked(who, "M", M, 2, gnnd::kMaxDegree / 2);
}

}  // namespace

template <class FaissIndex>
void GnndNSG<FaissIndex>::search(idx_t n, const float* x, idx_t k, float* distances, idx_t* labels,
                                 const faiss::SearchParameters* params) const {
    // As FAISS's other indexes; its NSG crashes.
    if (k <= 0) detail::fail("search: k = " + std::to_string(k) + ", allowed are 1 and more");
    if (this->ntotal > std::max<idx_t>(this->nsg.search_L, k) || params != nullptr)
        return FaissIndex::search(n, x, k, distances, labels, params);
    if (this->ntotal > 0) return this->storage->search(n, x, k, distances, labels);
    std::fill_n(labels, n * k, -1);
    detail::with_faiss_errors(
        [&] { std::fill_n(distances, n * k, gnnd::worst_value(to_gnnd_metric(this->metric_type))); });
}

/// FAISS, which may read the index from a file, never ends to search with a beam wider than there are objects.
template <class FaissIndex>
void GnndNSG<FaissIndex>::fit_beam() {
    int& beam = this->nsg.search_L;
    if (beam == lowered_) beam = beam_;
    lowered_ = 0;
    if (beam <= this->ntotal || this->ntotal == 0) return;
    beam_ = beam;
    beam = lowered_ = int(this->ntotal);
}

template class GnndNSG<faiss::IndexNSGFlat>;
template class GnndNSG<faiss::IndexNSGSQ>;
template class GnndNSG<faiss::IndexNSGPQ>;
template class GnndHNSW<faiss::IndexHNSWFlat>;
template class GnndHNSW<faiss::IndexHNSWSQ>;
template class GnndHNSW<faiss::IndexHNSWPQ>;

IndexNSGGnnd::IndexNSGGnnd(int d, int R, faiss::MetricType metric)
    : GnndNSG(Made(), dimension("IndexNSGGnnd", d), nsg_links("IndexNSGGnnd", R), metric) {}

IndexNSGSQGnnd::IndexNSGSQGnnd(int d, faiss::ScalarQuantizer::QuantizerType type, int R, faiss::MetricType metric)
    : GnndNSG(Made(), dimension("IndexNSGSQGnnd", d), type, nsg_links("IndexNSGSQGnnd", R), metric) {}

IndexNSGPQGnnd::IndexNSGPQGnnd(int d, int pq_m, int R)
    : GnndNSG(Made(), dimension("IndexNSGPQGnnd", d), checked("IndexNSGPQGnnd", "pq_m", pq_m, 1, d),
              nsg_links("IndexNSGPQGnnd", R)) {}

IndexHNSWGnnd::IndexHNSWGnnd(int d, int M, faiss::MetricType metric)
    : GnndHNSW(Made(), dimension("IndexHNSWGnnd", d), hnsw_links("IndexHNSWGnnd", M), metric) {}

IndexHNSWSQGnnd::IndexHNSWSQGnnd(int d, faiss::ScalarQuantizer::QuantizerType type, int M, faiss::MetricType metric)
    : GnndHNSW(Made(), dimension("IndexHNSWSQGnnd", d), type, hnsw_links("IndexHNSWSQGnnd", M), metric) {}

IndexHNSWPQGnnd::IndexHNSWPQGnnd(int d, int pq_m, int M)
    : GnndHNSW(Made(), dimension("IndexHNSWPQGnnd", d), checked("IndexHNSWPQGnnd", "pq_m", pq_m, 1, d),
               hnsw_links("IndexHNSWPQGnnd", M)) {}

namespace detail {

namespace {

/// Calls make with each of the classes, until it gives an index.
template <class Make>
std::unique_ptr<faiss::Index> first_of_kinds(const Make& make) {
    const auto first = [&]<class... Gnnd>() {
        std::unique_ptr<faiss::Index> made;
        static_cast<void>(((made = make.template operator()<Gnnd>()) || ...));
        return made;
    };
    return first.template
    operator()<IndexNSGGnnd, IndexNSGSQGnnd, IndexNSGPQGnnd, IndexHNSWGnnd, IndexHNSWSQGnnd, IndexHNSWPQGnnd>();
}

}  // namespace

const char* const kGnndKinds = "IndexNSGFlat, IndexNSGSQ, IndexNSGPQ, IndexHNSWFlat, IndexHNSWSQ or IndexHNSWPQ";

std::unique_ptr<faiss::Index> take_over(faiss::Index& index) {
    return first_of_kinds([&]<class Gnnd>() {
        auto* of_faiss = dynamic_cast<typename Gnnd::Replaced*>(&index);
        return of_faiss == nullptr ? nullptr : std::make_unique<Gnnd>(std::move(*of_faiss));
    });
}

std::unique_ptr<faiss::Index> gnnd_copy_of(const faiss::Index& index) {
    if (auto* with_gnnd = dynamic_cast<const WithGnnd*>(&index)) return with_gnnd->copy();
    return first_of_kinds([&]<class Gnnd>() {
        auto* of_faiss = dynamic_cast<const typename Gnnd::Replaced*>(&index);
        return of_faiss == nullptr ? nullptr : std::make_unique<Gnnd>(*of_faiss);
    });
}

}  // namespace detail

}  // namespace faiss_ext

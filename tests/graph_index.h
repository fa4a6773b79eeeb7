// SPDX-License-Identifier: MIT
#pragma once
/// \file graph_index.h
/// Helpers for tests of FAISS's graph indexes.

#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexNSG.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "faiss_ext/compat.h"

namespace gnnd::test {

struct SearchResult {
    std::vector<float> distances;
    std::vector<faiss_ext::idx_t> ids;
    bool operator==(const SearchResult&) const = default;
};

inline SearchResult search_index(const faiss::Index& index, const std::vector<float>& queries, faiss_ext::idx_t k) {
    const auto count = faiss_ext::idx_t(queries.size()) / index.d;
    SearchResult result{std::vector<float>(count * k), std::vector<faiss_ext::idx_t>(count * k)};
    index.search(count, queries.data(), k, result.distances.data(), result.ids.data());
    return result;
}

/// Recall@k of an index for queries, against a flat index of the same rows, or another that compares with all. Ties are
/// counted by distance, as far as a flat index has it: it subtracts products from norms, by the machine's own BLAS.
inline double search_recall(const faiss::Index& index, const faiss::Index& flat, const std::vector<float>& queries,
                            faiss_ext::idx_t k) {
    const SearchResult found = search_index(index, queries, k), exact = search_index(flat, queries, k);
    const bool similarity = flat.metric_type == faiss::METRIC_INNER_PRODUCT;
    std::size_t hits = 0;
    for (std::size_t i = 0; i < found.ids.size(); ++i) {
        const float* query = queries.data() + std::int64_t(i) / k * index.d;
        const float last = exact.distances[i / k * k + k - 1];
        const float slack = 1e-6f * (std::abs(last) + std::inner_product(query, query + index.d, query, 0.0f));
        hits += similarity ? found.distances[i] >= last - slack : found.distances[i] <= last + slack;
    }
    return double(hits) / double(found.ids.size());
}

/// The links of an object of an NSG, or on level 0 of an HNSW.
inline std::vector<std::int32_t> index_links(const faiss::Index& index, std::int64_t object) {
    if (auto* nsg = dynamic_cast<const faiss::IndexNSG*>(&index)) {
        const std::int32_t* row = nsg->nsg.final_graph->data + object * nsg->nsg.R;
        return {row, row + nsg->nsg.R};
    }
    const faiss::HNSW& hnsw = dynamic_cast<const faiss::IndexHNSW&>(index).hnsw;
    const std::int32_t* row = hnsw.neighbors.data() + hnsw.offsets[object];
    return {row, row + hnsw.nb_neighbors(0)};
}

/// Counts the objects that can be reached from the entry point along the links.
inline std::size_t reachable(const faiss::Index& index) {
    auto* nsg = dynamic_cast<const faiss::IndexNSG*>(&index);
    std::vector<std::int32_t> queue{nsg != nullptr ? nsg->nsg.enterpoint
                                                   : dynamic_cast<const faiss::IndexHNSW&>(index).hnsw.entry_point};
    std::vector<bool> seen(index.ntotal);
    seen[queue[0]] = true;
    for (std::size_t next = 0; next < queue.size(); ++next)
        for (const std::int32_t to : index_links(index, queue[next])) {
            if (to < 0 || seen[to]) continue;
            seen[to] = true;
            queue.push_back(to);
        }
    return queue.size();
}

}  // namespace gnnd::test

// SPDX-License-Identifier: MIT
#include "faiss_ext/detail/faiss_links.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "faiss_ext/detail/class_name.h"
#include "faiss_ext/detail/errors.h"

namespace faiss_ext::detail {

void check_links(const char* who, std::int64_t n, std::int64_t links) {
    if (n * links > std::numeric_limits<int>::max())
        fail(std::string(who) + ": " + std::to_string(n) + " objects with " + std::to_string(links) +
             " links each are more than FAISS can number, 2147483647");
}

void set_links(faiss::IndexNSG& index, const SearchGraph& links) {
    const auto n = int(links.links.size() / links.degree);
    auto graph = std::make_shared<faiss::nsg::Graph<int>>(n, links.degree);
    std::copy(links.links.begin(), links.links.end(), graph->data);
    index.nsg.final_graph = std::move(graph);
    index.nsg.ntotal = n;
    index.nsg.enterpoint = links.entry;
    index.nsg.is_built = index.is_built = true;
}

void set_links(faiss::IndexHNSW& index, const SearchGraph& links) {
    const std::size_t n = links.links.size() / links.degree;
    std::vector<int> levels(n, 1);
    std::vector<std::size_t> offsets(n + 1);
    for (std::size_t i = 0; i <= n; ++i) offsets[i] = i * links.degree;
    decltype(index.hnsw.neighbors) neighbors(links.links.size());
    std::copy(links.links.begin(), links.links.end(), neighbors.data());
    faiss::HNSW& hnsw = index.hnsw;
    hnsw.levels = std::move(levels);
    hnsw.offsets = std::move(offsets);
    hnsw.neighbors = std::move(neighbors);
    hnsw.max_level = 0;
    hnsw.entry_point = links.entry;
}

void require_links(const faiss::IndexNSG& index) {
    const auto& graph = index.nsg.final_graph;
    if (!graph || graph->N != index.ntotal || graph->K != index.nsg.R)
        fail(class_of(index) + " is damaged: it has not links of all objects");
}
void require_links(const faiss::IndexHNSW& index) {
    const faiss::HNSW& hnsw = index.hnsw;
    bool whole = hnsw.offsets.size() == std::size_t(index.ntotal) + 1;
    for (idx_t i = 0; whole && i < index.ntotal; ++i)
        whole = hnsw.offsets[i] + std::size_t(degree_of(index)) <= hnsw.neighbors.size();
    if (!whole) fail(class_of(index) + " is damaged: it has not links of all objects");
}

const std::int32_t* links_of(const faiss::IndexNSG& index, std::int64_t object) {
    return index.nsg.final_graph->data + object * index.nsg.R;
}
const std::int32_t* links_of(const faiss::IndexHNSW& index, std::int64_t object) {
    return index.hnsw.neighbors.data() + index.hnsw.offsets[object];
}

int degree_of(const faiss::IndexNSG& index) {
    return index.nsg.R;
}
int degree_of(const faiss::IndexHNSW& index) {
    return index.hnsw.nb_neighbors(0);
}

std::int32_t entry_of(const faiss::IndexNSG& index) {
    return index.nsg.enterpoint;
}
std::int32_t entry_of(const faiss::IndexHNSW& index) {
    return index.hnsw.entry_point;
}

}  // namespace faiss_ext::detail

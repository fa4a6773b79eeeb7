// SPDX-License-Identifier: MIT
#include "faiss_ext/detail/faiss_links.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "faiss_ext/detail/class_name.h"
#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/pages.h"
#include "gnnd/cpu/copy.h"
#include "gnnd/detail/link_levels.h"

namespace faiss_ext::detail {

void check_links(const char* who, std::int64_t n, std::int64_t links) {
    if (n * links > std::numeric_limits<int>::max())
        fail(std::string(who) + ": " + std::to_string(n) + " objects with " + std::to_string(links) +
             " links each are more than FAISS can number, 2147483647");
}

namespace {

/// Deletes an NSG's links, whose memory it holds; tells by its type that they have room to grow. The graph says that it
/// is the owner, whatever is true: FAISS writes no other.
struct Room {
    std::shared_ptr<std::vector<std::int32_t>> links;
    void operator()(faiss::nsg::Graph<int>* graph) const {
        graph->own_fields = false;
        delete graph;
    }
};

std::shared_ptr<faiss::nsg::Graph<int>> make_graph(std::vector<std::int32_t>&& links, int degree) {
    auto memory = std::make_shared<std::vector<std::int32_t>>(std::move(links));
    auto graph = std::make_unique<faiss::nsg::Graph<int>>(memory->data(), int(memory->size() / degree), degree);
    graph->own_fields = true;
    return {graph.release(), Room{std::move(memory)}};
}

}  // namespace

void set_links(faiss::IndexNSG& index, LinkTree&& links) {
    index.nsg.final_graph = make_graph(std::move(links.links), links.degree);
    const int n = index.nsg.final_graph->N;
    index.nsg.ntotal = n;
    index.nsg.enterpoint = links.entry;
    index.nsg.is_built = index.is_built = true;
}

void set_links(faiss::IndexHNSW& index, LinkTree&& links) {
    if (links.levels.empty()) {
        const std::size_t n = links.links.size() / links.degree;
        grow_with_pages(links.levels, n);
        grow_with_pages(links.offsets, n + 1);
        std::fill(links.levels.begin(), links.levels.end(), 1);
        for (std::size_t i = 0; i <= n; ++i) links.offsets[i] = i * links.degree;
    }
    faiss::HNSW& hnsw = index.hnsw;
    hnsw.neighbors = decltype(hnsw.neighbors)(std::move(links.links));
    hnsw.levels = std::move(links.levels);
    hnsw.offsets = std::move(links.offsets);
    hnsw.max_level = links.top;
    hnsw.entry_point = links.entry;
}

std::int32_t* make_room(faiss::IndexNSG& index, std::int64_t n) {
    auto& graph = index.nsg.final_graph;
    const std::size_t degree = graph->K, before = graph->N * degree, size = n * degree;
    std::vector<std::int32_t> copy;
    Room* room = std::get_deleter<Room>(graph);
    const bool own = room != nullptr && graph.use_count() == 1;
    if (!own) {
        grow_with_pages(copy, size);
        gnnd::cpu::copy_parallel(graph->data, before, copy.data());
        copy.resize(before);
        graph = make_graph(std::move(copy), int(degree));
        room = std::get_deleter<Room>(graph);
    }
    std::vector<std::int32_t>& links = *room->links;
    grow_with_pages(links, size);
    std::fill(links.begin() + std::ptrdiff_t(before), links.end(), -1);
    return graph->data = links.data();
}

std::int32_t* make_room(faiss::IndexHNSW& index, std::int64_t n) {
    faiss::HNSW& hnsw = index.hnsw;
    const auto count = std::int64_t(hnsw.levels.size());
    const std::size_t degree = degree_of(index), before = hnsw.neighbors.size(), added = (n - count) * degree;
    try {
        grow_with_pages(hnsw.levels, n);
        grow_with_pages(hnsw.offsets, n + 1);
        grow_with_pages(hnsw.neighbors, before + added);
    } catch (...) {
        set_count(index, count);
        throw;
    }
    std::fill(hnsw.levels.begin() + count, hnsw.levels.end(), 1);
    for (std::int64_t i = count; i < n; ++i) hnsw.offsets[i + 1] = hnsw.offsets[i] + degree;
    std::fill_n(hnsw.neighbors.data() + before, added, -1);
    return hnsw.neighbors.data();
}

void set_count(faiss::IndexNSG& index, std::int64_t n) {
    auto& graph = index.nsg.final_graph;
    if (const Room* room = std::get_deleter<Room>(graph)) room->links->resize(n * std::size_t(graph->K));
    graph->N = index.nsg.ntotal = int(n);
}
void set_count(faiss::IndexHNSW& index, std::int64_t n) {
    index.hnsw.levels.resize(n);
    index.hnsw.offsets.resize(n + 1);
    index.hnsw.neighbors.resize(index.hnsw.offsets[n]);
}

bool links_are_of(const faiss::IndexNSG& index, std::int64_t n) {
    const auto& graph = index.nsg.final_graph;
    return graph && graph->N == n && graph->K == index.nsg.R;
}
bool links_are_of(const faiss::IndexHNSW& index, std::int64_t n) {
    return index.hnsw.offsets.size() == std::size_t(n) + 1;
}

bool has_links(const faiss::IndexNSG& index, std::int64_t object) {
    return object < index.nsg.final_graph->N;
}
bool has_links(const faiss::IndexHNSW& index, std::int64_t object) {
    return index.hnsw.offsets[object] + std::size_t(degree_of(index)) <= index.hnsw.neighbors.size();
}

namespace {

template <class GraphIndex>
void require(const GraphIndex& index) {
    bool whole = links_are_of(index, index.ntotal);
    for (idx_t i = 0; whole && i < index.ntotal; ++i) whole = has_links(index, i);
    if (!whole) fail(class_of(index) + " is damaged: it has not links of all objects");
}

}  // namespace

void require_links(const faiss::IndexNSG& index) {
    require(index);
}
void require_links(const faiss::IndexHNSW& index) {
    require(index);
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

int upper_degree_for(const faiss::IndexNSG& /*index*/, std::int64_t /*n*/) {
    return 0;
}
int upper_degree_for(const faiss::IndexHNSW& index, std::int64_t n) {
    const std::vector<int>& ends = index.hnsw.cum_nneighbor_per_level;
    if (ends.size() < 3) return 0;
    const int degree = ends[2] - ends[1];
    for (std::size_t level = 2; level + 1 < ends.size(); ++level)
        if (ends[level + 1] - ends[level] != degree) return 0;
    return gnnd::detail::LinkLevels::sizes_for(n, degree).size() + 2 <= ends.size() ? degree : 0;
}

gnnd::detail::LinkLayout layout_of(const faiss::IndexNSG& index) {
    return {index.nsg.R};
}
gnnd::detail::LinkLayout layout_of(const faiss::IndexHNSW& index) {
    const faiss::HNSW& hnsw = index.hnsw;
    return {degree_of(index), hnsw.offsets.data(), hnsw.max_level, hnsw.max_level > 0 ? hnsw.nb_neighbors(1) : 0};
}

std::int32_t entry_of(const faiss::IndexNSG& index) {
    return index.nsg.enterpoint;
}
std::int32_t entry_of(const faiss::IndexHNSW& index) {
    return index.hnsw.entry_point;
}

}  // namespace faiss_ext::detail

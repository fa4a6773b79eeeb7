// SPDX-License-Identifier: MIT
#include "gnnd/graph.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "gnnd/cpu/copy.h"
#include "gnnd/cpu/parallel.h"
#include "gnnd/error.h"
#include "gnnd/vectors.h"

namespace gnnd {

namespace {

void check_size(std::int64_t n, std::int64_t k) {
    if (n < 0 || n > kMaxObjects || k < 1 || k > kMaxColumns)
        throw InvalidArgument("KnnGraph of " + std::to_string(n) + " x " + std::to_string(k) +
                              ", allowed are n up to " + std::to_string(kMaxObjects) + " and k from 1 to " +
                              std::to_string(kMaxColumns));
}

/// Resizes an array whose new elements may be anything. Where one that holds some has to move it takes room for half as
/// many more, and all threads copy it.
template <class T>
void resize_array(Array<T>& array, std::int64_t size) {
    const auto before = std::int64_t(array.size());
    if (before == 0 || size <= std::int64_t(array.capacity())) return array.resize(size);
    Array<T> larger;
    cpu::take_room(larger, cpu::with_room(size));
    larger.resize(size);
    cpu::copy_parallel(array.data(), std::size_t(before), larger.data());
    array = std::move(larger);
}

}  // namespace

KnnGraph::KnnGraph(std::int64_t n, std::int64_t k, Metric metric) : k_(k), metric_(metric) {
    resize(n);
}

void KnnGraph::resize(std::int64_t n) {
    check_size(n, k_);
    const std::int64_t first = std::min(n, n_) * k_, end = n * k_;
    resize_array(ids_, end);
    try {
        resize_array(distances_, end);
    } catch (...) {
        ids_.resize(n_ * k_);
        throw;
    }
    n_ = n;
    const float worst = worst_value(metric_);
    constexpr std::int64_t kPage = 1 << 18;  // elements; few are filled by this thread alone
#pragma omp parallel for schedule(static) if (end - first > kPage)
    for (std::int64_t begin = first; begin < end; begin += kPage) {
        const std::int64_t count = std::min(kPage, end - begin);
        std::fill_n(ids_.data() + begin, count, -1);
        std::fill_n(distances_.data() + begin, count, worst);
    }
}

void KnnGraph::reserve(std::int64_t n) {
    ids_.reserve(n * k_);
    distances_.reserve(n * k_);
}

namespace {

/// Says how a row breaks invariant 1 or 2; empty where it keeps them. `sorted` is scratch space.
std::string fault_of_row(const KnnGraphView& graph, std::int64_t i, std::vector<std::int32_t>& sorted) {
    const bool similarity = is_similarity(graph.metric);
    const std::int64_t full = std::min(graph.k, std::max<std::int64_t>(graph.n - 1, 0));
    const std::int32_t* ids = graph.ids_of(i);
    const float* distances = graph.distances_of(i);
    for (std::int64_t j = 0; j < full; ++j) {
        if (ids[j] < 0 || ids[j] >= graph.n)
            return "id " + std::to_string(ids[j]) + " is outside of [0, " + std::to_string(graph.n) + ")";
        if (ids[j] == i) return "holds itself";
        if (j == 0) continue;
        const float before = similarity ? -distances[j - 1] : distances[j - 1];
        const float here = similarity ? -distances[j] : distances[j];
        if (!(before < here || (before == here && ids[j - 1] < ids[j])))
            return "entry " + std::to_string(j) + " is out of order";
    }
    sorted.assign(ids, ids + full);
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) return "holds id " + std::to_string(*twice) + " twice";
    for (std::int64_t j = full; j < graph.k; ++j)
        if (ids[j] != -1 || distances[j] != worst_value(graph.metric))
            return "entry " + std::to_string(j) + " should be padding";
    return "";
}

}  // namespace

void check_structure(const KnnGraphView& graph) {
    constexpr std::int64_t kRows = 4096;
    const cpu::Team team{cpu::Team::resolve(0), nullptr};
    std::atomic<std::int64_t> first{graph.n};
    team.for_chunks(graph.n, kRows, [&](int, std::int64_t begin, std::int64_t end) {
        std::vector<std::int32_t> sorted;
        for (std::int64_t i = begin; i < end && i < first; ++i) {
            if (fault_of_row(graph, i, sorted).empty()) continue;
            for (std::int64_t least = first; i < least && !first.compare_exchange_weak(least, i);) continue;
        }
    });
    if (first == graph.n) return;
    std::vector<std::int32_t> sorted;
    throw InvalidArgument("graph row " + std::to_string(first) + ": " + fault_of_row(graph, first, sorted));
}

}  // namespace gnnd

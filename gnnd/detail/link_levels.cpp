// SPDX-License-Identifier: MIT
#include "gnnd/detail/link_levels.h"

#include <algorithm>
#include <numeric>

#include "gnnd/detail/recall.h"
#include "gnnd/detail/sample_graph.h"

namespace gnnd::detail {

namespace {

constexpr std::uint64_t kSeed = 0x1e7;

}  // namespace

std::vector<std::int64_t> LinkLevels::sizes_for(std::int64_t n, int degree) {
    constexpr int kLeastShare = 8;
    const int share = std::max(degree, kLeastShare);
    std::vector<std::int64_t> sizes;
    for (std::int64_t size = n / share; size > 1; size /= share) {
        sizes.push_back(size);
        if (size <= 2 * degree) break;
    }
    return sizes;
}

std::size_t LinkLevels::places_for(std::int64_t n, int degree, int upper_degree) {
    const std::vector<std::int64_t> sizes = sizes_for(n, upper_degree);
    return std::size_t(n * degree + std::accumulate(sizes.begin(), sizes.end(), std::int64_t(0)) * upper_degree);
}

LinkLevels::LinkLevels(const VectorView& vectors, Metric metric, std::int32_t entry, const LinkParams& params,
                       const Callbacks& callbacks, Resources* resources)
    : n_(vectors.n), degree_(params.degree), sizes_(sizes_for(vectors.n, params.degree)) {
    if (sizes_.empty()) return;
    order_ = sample_in_any_order(n_, sizes_.front(), kSeed);
    if (const auto at = std::find(order_.begin(), order_.end(), entry); at != order_.end())
        std::swap(*at, order_.front());
    else
        order_.front() = entry;
    for (const std::int64_t size : sizes_) {
        const SampleGraph sample(vectors, order_.data(), size, std::max(degree_, kMaxPruned), metric, params, callbacks,
                                 resources);
        std::vector<std::int32_t>& links = links_.emplace_back(std::size_t(size) * degree_);
        search_links(sample.vectors, sample.graph, params, links.data(), callbacks, resources);
        for (std::int32_t& link : links)
            if (link >= 0) link = order_[link];
    }
}

/// \param links  n x degree
void LinkLevels::link_across(std::int32_t* links, int degree) const {
    const int kept = degree - degree / 4;
    for (std::size_t i = 0; i < order_.size(); ++i) {
        std::int32_t* const row = links + std::int64_t(order_[i]) * degree;
        const std::vector<std::int32_t> before(row, std::find(row, row + degree, -1));
        const std::int32_t* const upper = &links_.front()[i * std::size_t(degree_)];
        std::int32_t* end = row + std::min(std::ptrdiff_t(kept), std::ssize(before));
        const auto add = [&](std::int32_t link) {
            if (end != row + degree && std::find(row, end, link) == end) *end++ = link;
        };
        std::for_each(upper, std::find(upper, upper + degree_, -1), add);
        std::for_each(before.begin(), before.end(), add);
    }
}

void LinkLevels::put_into(int degree, std::int32_t* links, int* levels, std::size_t* offsets) const {
    link_across(links, degree);
    std::fill_n(levels, n_, 1);
    for (const std::int64_t size : sizes_)
        for (std::int64_t i = 0; i < size; ++i) ++levels[order_[i]];
    offsets[0] = 0;
    for (std::int64_t i = 0; i < n_; ++i) offsets[i + 1] = offsets[i] + std::size_t(degree + (levels[i] - 1) * degree_);
    for (std::int64_t i = n_ - 1; i > 0; --i) {  // from behind, for all move there
        const std::int32_t* row = links + i * degree;
        std::copy_backward(row, row + degree, links + offsets[i] + degree);
    }
    const LinkLayout layout{degree, offsets, top(), degree_};
    for (int level = 1; level <= top(); ++level)
        for (std::int64_t i = 0; i < sizes_[level - 1]; ++i)
            std::copy_n(&links_[level - 1][std::size_t(i) * degree_], degree_,
                        links + layout.begin_of(order_[i], level));
}

}  // namespace gnnd::detail

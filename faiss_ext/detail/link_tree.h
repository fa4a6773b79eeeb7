// SPDX-License-Identifier: MIT
#pragma once
/// \file link_tree.h
/// The tree of gnnd/detail/link_tree.h over the vectors of FAISS's storage.

#include <faiss/IndexFlat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "faiss_ext/vector_source.h"
#include "gnnd/cpu/kernels.h"
#include "gnnd/detail/link_tree.h"

namespace faiss_ext::detail {

using gnnd::detail::LinkRows;
using gnnd::detail::TreeGrowth;

/// The links of n objects, with their tree.
struct LinkTree {
    int degree = 0;                     ///< links of an object
    int upper_degree = 0;               ///< and on each level above the one that all are on; 0: there are none
    std::int32_t entry = 0;             ///< the object that searches start from
    int top = 0;                        ///< the highest level
    std::vector<int> levels;            ///< n: on how many each object is; empty: all on one
    std::vector<std::size_t> offsets;   ///< n + 1: where the links of each begin; empty: one row behind the other
    std::vector<std::int32_t> links;    ///< -1 at the end of rows with fewer
    std::vector<std::int32_t> parents;  ///< n: through whom each is reached, the entry through itself; -1: not yet
    double missed = 0;                  ///< the share of the objects that narrow searches miss

    LinkRows rows() {
        return {links.data(), {degree, offsets.empty() ? nullptr : offsets.data(), top, upper_degree}, entry, parents};
    }
};

/// Distances under the storage's metric; smaller is nearer. Not FAISS's own, which may have been compiled for any
/// processor, and adds up one component after the other then.
class StorageDistances final : public gnnd::detail::ObjectDistances {
  public:
    explicit StorageDistances(const faiss::IndexFlat& storage)
        : rows_(storage.get_xb()),
          d_(storage.d),
          keys_to_(gnnd::cpu::kernels(to_gnnd_metric(storage.metric_type), gnnd::DType::f32, d_,
                                      gnnd::cpu::supported_isas().back())
                       .keys_to) {}
    float between(std::int32_t a, std::int32_t b) override {
        float keys[kSpareKeys];
        to_query(row(a), &b, 1, keys);
        return keys[0];
    }
    void between_all(std::int32_t object, const std::int32_t* others, int count, float* out) override {
        to_query(row(object), others, count, out);
    }
    void prefetch(std::int32_t object) const override {
        constexpr idx_t kLine = 16, kMost = 256;  // floats; the processor sees by itself how a longer row goes on
        for (idx_t c = 0; c < std::min(d_, kMost); c += kLine) __builtin_prefetch(row(object) + c);
    }
    std::unique_ptr<ObjectDistances> clone() const override { return std::make_unique<StorageDistances>(*this); }
    /// From a vector that is none of them, as between_all().
    void to_query(const float* x, const std::int32_t* others, int count, float* out) const {
        keys_to_(x, rows_, d_, others, count, out);
    }

  private:
    const float* row(std::int32_t object) const { return rows_ + object * d_; }

    const float* const rows_;
    const idx_t d_;
    decltype(gnnd::cpu::Kernels::keys_to) const keys_to_;
};
static_assert(gnnd::detail::ObjectDistances::kSpareKeys >= gnnd::cpu::kPanelColumns);

}  // namespace faiss_ext::detail

// SPDX-License-Identifier: MIT
#pragma once
/// \file link_tree.h
/// The tree of gnnd/detail/link_tree.h over the vectors of FAISS's storage.

#include <faiss/IndexFlat.h>
#include <faiss/impl/DistanceComputer.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "faiss_ext/optimize.h"
#include "gnnd/detail/link_tree.h"

namespace faiss_ext::detail {

using gnnd::detail::LinkRows;
using gnnd::detail::TreeGrowth;

/// A search graph with its tree.
struct LinkTree : SearchGraph {
    std::vector<std::int32_t> parents;  ///< through whom each object is reached, the entry through itself; -1: not yet
    double missed = 0;                  ///< the share of the objects that narrow searches miss
    LinkRows rows() { return {links.data(), degree, entry, parents}; }
};

/// Distances under the storage's metric; smaller is nearer.
class StorageDistances final : public gnnd::detail::ObjectDistances {
  public:
    explicit StorageDistances(const faiss::IndexFlat& storage)
        : storage_(storage),
          computer_(storage.get_distance_computer()),
          sign_(storage.metric_type == faiss::METRIC_INNER_PRODUCT ? -1.0f : 1.0f) {}
    float between(std::int32_t a, std::int32_t b) override { return sign_ * computer_->symmetric_dis(a, b); }
    void prefetch(std::int32_t object) const override {
        constexpr idx_t kLine = 16, kMost = 256;  // floats; the processor sees by itself how a longer row goes on
        const float* row = storage_.get_xb() + object * idx_t(storage_.d);
        for (idx_t c = 0; c < std::min<idx_t>(storage_.d, kMost); c += kLine) __builtin_prefetch(row + c);
    }
    std::unique_ptr<ObjectDistances> clone() const override { return std::make_unique<StorageDistances>(storage_); }
    void set_query(const float* x) { computer_->set_query(x); }
    float to_query(idx_t i) { return sign_ * (*computer_)(i); }

  private:
    const faiss::IndexFlat& storage_;
    std::unique_ptr<faiss::DistanceComputer> computer_;
    float sign_;
};

}  // namespace faiss_ext::detail

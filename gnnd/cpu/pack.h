// SPDX-License-Identifier: MIT
#pragma once
/// \file pack.h
/// Vectors of floats that are all small integers, as descriptors mostly are, are bytes for whoever compares them: of a
/// quarter of the memory, and with integer products, which are faster on any processor from some 32 components on, and
/// as fast below. Only where sums of floats round nothing either, so that distances are the same to the bit: of 0 to
/// 255 up to 258 components.

#include <cstddef>
#include <optional>
#include <span>

#include "gnnd/cpu/parallel.h"
#include "gnnd/detail/input.h"
#include "gnnd/metric.h"
#include "gnnd/resources.h"
#include "gnnd/vectors.h"

namespace gnnd::cpu {

/// True where vectors of such integers would be packed: floats whose metric is a product, and no more components than
/// products of bytes are summed of. Whether these are is known when they were looked at.
bool may_pack(Metric metric, DType dtype, std::int64_t d);

/// The same of a run. Few insertions meet a part of the rows: for them not all are looked at, unless all are to be
/// copied anyway, since the sets do not adjoin.
bool may_pack(const detail::Input& input, Metric metric);

/// Rows as u8 or i8, whichever holds all their components.
class PackedRows {
  public:
    /// Of sets of one dtype and d, one after the other. nullopt where no bytes hold them, sums of floats would be
    /// rounded, may_pack() is false, or there is no memory for n x d bytes.
    static std::optional<PackedRows> of(std::span<const VectorView> sets, Metric metric, const Team& team,
                                        Resources& resources);

    /// Of an input's sets, where may_pack() is true of it.
    static std::optional<PackedRows> of_input(const detail::Input& input, Metric metric, const Team& team,
                                              Resources& resources);

    const VectorView& view() const { return view_; }

  private:
    Buffer<std::byte> rows_;
    VectorView view_;
};

}  // namespace gnnd::cpu

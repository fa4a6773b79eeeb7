// SPDX-License-Identifier: MIT
#pragma once
/// \file codes.h
/// Rows of floats as rows of bytes, which processors multiply four to eight times as fast, and how far a distance
/// between codes may be from that of the rows: what compares codes first loses no pair.

#include <cstdint>
#include <optional>
#include <vector>

#include "gnnd/cpu/space.h"

namespace gnnd::cpu {

/// The rows as codes. (gnnd::Codes names the kinds of codes that a GPU's iterations compare.)
class CodedRows {
  public:
    /// True where codes are faster than rows: floats whose metric is a product, on a processor that has products of
    /// bytes.
    static bool pay(Metric metric, DType dtype, std::int64_t d);
    /// Memory that they take.
    static std::size_t bytes(std::int64_t n, std::int64_t d, bool normalized) {
        return std::size_t(n) * (std::size_t(d) + (normalized ? 3 : 2) * sizeof(float));
    }

    /// One byte for each component of the rows of `exact`, n x d: the nearest multiple of one step, or of a step of the
    /// row's own where the metric is normalized; for metrics that know no origin after the mean was taken off.
    CodedRows(const Space& exact, const Team& team, Resources& resources);

    /// The codes, under the metric of the rows.
    const Space& space() const { return *space_; }

    /// Of a group of objects: how far the rows are from what their codes stand for, at most, and how long that is.
    struct Extent {
        float error = 0, length = 0;
    };
    Extent extent(const std::int32_t* objects, int count) const;

    /// The largest key between codes that a pair of object i and one of the group may have whose rows have a key of
    /// `key` at most.
    float reach(std::int32_t i, float key, const Extent& others) const;

  private:
    void find_step(const Space& exact);
    void encode(const Space& exact, std::int64_t i, float* row);

    Metric metric_;
    float step_ = 1;
    std::vector<float> origin_;  ///< d
    Buffer<std::int8_t> rows_;
    Buffer<float> errors_, lengths_;
    std::optional<Space> space_;
};

}  // namespace gnnd::cpu

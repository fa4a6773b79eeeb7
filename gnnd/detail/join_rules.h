// SPDX-License-Identifier: MIT
#pragma once
/// \file join_rules.h
/// The value of a pair from the values of its directions, for both backends. both(a, b) is that of a pair with two, a
/// of the row itself; one(a) that of a pair with one, if keeps_one; only those with keeps(value) remain.

#include "gnnd/metric.h"

namespace gnnd::detail {

/// Of symmetric and mutual graphs: the nearer value.
template <bool kUnion, bool kLarger>
struct Nearer {
    static constexpr bool keeps_one = kUnion;
    GNND_HOST_DEVICE float one(float a) const { return a; }
    GNND_HOST_DEVICE float both(float a, float b) const { return kLarger ? (a < b ? b : a) : (b < a ? b : a); }
    GNND_HOST_DEVICE bool keeps(float) const { return true; }
};

/// Of UMAP's memberships.
struct FuzzyRule {
    static constexpr bool keeps_one = true;
    float mix;
    GNND_HOST_DEVICE float one(float a) const { return mix * a; }
    GNND_HOST_DEVICE float both(float a, float b) const {
        const float product = a * b;
        return mix * (a + b - product) + (1 - mix) * product;
    }
    GNND_HOST_DEVICE bool keeps(float value) const { return value != 0; }
};

}  // namespace gnnd::detail

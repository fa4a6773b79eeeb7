// SPDX-License-Identifier: MIT
#include "gnnd/detail/bound_sample.h"

#include <cmath>

namespace gnnd::detail {

std::uint32_t sample_rank(int k, std::uint32_t stride) {
    constexpr double kShort = 4e-3;
    const double p = 1.0 / stride, odds = p / (1 - p);
    double exactly = std::pow(1 - p, k + 1), at_most = exactly;  // the probability that the sample holds so many
    std::uint32_t held = 0;
    for (; held <= std::uint32_t(k) && 1 - at_most > kShort; ++held) {
        exactly *= odds * (k + 1 - int(held)) / (held + 1);
        at_most += exactly;
    }
    return held + 1;
}

}  // namespace gnnd::detail

// SPDX-License-Identifier: MIT
#pragma once
/// \file random.h
/// Small reproducible random numbers: the same on every platform, and cheap to start at any point.

#include <cstdint>

namespace gnnd {

/// SplitMix64 (Steele, Lea, Flood 2014).
class Random {
  public:
    /// Streams of different (seed, stream) are independent.
    explicit Random(std::uint64_t seed, std::uint64_t stream = 0)
        : state_(mix(seed ^ mix(stream + 0x9e3779b97f4a7c15))) {}

    std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15); }

    /// Uniform in [0, bound), bound < 2^32.
    std::uint32_t below(std::uint32_t bound) { return std::uint32_t(((next() >> 32) * bound) >> 32); }
    /// The same for any bound, and the same numbers for one below 2^32.
    std::uint64_t below_any(std::uint64_t bound) {
        if (bound < std::uint64_t(1) << 32) return below(std::uint32_t(bound));
        const std::uint64_t all = next(), high = bound >> 32, low = bound & 0xffffffff;
        return (all >> 32) * high + (((all >> 32) * low) >> 32) + (((all & 0xffffffff) * high) >> 32);
    }

  private:
    static std::uint64_t mix(std::uint64_t z) {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    std::uint64_t state_;
};

}  // namespace gnnd

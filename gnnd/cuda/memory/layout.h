// SPDX-License-Identifier: MIT
#pragma once
/// \file layout.h
/// The tools that plans of device memory are made with.

#include <algorithm>
#include <string>

#include "gnnd/cuda/memory/plan.h"
#include "gnnd/error.h"

namespace gnnd::cuda {

inline std::int64_t round_up(std::int64_t value, std::int64_t to) {
    return (value + to - 1) / to * to;
}

/// Divides a block of memory into parts, one behind the other, each aligned to 256 bytes.
class Layout {
  public:
    Part take(std::int64_t bytes) {
        const Part part{end_, std::size_t(bytes)};
        end_ = std::size_t(round_up(std::int64_t(end_) + bytes, 256));
        return part;
    }
    std::size_t end_ = 0;
};

/// The bytes that a plan may take.
struct MemoryLimits {
    std::size_t allowed;  ///< by BuildParams::device_memory; 0: any number
    std::size_t free;     ///< 0: any number

    bool allow(std::size_t bytes) const { return allowed == 0 || bytes <= allowed; }
    bool hold(std::size_t bytes) const { return allow(bytes) && (free == 0 || bytes <= free); }

    /// \throws OutOfDeviceMemory with `who` needs how much, and what there is
    void check(const char* who, std::size_t bytes) const {
        if (hold(bytes)) return;
        throw OutOfDeviceMemory(
            std::string(who) + " needs at least " + std::to_string(bytes) + " bytes of device memory, " +
            (allow(bytes) ? std::to_string(free) + " are free"
                          : std::to_string(allowed) + " are allowed by BuildParams::device_memory"));
    }
};

/// \param there  bytes that may be taken; 0: any number
inline std::size_t bytes_left(std::size_t there, std::size_t used) {
    if (there == 0) return ~std::size_t(0);
    return there > used ? there - used : 0;
}

/// Lays a plan out with `wanted` of something, or, until fits() says so, with less and less of it down to `least`.
/// \param less  the next number to try
template <class Number, class LayOut, class Fits, class Less>
void lay_out_to_fit(Number wanted, Number least, const LayOut& lay_out, const Fits& fits, const Less& less) {
    lay_out(wanted);
    while (wanted > least && !fits()) lay_out(wanted = std::max(less(wanted), least));
}

/// The form that vectors get, as far as it does not depend on their values.
VectorForm form_of(const VectorView& vectors, bool on_device, Metric metric);

}  // namespace gnnd::cuda

#pragma once
/// \file layout.h
/// What the plans of device memory are made with.

#include "gnnd/cuda/memory/plan.h"

namespace gnnd::cuda {

inline std::int64_t round_up(std::int64_t value, std::int64_t to) {
    return (value + to - 1) / to * to;
}

/// Parts one behind the other.
class Layout {
  public:
    Part take(std::int64_t bytes) {
        const Part part{end_, std::size_t(bytes)};
        end_ = std::size_t(round_up(std::int64_t(end_) + bytes, 256));
        return part;
    }
    std::size_t end_ = 0;
};

/// The form that vectors get, as far as it does not depend on their values.
VectorForm form_of(const VectorView& vectors, bool on_device, Metric metric);

}  // namespace gnnd::cuda

// SPDX-License-Identifier: MIT
#pragma once
/// \file exact_lists.h
/// The device memory of the lists of all objects that become a graph.

#include "gnnd/cuda/device/state.cuh"
#include "gnnd/cuda/memory/layout.h"

namespace gnnd::cuda {

/// Ids and distances go between the host and the device in one piece each.
struct ExactLists {
    Part ids, distances, bounds;
    std::size_t total;

    /// \param there  ids and distances lie elsewhere on the device
    ExactLists(std::int64_t n, int k, bool there) : k_(k) {
        Layout layout;
        if (!there) {
            ids = layout.take(n * k * 4);
            distances = layout.take(n * k * 4);
        }
        bounds = layout.take(n * 4);
        total = layout.end_;
    }
    Lists in(std::byte* memory) const {
        return {.ids = reinterpret_cast<u32*>(memory + ids.offset),
                .distances = reinterpret_cast<float*>(memory + distances.offset),
                .bounds = reinterpret_cast<float*>(memory + bounds.offset),
                .length = k_,
                .segments = 1};
    }

  private:
    int k_;
};

}  // namespace gnnd::cuda

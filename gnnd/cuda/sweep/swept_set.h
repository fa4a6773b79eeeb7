// SPDX-License-Identifier: MIT
#pragma once
/// \file swept_set.h
/// Vectors prepared for a sweep where no build has prepared them.

#include "gnnd/cuda/memory/memory.h"
#include "gnnd/cuda/sweep/bounds.h"
#include "gnnd/detail/input.h"

namespace gnnd::cuda {

class SweptSet {
  public:
    /// Starts copying (unless the vectors lie on the device, those of two sets adjoining), packing and checking.
    SweptSet(const detail::Input& input, Metric metric, Resources& resources, cudaStream_t stream);

    const SweepSpace& space() const { return space_; }
    /// Waits for the stream.
    /// \param rows  so many of the first vectors are looked at
    /// \throws InvalidArgument for one of them that the metric cannot work with
    void check(std::int64_t rows) const;

    /// Device memory that it takes; and the shape of its space, which tells what a Sweep takes, and that of a build.
    /// \param in_place  the vectors lie on the device, those of two sets adjoining; the pointers may be null
    static std::size_t bytes(const detail::Input& input, bool in_place, Metric metric);
    static SweepSpace shape(const detail::Input& input, bool in_place, Metric metric);

  private:
    const detail::Input& input_;
    cudaStream_t stream_;
    DeviceMemory memory_;
    SweepSpace space_;
    Drain drain_;  // the last member: kernels end before the memory goes back
};

}  // namespace gnnd::cuda

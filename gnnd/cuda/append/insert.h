#pragma once
/// \file insert.h
/// append() by searching, on a GPU.

#include "gnnd/builder.h"
#include "gnnd/cuda/algorithm.h"
#include "gnnd/detail/input.h"

namespace gnnd::cuda {

/// See detail/insert.h. Arguments as those of run(); the device is the current one.
void insert(const detail::Input& input, const BuildParams& params, const Callbacks& callbacks, Resources& resources,
            std::int32_t* ids, float* distances, BuildStats& stats);

/// Objects that are compared with others.
struct Ranges {
    u32 first_row, rows, first_column, columns;
};
/// See nearest.cuh.
void find_nearest(const Points& points, Cell cell, Metric metric, const Ranges& ranges, const u32* objects, int take,
                  u32* nearest, cudaStream_t stream);

}  // namespace gnnd::cuda

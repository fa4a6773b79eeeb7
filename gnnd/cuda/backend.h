#pragma once
/// \file backend.h
/// What builder.h offers, on a GPU. Arguments were checked by the caller. Needs no CUDA headers.

#include "gnnd/builder.h"

namespace gnnd::cuda {

/// Number of GPUs of this process; where it is 0, `why` says the reason.
int device_count(std::string* why = nullptr);

/// True if there is a GPU of this number that the kernels run on; `why` says the reason otherwise.
bool usable(int index, std::string& why);

/// True if the pointer is to memory of a GPU.
bool on_device(const void* pointer);

/// initial: the graph to start from (host memory), null for build(). Vectors and result lie on the host or on the
/// device.
BuildStats build(const VectorView& vectors, const KnnGraphView* initial, const BuildParams& params,
                 const Callbacks& callbacks, Resources& resources, std::int32_t* ids, float* distances);

/// What build() would take, computed without taking it.
MemoryPlan plan(const VectorView& vectors, const BuildParams& params);

}  // namespace gnnd::cuda

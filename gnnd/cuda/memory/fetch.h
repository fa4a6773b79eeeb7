// SPDX-License-Identifier: MIT
#pragma once
/// \file fetch.h
/// What the device reports to the host.

#include "gnnd/cuda/memory/memory.h"

namespace gnnd::cuda {

/// A value on the device. Waits for the stream.
template <class T>
T fetch(const T* from, cudaStream_t stream) {
    PinnedArray<T, 1> here;
    GNND_CUDA(cudaMemcpyAsync(&here[0], from, sizeof(T), cudaMemcpyDeviceToHost, stream));
    GNND_CUDA(cudaStreamSynchronize(stream));
    return here[0];
}

}  // namespace gnnd::cuda

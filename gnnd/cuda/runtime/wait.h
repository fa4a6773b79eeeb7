// SPDX-License-Identifier: MIT
#pragma once
/// \file wait.h
/// Waiting for the device while the caller may want to end it.

#include <chrono>
#include <thread>

#include "gnnd/builder.h"
#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/error.h"

namespace gnnd::cuda {

/// Waits for the stream where there is somebody to ask meanwhile.
inline void await(cudaStream_t stream, const Callbacks& callbacks) {
    while (callbacks.interrupt) {
        if (callbacks.interrupt()) throw Interrupted("interrupted by the caller");
        const cudaError_t state = cudaStreamQuery(stream);
        if (state == cudaSuccess) return;
        if (state != cudaErrorNotReady) check(state, "cudaStreamQuery", __FILE__, __LINE__);
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
}

}  // namespace gnnd::cuda

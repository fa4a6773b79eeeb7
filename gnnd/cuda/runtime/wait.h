// SPDX-License-Identifier: MIT
#pragma once
/// \file wait.h
/// Waiting for the device while the caller may want to end it.

#include <chrono>
#include <string>
#include <thread>

#include "gnnd/builder.h"
#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/error.h"

namespace gnnd::cuda {

/// Waits until a query of CUDA's gives success, where there is somebody to ask meanwhile.
/// \param call         the query is, for messages
/// \param interrupted  the message of Interrupted
template <class Query>
void await(const Query& query, const char* call, const Callbacks& callbacks, const std::string& interrupted) {
    while (callbacks.interrupt) {
        const cudaError_t state = query();
        if (callbacks.interrupt()) throw Interrupted(interrupted);
        if (state == cudaSuccess) return;
        if (state != cudaErrorNotReady) check(state, call, __FILE__, __LINE__);
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
}

/// The same for the stream.
inline void await(cudaStream_t stream, const Callbacks& callbacks) {
    await([&] { return cudaStreamQuery(stream); }, "cudaStreamQuery", callbacks, "interrupted by the caller");
}

}  // namespace gnnd::cuda

// SPDX-License-Identifier: MIT
#pragma once
/// \file callbacks.h
/// The caller's functions, called while a device is current.

#include <functional>
#include <utility>

#include "gnnd/builder.h"
#include "gnnd/cuda/memory/memory.h"

namespace gnnd::cuda {

/// The same function, after which the device is current again, whichever the function has made so.
template <class Result, class... Arguments>
std::function<Result(Arguments...)> keeping_device(std::function<Result(Arguments...)> f, int device) {
    if (!f) return f;
    return [f = std::move(f), device](Arguments... arguments) {
        const UseDevice own(device);
        return f(arguments...);
    };
}

inline Callbacks keeping_device(const Callbacks& callbacks, int device) {
    return {keeping_device(callbacks.progress, device), keeping_device(callbacks.interrupt, device),
            keeping_device(callbacks.verbose, device)};
}

}  // namespace gnnd::cuda

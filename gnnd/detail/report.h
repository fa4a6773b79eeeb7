// SPDX-License-Identifier: MIT
#pragma once
/// \file report.h
/// The way from a backend's iteration to whoever wants to know.

#include "gnnd/builder.h"

namespace gnnd::detail {

/// Records an iteration, or a batch of append(), and tells the caller.
inline void report(const IterationStats& iteration, BuildStats& stats, const Callbacks& callbacks) {
    stats.iterations.push_back(iteration);
    if (callbacks.verbose) callbacks.verbose(to_text(iteration));
    if (callbacks.progress) callbacks.progress(iteration);
}

}  // namespace gnnd::detail

// SPDX-License-Identifier: MIT
#pragma once
/// \file parallel.h
/// The parallel loops of the CPU backend.

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>

#include "gnnd/error.h"

namespace gnnd::cpu {

/// Threads that share the iterations of a loop, and the callback that may end it.
struct Team {
    int threads = 1;
    const std::function<bool()>* interrupt = nullptr;  ///< asked by the calling thread only, between chunks

    /// threads as in BuildParams: 0 stands for all that OpenMP gives.
    static int resolve(int threads) { return threads > 0 ? threads : omp_get_max_threads(); }

    /// Calls body(thread, begin, end) for chunks of [0, count); thread is in [0, threads). What body or the interrupt
    /// callback throws ends the loop and is thrown here (one of them, if there are several).
    /// \throws Interrupted
    template <class Body>
    void for_chunks(std::int64_t count, std::int64_t chunk, const Body& body) const {
        // With many threads the calling one may get no chunk at all.
        if (interrupt != nullptr && *interrupt && (*interrupt)()) throw Interrupted("interrupted by the caller");
        std::atomic<bool> stop{false};
        std::exception_ptr error;
        const std::int64_t chunks = (count + chunk - 1) / chunk;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
        for (std::int64_t c = 0; c < chunks; ++c) {
            if (stop.load(std::memory_order_relaxed)) continue;
            const int thread = omp_get_thread_num();
            try {
                if (thread == 0 && interrupt != nullptr && *interrupt && (*interrupt)())
                    throw Interrupted("interrupted by the caller");
                body(thread, c * chunk, std::min(count, (c + 1) * chunk));
            } catch (...) {
                stop.store(true, std::memory_order_relaxed);
#pragma omp critical(gnnd_for_chunks)
                if (!error) error = std::current_exception();
            }
        }
        if (error) std::rethrow_exception(error);
    }

    /// Calls make(thread, i), in_turn(thread, i) and finish(thread, i) for every i of [0, count), by the same thread.
    /// Those of different i run side by side, but for in_turn, which is called for one i after the other. What they
    /// throw ends the loop as in for_chunks().
    template <class Make, class InTurn, class Finish>
    void for_ordered(std::int64_t count, const Make& make, const InTurn& in_turn, const Finish& finish) const {
        std::atomic<bool> stop{false};
        std::exception_ptr error;
        const auto attempt = [&](const auto& step) {
            if (stop.load(std::memory_order_relaxed)) return;
            try {
                step();
            } catch (...) {
                stop.store(true, std::memory_order_relaxed);
#pragma omp critical(gnnd_for_ordered)
                if (!error) error = std::current_exception();
            }
        };
#pragma omp parallel for ordered schedule(dynamic, 1) num_threads(threads)
        for (std::int64_t i = 0; i < count; ++i) {
            const int thread = omp_get_thread_num();
            attempt([&] {
                if (thread == 0 && interrupt != nullptr && *interrupt && (*interrupt)())
                    throw Interrupted("interrupted by the caller");
                make(thread, i);
            });
#pragma omp ordered
            attempt([&] { in_turn(thread, i); });
            attempt([&] { finish(thread, i); });
        }
        if (error) std::rethrow_exception(error);
    }
};

}  // namespace gnnd::cpu

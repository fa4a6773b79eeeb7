// SPDX-License-Identifier: MIT
#pragma once
/// \file hooks.h
/// Builds run without the GIL; what they call back takes it.

#include <nanobind/nanobind.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "gil.h"
#include "gnnd/builder.h"
#include "gnnd/error.h"
#include "gnnd/sharded.h"

namespace gnnd::python {

namespace nb = nanobind;

/// Signals (Ctrl-C) and what the progress function raises end a build; both reach the caller as they are.
class Hooks {
  public:
    /// \param progress  called with a dict after every iteration (or task); None: not at all
    explicit Hooks(nb::object progress) : progress_(std::move(progress)) {}

    Callbacks callbacks();
    ShardCallbacks shard_callbacks();

    /// Calls f without the GIL.
    /// \throws what f throws, or the Python exception that came meanwhile, also where f has come to its end
    template <class F>
    auto run(F&& f) {
        if constexpr (std::is_void_v<decltype(f())>) {
            run([&] {
                f();
                return true;
            });
        } else {
            std::optional<decltype(f())> result;
            try {
                const GilReleased released;
                result.emplace(f());
            } catch (const Interrupted&) {
                if (!raised_) throw;
            }
            if (raised_) throw std::move(*raised_);
            return *std::move(result);
        }
    }

  private:
    bool interrupted();
    void report(const nb::object& record);

    nb::object progress_;
    std::optional<nb::python_error> raised_;
    std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
};

}  // namespace gnnd::python

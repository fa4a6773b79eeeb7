// SPDX-License-Identifier: MIT
#pragma once
/// \file timer.h
/// The seconds of the steps of a build.

#include <chrono>

namespace faiss_ext::detail {

class Timer {
  public:
    /// Seconds since construction or the last call.
    double lap() {
        const auto now = std::chrono::steady_clock::now();
        const double seconds = std::chrono::duration<double>(now - start_).count();
        start_ = now;
        return seconds;
    }

  private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace faiss_ext::detail

#pragma once
/// \file timer.h
/// The seconds of the steps of a build, as GraphBuilder::timing shows them.

#include <chrono>
#include <cstdio>
#include <string>

namespace faiss_ext::detail {

/// Appends "step seconds" to a text, separated by commas.
inline void append_seconds(std::string& text, const char* step, double seconds) {
    char item[64];
    std::snprintf(item, sizeof item, "%s%s %.3f", text.empty() ? "" : ", ", step, seconds);
    text += item;
}

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

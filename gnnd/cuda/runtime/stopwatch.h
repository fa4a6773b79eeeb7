// SPDX-License-Identifier: MIT
#pragma once
/// \file stopwatch.h
/// The time that pieces of work take on a stream, from events: nobody waits while they run.

#include <deque>

#include "gnnd/cuda/memory/memory.h"

namespace gnnd::cuda {

class Stopwatch {
  public:
    explicit Stopwatch(cudaStream_t stream) : stream_(stream) {}
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;

    /// A piece of work, as long as it lives: from what was launched before it to the end of what was launched until it
    /// ends, and where the device waits for the host in between, that too. One inside of another counts once.
    class Piece {
      public:
        explicit Piece(Stopwatch& of) : of_(of) {
            if (of_.depth_ == 0) GNND_CUDA(cudaEventRecord(of_.laps_.emplace_back().begin, of_.stream_));
            ++of_.depth_;
        }
        ~Piece() {
            if (--of_.depth_ == 0) ignore(cudaEventRecord(of_.laps_.back().end, of_.stream_));
        }
        Piece(const Piece&) = delete;
        Piece& operator=(const Piece&) = delete;

      private:
        Stopwatch& of_;
    };

    /// Of all pieces that have ended. Waits for the last of them.
    double seconds() const {
        double sum = 0;
        for (std::size_t i = 0; i < laps_.size() - std::size_t(depth_ != 0); ++i) {
            float milliseconds = 0;
            GNND_CUDA(cudaEventSynchronize(laps_[i].end));
            GNND_CUDA(cudaEventElapsedTime(&milliseconds, laps_[i].begin, laps_[i].end));
            sum += double(milliseconds) * 1e-3;
        }
        return sum;
    }

  private:
    struct Lap {
        Event begin{cudaEventDefault}, end{cudaEventDefault};
    };

    cudaStream_t stream_;
    std::deque<Lap> laps_;  // which does not move them
    int depth_ = 0;
};

}  // namespace gnnd::cuda

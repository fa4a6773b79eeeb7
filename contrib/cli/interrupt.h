// SPDX-License-Identifier: MIT
#pragma once
/// SIGINT and SIGTERM end a command between two steps, so that no half-written file is left behind. A second signal
/// ends it at once.

#include "gnnd/error.h"

namespace cli {

/// An interruption of a command that keeps what it has done. The text is what the user reads.
class Resumable : public gnnd::Interrupted {
  public:
    using gnnd::Interrupted::Interrupted;
};

/// Takes the signals from here on, also on behalf of FAISS's own loops.
void catch_signals();

/// Ends the process the way the signal that came would have ended it, so that a shell's loop ends as well. Returns
/// where none came.
void die_of_signal();

/// The signal that came, or 0.
int caught_signal();

/// \throws gnnd::Interrupted when a signal came
void stop_if_interrupted();

}  // namespace cli

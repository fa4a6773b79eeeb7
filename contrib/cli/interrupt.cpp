// SPDX-License-Identifier: MIT
#include "interrupt.h"

#include <atomic>
#include <csignal>

#include "faiss_part.h"
#include "gnnd/error.h"

namespace cli {

namespace {

std::atomic<int> signal_number{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

void take(int number) {
    struct sigaction action {};
    // Whoever started the command with the signal ignored (nohup, a background job) wants it ignored.
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) return;
    action = {};
    action.sa_handler = [](int caught) { signal_number = caught; };
    action.sa_flags = SA_RESTART | int(SA_RESETHAND);
    sigaction(number, &action, nullptr);
}

}  // namespace

void catch_signals() {
    take(SIGINT);
    take(SIGTERM);
    take(SIGHUP);
    signal(SIGXFSZ, SIG_IGN);  // a file that may not grow further is an error that can be told
    interrupt_faiss();
}

void die_of_signal() {
    if (caught_signal() == 0) return;
    signal(caught_signal(), SIG_DFL);
    raise(caught_signal());
}

int caught_signal() {
    return signal_number;
}

void stop_if_interrupted() {
    if (caught_signal() != 0) throw gnnd::Interrupted("interrupted");
}

}  // namespace cli

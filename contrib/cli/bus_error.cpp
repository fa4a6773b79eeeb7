// SPDX-License-Identifier: MIT
#include "bus_error.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>

#include "gnnd/io/detail/atomic_file.h"
#include "gnnd/io/detail/mapped_file.h"

namespace cli {

namespace {

void write_error(const char* text) {
    if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;  // there is nobody else to tell
}

/// Calls only what a signal handler may call.
void end_with_message(int, siginfo_t* info, void*) {
    const char* path = gnnd::io::detail::mapped_path_at(info->si_addr);
    if (path == nullptr) {  // of something else: the instruction runs again and ends the process as it would have
        signal(SIGBUS, SIG_DFL);
        return;
    }
    static std::atomic_flag told;
    while (told.test_and_set()) pause();  // by another thread, which ends the process
    gnnd::io::detail::remove_temporary_files();
    write_error("gnnd: ");
    write_error(path);
    write_error(": cannot be read any more; it became shorter while it was in use, or its disk failed\n");
    _exit(1);
}

}  // namespace

void report_bus_errors() {
    struct sigaction action {};
    action.sa_sigaction = end_with_message;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, nullptr);
}

}  // namespace cli

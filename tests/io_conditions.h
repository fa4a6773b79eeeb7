// SPDX-License-Identifier: MIT
#pragma once
/// \file io_conditions.h
/// Circumstances in which files cannot be read or written, made for the length of a scope; and what an error says.

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

namespace gnnd::test {

/// While it lives, no file can grow past so many bytes: the write fails, as on a full disk.
class FullDisk {
  public:
    explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
        getrlimit(RLIMIT_FSIZE, &old_);
        rlimit limit = old_;
        limit.rlim_cur = bytes;
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    ~FullDisk() {
        setrlimit(RLIMIT_FSIZE, &old_);
        std::signal(SIGXFSZ, handler_);
    }
    FullDisk(const FullDisk&) = delete;
    FullDisk& operator=(const FullDisk&) = delete;

  private:
    void (*handler_)(int);
    rlimit old_;
};

/// While it lives, the process has no superuser's rights, which file permissions mean nothing to.
class OrdinaryUser {
  public:
    OrdinaryUser() : changed_(geteuid() == 0 && seteuid(65534) == 0) {}
    ~OrdinaryUser() {
        if (changed_ && seteuid(0) != 0) std::abort();
    }
    OrdinaryUser(const OrdinaryUser&) = delete;
    OrdinaryUser& operator=(const OrdinaryUser&) = delete;
    /// False where the system does not let go of the rights.
    bool is_ordinary() const { return geteuid() != 0; }

  private:
    bool changed_;
};

/// Returns the message of the E that f throws. Anything else that f throws passes.
template <class E, class F>
std::string message_of(F&& f) {
    try {
        f();
    } catch (const E& error) {
        return error.what();
    }
    return "nothing was thrown";
}

}  // namespace gnnd::test

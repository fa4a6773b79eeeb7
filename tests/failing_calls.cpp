// SPDX-License-Identifier: MIT
#include "tests/failing_calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <string>

namespace gnnd::test {
namespace {

std::atomic<int> threads_allowed{INT_MAX}, flushes_allowed{INT_MAX};

#ifndef GNND_SANITIZED
bool is_allowed(std::atomic<int>& allowed) {
    return allowed == INT_MAX || --allowed >= 0;
}
#endif

}  // namespace

FailingThreads::FailingThreads(int allowed) {
    threads_allowed = allowed;
}
FailingThreads::~FailingThreads() {
    threads_allowed = INT_MAX;
}
bool FailingThreads::has_failed() const {
    return threads_allowed < 0;
}
bool FailingThreads::possible() {
#ifdef GNND_SANITIZED
    return false;
#else
    return true;
#endif
}

FailingFolderFlush::FailingFolderFlush(int allowed) {
    flushes_allowed = allowed;
}
FailingFolderFlush::~FailingFolderFlush() {
    flushes_allowed = INT_MAX;
}
bool FailingFolderFlush::has_failed() const {
    return flushes_allowed < 0;
}

}  // namespace gnnd::test

#ifndef GNND_SANITIZED
// In place of the C library's, for all of the process.
extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) noexcept {
    using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
    Dl_info owner{};
    const bool is_openmp = dladdr(reinterpret_cast<void*>(run), &owner) != 0 && owner.dli_fname != nullptr &&
                           std::string(owner.dli_fname).find("omp") != std::string::npos;
    if (!is_openmp && !gnnd::test::is_allowed(gnnd::test::threads_allowed)) return EAGAIN;
    return create(thread, attributes, run, argument);
}

int fsync(int descriptor) {
    struct stat status;
    const bool is_folder = fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode);
    if (is_folder && !gnnd::test::is_allowed(gnnd::test::flushes_allowed)) {
        errno = EIO;
        return -1;
    }
    return int(syscall(SYS_fsync, descriptor));
}
}
#endif

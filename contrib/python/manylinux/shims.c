// SPDX-License-Identifier: MIT
// The module and the static libstdc++ call what glibc 2.28 lacks: here each is a function of the module's own, which no
// other library sees. lower_versions.py names what is missing here. For x86-64 and other 64-bit systems, whose `struct stat`
// is the kernel's.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

struct stat;

// Before 2.33 these stood in a part of glibc that was linked statically.

HIDDEN int stat(const char* path, struct stat* out) {
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, out, 0);
}

HIDDEN int lstat(const char* path, struct stat* out) {
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}

HIDDEN int fstat(int descriptor, struct stat* out) {
    return (int)syscall(SYS_fstat, descriptor, out);
}

HIDDEN int fstat64(int descriptor, struct stat* out) {
    return fstat(descriptor, out);
}

HIDDEN int stat64(const char* path, struct stat* out) {
    return stat(path, out);
}

HIDDEN int lstat64(const char* path, struct stat* out) {
    return lstat(path, out);
}

HIDDEN int fstatat(int folder, const char* path, struct stat* out, int flags) {
    return (int)syscall(SYS_newfstatat, folder, path, out, flags);
}

// Since 2.32; libstdc++ counts references without atomic instructions where it is not 0.
HIDDEN char __libc_single_threaded = 0;

// Since 2.30: waits until a time of the given clock. std::condition_variable's own clock is the time of day, which may be
// set meanwhile: its wait_until then returns early or late by as much, as it did with libraries of 2.28's time.
HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                  const struct timespec* until) {
    struct timespec now, today, end;
    if (clock_gettime(clock, &now) != 0 || clock_gettime(CLOCK_REALTIME, &today) != 0) return errno;
    end.tv_sec = today.tv_sec + (until->tv_sec - now.tv_sec);
    end.tv_nsec = today.tv_nsec + (until->tv_nsec - now.tv_nsec);
    while (end.tv_nsec < 0) {
        end.tv_nsec += 1000000000;
        --end.tv_sec;
    }
    while (end.tv_nsec >= 1000000000) {
        end.tv_nsec -= 1000000000;
        ++end.tv_sec;
    }
    if (end.tv_sec < 0) end.tv_sec = end.tv_nsec = 0;
    return pthread_cond_timedwait(condition, mutex, &end);
}

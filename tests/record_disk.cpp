// SPDX-License-Identifier: MIT
// Preloaded into a process (LD_PRELOAD), this records what it does to files below the folder $GNND_RECORD_FOLDER, in
// the order in which it happens, in the file $GNND_RECORD: a line "OPERATION OFFSET BYTES PATH" for each, and BYTES
// bytes that belong to it. tests/power_cut_test.cpp reads it, and would notice if an operation passed unseen.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <mutex>
#include <string>

namespace {

std::mutex& mutex() {
    static auto* mutex = new std::mutex;  // never destroyed: files are closed until the very end
    return *mutex;
}

bool is_recorded(const std::string& path) {
    static const char* folder = std::getenv("GNND_RECORD_FOLDER");
    return folder != nullptr && path.starts_with(folder);
}

std::string path_of(int descriptor) {
    char path[4096];
    const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
    const ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link.c_str(), path, sizeof path);
    return std::string(path, length > 0 ? std::size_t(length) : 0);
}

void record(const char* operation, const std::string& path, long offset = 0, const void* data = "", long bytes = 0) {
    static const long file = syscall(SYS_openat, AT_FDCWD, std::getenv("GNND_RECORD"), O_WRONLY | O_APPEND | O_CLOEXEC);
    std::string entry =
        std::string(operation) + " " + std::to_string(offset) + " " + std::to_string(bytes) + " " + path + "\n";
    entry.append(static_cast<const char*>(data), std::size_t(bytes));
    if (syscall(SYS_write, file, entry.data(), entry.size()) != long(entry.size())) std::abort();
}

/// Carries the call out and, where it succeeds, records it; no other operation comes between.
template <class Call, class Record>
long recorded(const std::string& path, const Call& call, const Record& note) {
    if (!is_recorded(path)) return call();
    const std::lock_guard lock(mutex());
    const long result = call();
    const int error = errno;
    if (result >= 0) note(result);
    errno = error;
    return result;
}

long open_recorded(const char* path, int flags, mode_t mode) {
    const bool there = syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0;
    return recorded(
        path, [&] { return syscall(SYS_openat, AT_FDCWD, path, flags, mode); },
        [&](long) {
            if (!there && (flags & O_CREAT)) record("create", path);
            if (there && (flags & O_TRUNC)) record("resize", path);
        });
}

long sync_recorded(int number, int descriptor) {
    const std::string path = path_of(descriptor);
    return recorded(
        path, [&] { return syscall(number, descriptor); }, [&](long) { record("sync", path); });
}

long remove_recorded(const char* path, int flags) {
    return recorded(
        path, [&] { return syscall(SYS_unlinkat, AT_FDCWD, path, flags); }, [&](long) { record("remove", path); });
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return int(open_recorded(path, flags, mode));
}

ssize_t write(int descriptor, const void* data, size_t bytes) {
    const std::string path = path_of(descriptor);
    return recorded(
        path, [&] { return syscall(SYS_write, descriptor, data, bytes); },
        [&](long written) {
            record("write", path, syscall(SYS_lseek, descriptor, 0, SEEK_CUR) - written, data, written);
        });
}

ssize_t pwrite(int descriptor, const void* data, size_t bytes, off_t offset) {
    const std::string path = path_of(descriptor);
    return recorded(
        path, [&] { return syscall(SYS_pwrite64, descriptor, data, bytes, offset); },
        [&](long written) { record("write", path, offset, data, written); });
}

int ftruncate(int descriptor, off_t size) noexcept {
    const std::string path = path_of(descriptor);
    return int(recorded(
        path, [&] { return syscall(SYS_ftruncate, descriptor, size); }, [&](long) { record("resize", path, size); }));
}

int fsync(int descriptor) {
    return int(sync_recorded(SYS_fsync, descriptor));
}

int fdatasync(int descriptor) {
    return int(sync_recorded(SYS_fdatasync, descriptor));
}

int rename(const char* from, const char* to) noexcept {
    return int(recorded(
        from, [&] { return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0); },
        [&](long) { record("rename", from, 0, to, long(std::string(to).size())); }));
}

int mkdir(const char* path, mode_t mode) noexcept {
    return int(recorded(
        path, [&] { return syscall(SYS_mkdirat, AT_FDCWD, path, mode); }, [&](long) { record("mkdir", path); }));
}

int unlink(const char* path) noexcept {
    return int(remove_recorded(path, 0));
}

int remove(const char* path) noexcept {
    const long result = remove_recorded(path, 0);
    return int(result < 0 && errno == EISDIR ? remove_recorded(path, AT_REMOVEDIR) : result);
}
}

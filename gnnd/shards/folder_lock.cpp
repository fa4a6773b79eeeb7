// SPDX-License-Identifier: MIT
#include "gnnd/shards/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "gnnd/error.h"
#include "gnnd/shards/system_error.h"

namespace gnnd::shards {
FolderLock::FolderLock(const std::string& folder) {
    const std::string path = folder + "/" + kLockName;
    // A link may lead to a file of somebody's, which is not to be overwritten.
    descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor_ < 0 && errno == ELOOP) throw IoError(path + ": is a symbolic link, expected a file of the build");
    if (descriptor_ < 0) fail(path, "cannot create", errno);
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
        const int error = errno;
        char text[32] = {};
        if (pread(descriptor_, text, sizeof text - 1, 0) < 0) text[0] = '\0';
        close(descriptor_);
        if (error != EWOULDBLOCK) fail(path, "cannot lock", error);
        throw IoError(folder + ": in use by process " + std::to_string(std::atoi(text)));
    }
    // Only told to others; that a full disk may leave it out does not matter.
    const std::string text = std::to_string(getpid()) + "\n";
    if (ftruncate(descriptor_, 0) != 0 || pwrite(descriptor_, text.data(), text.size(), 0) < 0) return;
}

FolderLock::~FolderLock() {
    close(descriptor_);
}

}  // namespace gnnd::shards

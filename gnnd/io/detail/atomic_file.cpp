#include "gnnd/io/detail/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "gnnd/error.h"

namespace gnnd::io::detail {

namespace {

constexpr std::size_t kBufferBytes = 1 << 20;
constexpr off_t kSendBytes = 16 << 20;

/// Where the path leads. Links that lead nowhere are followed too: the file is created where they point.
std::filesystem::path follow_links(std::filesystem::path path) {
    std::error_code error;
    for (int links = 0; links < 40; ++links) {  // as many as Linux follows
        const std::filesystem::path next = std::filesystem::read_symlink(path, error);
        if (error) break;
        path = path.parent_path() / next;
    }
    return path;
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
    struct stat status;
    const bool exists = stat(path.c_str(), &status) == 0;
    if (!exists && errno != ENOENT) fail("cannot create", errno);
    if (exists && S_ISDIR(status.st_mode)) fail("cannot write", EISDIR);
    if (exists && !S_ISREG(status.st_mode)) throw IoError(path + ": not a regular file, cannot be replaced as a whole");
    if (exists && faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) fail("cannot write", errno);

    const std::filesystem::path target = follow_links(path);
    if (target.filename().empty()) fail("cannot create", ENOENT);
    target_ = target;
    // Names end at 255 bytes; the target's own may be as long as that.
    const std::string stem = target.parent_path() / target.filename().string().substr(0, 200);
    static std::atomic<unsigned> counter{0};
    std::string name;
    do {
        name = stem + ".tmp." + std::to_string(getpid()) + "." + std::to_string(counter++);
        descriptor_ = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (descriptor_ < 0 && errno == EEXIST);
    if (descriptor_ < 0) fail("cannot create", errno);
    temporary_ = name;
    if (exists && fchmod(descriptor_, status.st_mode & 0777) != 0) fail("cannot set permissions", errno);
}

AtomicFile::~AtomicFile() {
    discard();
}

void AtomicFile::write(const void* data, std::size_t bytes) {
    const char* from = static_cast<const char*>(data);
    if (buffer_.size() + bytes > kBufferBytes) {
        write_through(buffer_.data(), buffer_.size());
        buffer_.clear();
    }
    if (bytes > kBufferBytes)
        write_through(from, bytes);
    else
        buffer_.append(from, bytes);
}

void AtomicFile::write_through(const char* data, std::size_t bytes) {
    while (bytes > 0) {
        const ssize_t written = ::write(descriptor_, data, std::min<std::size_t>(bytes, kSendBytes));
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail("cannot write", errno);
        data += written;
        bytes -= std::size_t(written);
        written_ += written;
        if (written_ - sent_ < kSendBytes) continue;
        // So that the disk does not wait for commit(). Only advice: errors come with fsync.
        sync_file_range(descriptor_, sent_, written_ - sent_, SYNC_FILE_RANGE_WRITE);
        sent_ = written_;
    }
}

void AtomicFile::commit() {
    write_through(buffer_.data(), buffer_.size());
    buffer_.clear();
    if (fsync(descriptor_) != 0) fail("cannot write", errno);
    const int descriptor = descriptor_;
    descriptor_ = -1;
    if (close(descriptor) != 0) fail("cannot write", errno);
    if (rename(temporary_.c_str(), target_.c_str()) != 0) fail("cannot rename " + temporary_, errno);
    temporary_.clear();
    // The new file is in place by now. Not every file system can flush a folder, so that is no reason to fail.
    const std::string folder = std::filesystem::path(target_).parent_path();
    const int folder_descriptor = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder_descriptor >= 0) {
        fsync(folder_descriptor);
        close(folder_descriptor);
    }
}

void AtomicFile::discard() noexcept {
    if (descriptor_ >= 0) close(descriptor_);
    descriptor_ = -1;
    if (!temporary_.empty()) unlink(temporary_.c_str());
    temporary_.clear();
}

void AtomicFile::fail(const std::string& what, int error) {
    discard();
    throw IoError(path_ + ": " + what + ": " + std::generic_category().message(error));
}

}  // namespace gnnd::io::detail

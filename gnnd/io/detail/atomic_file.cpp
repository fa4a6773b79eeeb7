// SPDX-License-Identifier: MIT
#include "gnnd/io/detail/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "gnnd/io/detail/signal_list.h"

namespace gnnd::io::detail {

namespace {

constexpr std::size_t kBufferBytes = 1 << 20;
constexpr off_t kSendBytes = 16 << 20;

/// The file that the path leads to. Links that lead nowhere are followed too: the file is created where they point.
std::filesystem::path follow_links(std::filesystem::path path) {
    std::error_code error;
    for (int links = 0; links < 40; ++links) {  // as many as Linux follows
        const std::filesystem::path next = std::filesystem::read_symlink(path, error);
        if (error) break;
        path = path.parent_path() / next;
    }
    return path;
}

/// Between the target's name and what makes a temporary one unique.
constexpr const char* kInfix = ".tmp.";

/// True if it is PID.NUMBER.
bool is_suffix(std::string_view text) {
    constexpr std::string_view kDigits = "0123456789";
    const std::size_t point = text.find('.');
    return point != 0 && point != std::string_view::npos && point + 1 < text.size() &&
           text.substr(0, point).find_first_not_of(kDigits) == std::string_view::npos &&
           text.substr(point + 1).find_first_not_of(kDigits) == std::string_view::npos;
}

/// Removes temporary files whose writers have ended: nobody has them locked.
void remove_leftovers(const std::filesystem::path& stem) {
    std::error_code error;
    const std::filesystem::path folder = stem.has_parent_path() ? stem.parent_path() : ".";
    const std::string start = stem.filename().string() + kInfix;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string name = entry->path().filename();
        if (!name.starts_with(start) || !is_suffix(std::string_view(name).substr(start.size()))) continue;
        const int descriptor = open(entry->path().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (descriptor < 0) continue;
        if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) unlink(entry->path().c_str());
        close(descriptor);
    }
}

/// \return 0 or the number of the error. That a file system cannot flush folders at all is none.
int flush_folder(const std::string& path) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return errno == EACCES ? 0 : errno;  // a folder may be writable, but not readable
    const int error = fsync(descriptor) == 0 ? 0 : errno;
    close(descriptor);
    return error == EINVAL || error == ENOTSUP || error == EROFS ? 0 : error;
}

SignalList<AtomicFile> temporaries;

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
    remove_leftovers(stem);
    create_temporary(stem);
    if (exists && fchmod(descriptor_, status.st_mode & 0777) != 0) fail("cannot set permissions", errno);
}

void AtomicFile::create_temporary(const std::string& stem) {
    static std::atomic<unsigned> counter{0};
    while (descriptor_ < 0) {
        temporary_ = stem + kInfix + std::to_string(getpid()) + "." + std::to_string(counter++);
        descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor_ < 0 && errno == EEXIST) continue;
        if (descriptor_ < 0) {
            const int error = errno;
            temporary_.clear();  // it is somebody else's, if it is there
            fail("cannot create", error);
        }
        // Before it is locked, another process may take it for a leftover and remove it. Not every file system has
        // locks; on one without nothing is removed.
        struct stat status;
        const bool locked = flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
        if ((locked || errno != EWOULDBLOCK) && fstat(descriptor_, &status) == 0 && status.st_nlink > 0) break;
        close(descriptor_);
        descriptor_ = -1;
    }
    temporaries.add(this);
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

void AtomicFile::write_at(std::size_t offset, const void* data, std::size_t bytes) {
    const char* from = static_cast<const char*>(data);
    while (bytes > 0) {
        const ssize_t written = pwrite(descriptor_, from, bytes, off_t(offset));
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail("cannot write", errno);
        from += written;
        offset += std::size_t(written);
        bytes -= std::size_t(written);
    }
}

void AtomicFile::commit() {
    write_through(buffer_.data(), buffer_.size());
    buffer_.clear();
    if (fsync(descriptor_) != 0) fail("cannot write", errno);
    // Renamed while it is open, and so locked: no other process takes it for a leftover.
    if (rename(temporary_.c_str(), target_.c_str()) != 0) fail("cannot rename " + temporary_, errno);
    temporaries.remove(this);
    temporary_.clear();
    discard();
    const std::string folder = std::filesystem::path(target_).parent_path();
    const int error = flush_folder(folder.empty() ? "." : folder);
    if (error != 0)
        throw NotDurable(path_ + ": was written, but its folder cannot be flushed to disk: " +
                         std::generic_category().message(error));
}

void AtomicFile::discard() noexcept {
    if (!temporary_.empty()) unlink(temporary_.c_str());
    temporaries.remove(this);
    temporary_.clear();
    if (descriptor_ >= 0) close(descriptor_);
    descriptor_ = -1;
}

void AtomicFile::fail(const std::string& what, int error) {
    discard();
    throw IoError(path_ + ": " + what + ": " + std::generic_category().message(error));
}

void remove_temporary_files() noexcept {
    temporaries.find([](const AtomicFile& file) {
        unlink(file.temporary_.c_str());
        return false;
    });
}

}  // namespace gnnd::io::detail

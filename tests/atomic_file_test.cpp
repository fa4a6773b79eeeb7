// SPDX-License-Identifier: MIT
// Files that are replaced as a whole or not at all.
#include "gnnd/io/detail/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>

#include "gnnd/error.h"
#include "tests/io_conditions.h"
#include "tests/temp_dir.h"

namespace gnnd::io::detail {
namespace {

using test::message_of;
using test::read_bytes;
using test::TempDir;
using test::write_bytes;

/// While it lives, folders cannot be flushed to disk, with that error.
class FlushFails {
  public:
    explicit FlushFails(int error) { error_ = error; }
    ~FlushFails() { error_ = 0; }
    FlushFails(const FlushFails&) = delete;
    FlushFails& operator=(const FlushFails&) = delete;
    static int fsync(int descriptor) {
        struct stat status;
        if (error_ == 0 || fstat(descriptor, &status) != 0 || !S_ISDIR(status.st_mode))
            return int(syscall(SYS_fsync, descriptor));
        errno = error_;
        return -1;
    }

  private:
    static inline int error_ = 0;
};

class AtomicFileTest : public ::testing::Test {
  protected:
    static void write(const std::string& path, const std::string& bytes) {
        AtomicFile file(path);
        file.write(bytes.data(), bytes.size());
        file.commit();
    }
    const TempDir dir_;
    const std::string path_ = dir_.file("file");
};

TEST_F(AtomicFileTest, AppearsOnlyWithCommit) {
    const std::string small = "small", large(3 << 20, 'x');
    {
        AtomicFile file(path_);
        EXPECT_EQ(file.path(), path_);
        for (const std::string& piece : {small, large, small}) file.write(piece.data(), piece.size());
        EXPECT_FALSE(std::filesystem::exists(path_));
        file.commit();
        EXPECT_TRUE(read_bytes(path_) == small + large + small);
        EXPECT_THROW(file.commit(), IoError);
    }
    {
        AtomicFile dropped(path_), other(path_);
        dropped.write("new", 3);
        EXPECT_EQ(dir_.entries(), 3u);
    }
    EXPECT_TRUE(read_bytes(path_) == small + large + small);
    EXPECT_EQ(dir_.entries(), 1u);
}

TEST_F(AtomicFileTest, AFailedWriteCannotBeCommitted) {
    write_bytes(path_, "old");
    AtomicFile file(path_);
    {
        const test::FullDisk disk(10);
        const std::string large(3 << 20, 'x');
        EXPECT_THROW(file.write(large.data(), large.size()), IoError);
    }
    file.write("new", 3);
    EXPECT_THROW(file.commit(), IoError);
    EXPECT_EQ(read_bytes(path_), "old");
    EXPECT_EQ(dir_.entries(), 1u);
}

TEST_F(AtomicFileTest, PlacesThatCannotBeWritten) {
    const auto message = [](const std::string& path) { return message_of<IoError>([&] { AtomicFile{path}; }); };
    const std::string missing = dir_.file("no/such/folder");
    EXPECT_EQ(message(missing), missing + ": cannot create: No such file or directory");
    EXPECT_EQ(message(""), ": cannot create: No such file or directory");
    EXPECT_EQ(message(dir_.path()), dir_.path() + ": cannot write: Is a directory");
    EXPECT_EQ(message("/dev/full"), "/dev/full: not a regular file, cannot be replaced as a whole");
    EXPECT_EQ(message("/proc/file"), "/proc/file: cannot create: No such file or directory");
    write_bytes(path_, "old");
    EXPECT_EQ(message(path_ + "/below"), path_ + "/below: cannot create: Not a directory");
    const std::string long_name = dir_.file(std::string(256, 'x'));
    EXPECT_EQ(message(long_name), long_name + ": cannot create: File name too long");
    EXPECT_EQ(dir_.entries(), 1u);
}

TEST_F(AtomicFileTest, ProtectedFileAndFolder) {
    write_bytes(path_, "old");
    const std::string folder = dir_.file("folder"), below = folder + "/file";
    std::filesystem::create_directory(folder);
    ASSERT_EQ(chmod(path_.c_str(), 0444), 0);
    ASSERT_EQ(chmod(folder.c_str(), 0555), 0);
    ASSERT_EQ(chmod(dir_.path().c_str(), 0777), 0);
    const test::OrdinaryUser user;
    if (!user.is_ordinary()) GTEST_SKIP() << "cannot let go of the superuser's rights";
    EXPECT_EQ(message_of<IoError>([&] { AtomicFile{path_}; }), path_ + ": cannot write: Permission denied");
    EXPECT_EQ(message_of<IoError>([&] { AtomicFile{below}; }), below + ": cannot create: Permission denied");
}

TEST_F(AtomicFileTest, Permissions) {
    const auto mode = [&] { return int(std::filesystem::status(path_).permissions()); };
    const mode_t old = umask(027);
    write(path_, "new");
    umask(old);
    EXPECT_EQ(mode(), 0640);
    ASSERT_EQ(chmod(path_.c_str(), 0600), 0);
    write(path_, "newer");
    EXPECT_EQ(mode(), 0600);
    EXPECT_EQ(read_bytes(path_), "newer");
}

TEST_F(AtomicFileTest, LinksStayAndTheirTargetIsReplaced) {
    std::filesystem::create_directory(dir_.file("folder"));
    std::filesystem::create_symlink("folder/target", dir_.file("link"));
    std::filesystem::create_symlink(dir_.file("link"), path_);
    for (const std::string bytes : {"created", "replaced"}) {
        write(path_, bytes);
        EXPECT_TRUE(std::filesystem::is_symlink(path_));
        EXPECT_TRUE(std::filesystem::is_symlink(dir_.file("link")));
        EXPECT_EQ(read_bytes(dir_.file("folder/target")), bytes);
    }
    std::filesystem::create_symlink("loop", dir_.file("loop"));
    EXPECT_EQ(message_of<IoError>([&] { AtomicFile{dir_.file("loop")}; }),
              dir_.file("loop") + ": cannot create: Too many levels of symbolic links");
}

TEST_F(AtomicFileTest, NamesAsLongAsTheSystemAllowsAndRelativeOnes) {
    const std::string name = dir_.file(std::string(255, 'x'));
    write(name, "new");
    EXPECT_EQ(read_bytes(name), "new");
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(dir_.path());
    write("relative", "new");
    std::filesystem::current_path(before);
    EXPECT_EQ(read_bytes(dir_.file("relative")), "new");
    EXPECT_EQ(dir_.entries(), 2u);
}

TEST_F(AtomicFileTest, AFolderThatCannotBeFlushedIsAnError) {
    write_bytes(path_, "old");
    {
        const FlushFails fails(EIO);
        EXPECT_EQ(message_of<NotDurable>([&] { write(path_, "new"); }),
                  path_ + ": was written, but its folder cannot be flushed to disk: Input/output error");
        EXPECT_EQ(read_bytes(path_), "new");
        EXPECT_EQ(dir_.entries(), 1u);
    }
    const FlushFails unsupported(EINVAL);  // of a file system that cannot do it at all
    write(path_, "newer");
    EXPECT_EQ(read_bytes(path_), "newer");
}

TEST_F(AtomicFileTest, LeftoversOfTheKilledAreRemoved) {
    const pid_t pid = fork();
    if (pid == 0) {
        AtomicFile file(path_);
        file.write("half", 4);
        kill(getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_EQ(dir_.entries(), 1u) << "what is to be removed";
    for (const char* other : {"file.tmp.1.x", "file.tmp.1", "file.tmp..1", "other.tmp.1.1", "file.tmp"})
        write_bytes(dir_.file(other), "not a temporary file of this name");
    {
        AtomicFile living(path_), second(path_);
        EXPECT_EQ(dir_.entries(), 5u + 2u);
        living.write("new", 3);
        living.commit();
        EXPECT_EQ(dir_.entries(), 5u + 2u) << "the second is still being written";
    }
    EXPECT_EQ(dir_.entries(), 5u + 1u);
    EXPECT_EQ(read_bytes(path_), "new");
}

TEST_F(AtomicFileTest, AProcessThatEndsRemovesWhatIsUnfinished) {
    AtomicFile first(path_), second(dir_.file("other"));
    EXPECT_EQ(dir_.entries(), 2u);
    remove_temporary_files();
    EXPECT_EQ(dir_.entries(), 0u);
}

}  // namespace
}  // namespace gnnd::io::detail

/// Instead of the C library's.
extern "C" int fsync(int descriptor) {
    return gnnd::io::detail::FlushFails::fsync(descriptor);
}

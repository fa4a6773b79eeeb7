// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "gnnd/shards/host_memory.h"
#include "tests/temp_dir.h"

namespace gnnd::shards {
namespace {

/// A machine of 64 GiB with control groups of its own.
class ShardHostMemory : public testing::Test {
  protected:
    ShardHostMemory() { put("/proc/meminfo", "MemTotal:       67108864 kB\nMemFree:  1 kB\n"); }
    void put(const std::string& path, const std::string& text) {
        const std::string file = dir_.path() + path;
        std::filesystem::create_directories(std::filesystem::path(file).parent_path());
        test::write_bytes(file, text);
    }
    void put_version_2(const std::string& group, const std::string& mounted = "/") {
        put("/proc/self/mountinfo",
            "22 1 0:20 / /proc rw - proc proc rw\n"
            "30 24 0:26 " +
                mounted + " /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
        put("/proc/self/cgroup", "0::" + group + "\n");
    }
    void put_version_1(const std::string& group, const std::string& mounted = "/") {
        put("/proc/self/mountinfo",
            "31 24 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
            "32 24 0:28 " +
                mounted + " /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
        put("/proc/self/cgroup", "5:cpu,cpuacct:/elsewhere\n4:memory:" + group + "\n0::/\n");
    }
    std::uint64_t memory() const { return host_memory(dir_.path()); }

    static constexpr std::uint64_t kGiB = std::uint64_t(1) << 30;
    const test::TempDir dir_;
};

TEST_F(ShardHostMemory, IsTheMachinesWithoutLimits) {
    EXPECT_EQ(memory(), 64 * kGiB);
    put_version_2("/user.slice/shell");
    EXPECT_EQ(memory(), 64 * kGiB) << "the groups have no files";
    put("/sys/fs/cgroup/user.slice/shell/memory.max", "max\n");
    EXPECT_EQ(memory(), 64 * kGiB);
    put_version_1("/user.slice");
    put("/sys/fs/cgroup/memory/user.slice/memory.limit_in_bytes", "9223372036854771712\n");
    EXPECT_EQ(memory(), 64 * kGiB);
}

TEST_F(ShardHostMemory, IsTheLeastOfVersion2) {
    put_version_2("/a/b/c");
    const std::string groups = "/sys/fs/cgroup";
    put(groups + "/a/b/c/memory.max", std::to_string(9 * kGiB) + "\n");
    EXPECT_EQ(memory(), 9 * kGiB);
    put(groups + "/a/memory.max", std::to_string(7 * kGiB) + "\n");
    put(groups + "/a/b/memory.max", "max\n");
    EXPECT_EQ(memory(), 7 * kGiB) << "of a group above";
    put(groups + "/a/b/memory.high", std::to_string(5 * kGiB) + "\n");
    EXPECT_EQ(memory(), 5 * kGiB) << "where it is throttled";
    put(groups + "/a/x/memory.max", "1000\n");
    EXPECT_EQ(memory(), 5 * kGiB) << "of a group beside";
    put(groups + "/memory.max", std::to_string(3 * kGiB) + "\n");
    EXPECT_EQ(memory(), 3 * kGiB) << "what a container sees as the top";
}

TEST_F(ShardHostMemory, IsTheLeastOfVersion1) {
    put_version_1("/docker/1234");
    const std::string groups = "/sys/fs/cgroup/memory";
    put(groups + "/docker/1234/memory.limit_in_bytes", std::to_string(6 * kGiB) + "\n");
    EXPECT_EQ(memory(), 6 * kGiB);
    put(groups + "/docker/memory.limit_in_bytes", std::to_string(4 * kGiB) + "\n");
    EXPECT_EQ(memory(), 4 * kGiB);
}

// A container without a name space of its own is told the whole path, of which it sees the end alone.
TEST_F(ShardHostMemory, IsFoundInAContainer) {
    put_version_1("/docker/1234/inner", "/docker/1234");
    const std::string groups = "/sys/fs/cgroup/memory";
    put(groups + "/memory.limit_in_bytes", std::to_string(6 * kGiB) + "\n");
    EXPECT_EQ(memory(), 6 * kGiB);
    put(groups + "/inner/memory.limit_in_bytes", std::to_string(2 * kGiB) + "\n");
    EXPECT_EQ(memory(), 2 * kGiB);
    put_version_2("/../elsewhere");
    put("/sys/fs/cgroup/memory.max", std::to_string(kGiB) + "\n");
    EXPECT_EQ(memory(), kGiB);
}

}  // namespace
}  // namespace gnnd::shards

// SPDX-License-Identifier: MIT
#include "gnnd/shards/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <vector>

namespace gnnd::shards {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

/// A number of bytes that stands alone in a file; kNoLimit for "max", or where there is no such file.
std::uint64_t limit_in(const std::filesystem::path& file) {
    std::ifstream in(file);
    std::uint64_t bytes = 0;
    return in >> bytes ? bytes : kNoLimit;
}

bool contains(const std::string& list, const std::string& name) {
    return ("," + list + ",").find("," + name + ",") != std::string::npos;
}

/// A hierarchy of control groups that can limit memory, as /proc/self/mountinfo tells: where it is mounted, and which
/// of its groups is seen there.
struct Hierarchy {
    int version;
    std::string folder, group;
};

std::vector<Hierarchy> mounted_hierarchies(const std::string& root) {
    std::vector<Hierarchy> all;
    std::ifstream mounts(root + "/proc/self/mountinfo");
    for (std::string line; std::getline(mounts, line);) {
        // "36 35 98:0 GROUP FOLDER OPTIONS ... - TYPE SOURCE OPTIONS"
        const std::size_t separator = line.find(" - ");
        if (separator == std::string::npos) continue;
        std::istringstream before(line), after(line.substr(separator + 3));
        std::string ignored, group, folder, type, options;
        before >> ignored >> ignored >> ignored >> group >> folder;
        after >> type >> ignored >> options;
        if (type == "cgroup2") all.push_back({2, folder, group});
        if (type == "cgroup" && contains(options, "memory")) all.push_back({1, folder, group});
    }
    return all;
}

/// The process's group in the hierarchy; empty where there is none.
std::string group_of_process(int version, const std::string& root) {
    std::ifstream groups(root + "/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        // "NUMBER:CONTROLLERS:GROUP", of version 2 "0::GROUP"
        const std::size_t first = line.find(':'), second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        if (version == 2 ? controllers.empty() : contains(controllers, "memory")) return line.substr(second + 1);
    }
    return "";
}

/// The least limit of the process's group and of those above it that can be seen.
std::uint64_t limit_of(const Hierarchy& hierarchy, const std::string& root) {
    namespace fs = std::filesystem;
    const fs::path top = fs::path(root + hierarchy.folder).lexically_normal();
    const fs::path below =
        fs::path(group_of_process(hierarchy.version, root)).lexically_relative(hierarchy.group).lexically_normal();
    // In a container the group may be told as seen from outside of what is mounted: then its own group is at the top.
    const bool is_below = !below.empty() && below != "." && *below.begin() != "..";
    std::uint64_t least = kNoLimit;
    for (fs::path folder = is_below ? top / below : top;; folder = folder.parent_path()) {
        for (const char* file : {"memory.max", "memory.high"})
            if (hierarchy.version == 2) least = std::min(least, limit_in(folder / file));
        if (hierarchy.version == 1) least = std::min(least, limit_in(folder / "memory.limit_in_bytes"));
        if (folder == top || !folder.has_relative_path()) return least;
    }
}

/// The machine's.
std::uint64_t physical_memory(const std::string& root) {
    std::ifstream info(root + "/proc/meminfo");
    std::string name;
    std::uint64_t kilobytes = 0;
    if (info >> name >> kilobytes && name == "MemTotal:") return kilobytes * 1024;
    return std::uint64_t(sysconf(_SC_PHYS_PAGES)) * std::uint64_t(sysconf(_SC_PAGESIZE));
}

}  // namespace

std::uint64_t host_memory(const std::string& root) {
    std::uint64_t bytes = physical_memory(root);
    for (const Hierarchy& hierarchy : mounted_hierarchies(root)) bytes = std::min(bytes, limit_of(hierarchy, root));
    return bytes;
}

}  // namespace gnnd::shards

// SPDX-License-Identifier: MIT
#pragma once
/// \file process_memory.h
/// The system's account of this process's memory.

#include <cstdint>
#include <fstream>
#include <string>

namespace gnnd::detail {

/// One field of /proc/self/status in bytes, "VmHWM" for instance, the most that was in use so far; 0 where the system
/// does not tell.
inline std::int64_t process_memory(const std::string& field) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with(field + ":")) return std::stoll(line.substr(field.size() + 1)) * 1024;
    return 0;
}

}  // namespace gnnd::detail

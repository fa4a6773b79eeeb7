// SPDX-License-Identifier: MIT
#pragma once
/// \file host_memory.h
/// The host memory that this process may use.

#include <cstdint>
#include <string>

namespace gnnd::shards {

/// The machine's memory in bytes, or the least that a control group of the process, or one above it, allows (memory.max
/// and memory.high of version 2, memory.limit_in_bytes of version 1).
/// \param root  where proc and sys are looked for, a folder that stands in for "/" in tests
std::uint64_t host_memory(const std::string& root = "");

}  // namespace gnnd::shards

// SPDX-License-Identifier: MIT
#pragma once
/// \file print.h
/// Prints the lines of `verbose`.

#include <cstdio>
#include <string>

namespace faiss_ext::detail {

/// To standard output, as FAISS's indexes do, and at once.
inline void print_line(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

}  // namespace faiss_ext::detail

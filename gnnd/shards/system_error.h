// SPDX-License-Identifier: MIT
#pragma once
/// \file system_error.h
/// Turns an errno into an IoError that names the file.

#include <string>
#include <system_error>

#include "gnnd/error.h"

namespace gnnd::shards {

/// \param error  an errno
[[noreturn]] inline void fail(const std::string& path, const std::string& what, int error) {
    throw IoError(path + ": " + what + ": " + std::generic_category().message(error));
}

}  // namespace gnnd::shards

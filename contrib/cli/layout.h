// SPDX-License-Identifier: MIT
#pragma once
/// The help's layout: no line is wider than a terminal.

#include <CLI/CLI.hpp>
#include <cstddef>
#include <memory>
#include <string>

namespace cli {

/// Columns of a terminal, where nothing else is known of it.
inline constexpr std::size_t kColumns = 80;

/// Prose whose lines are filled anew, up to so many columns. Examples keep their lines: those that begin with
/// "Example:" or a space.
std::string filled(const std::string& prose, std::size_t columns = kColumns);

/// The formatter lays out the help of the application and of its commands.
std::shared_ptr<CLI::FormatterBase> narrow_help();

}  // namespace cli

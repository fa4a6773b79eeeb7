// SPDX-License-Identifier: MIT
#pragma once
/// A user reads this when a command fails: one line, without names of functions and classes.

#include <CLI/CLI.hpp>
#include <exception>
#include <string>

namespace cli {

/// Of a command line that is wrong: with the name that may have been meant, and where to read on.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

/// The library's "BuildParams::list_size (0: chosen from k) = 3, allowed ..." as "--list-size 3: allowed ..."; empty
/// for what does not speak of a parameter.
std::string parameter_message(const std::string& error);

/// Of anything else that was thrown.
std::string message_of(const std::exception& error);

/// The text on one line, with what is no printable character, as names in a damaged file may hold, shown as \x1b.
std::string printable(const std::string& text);

}  // namespace cli

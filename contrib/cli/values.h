// SPDX-License-Identifier: MIT
#pragma once
/// The options whose values are numbers, sizes and names of files. They are read here and nowhere else, so that every
/// command takes and refuses the same, in the same words, as wrong usage.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <type_traits>

namespace cli {

/// "010" is ten. T is int, std::int64_t, std::uint64_t or std::size_t.
/// \param names  as CLI11 takes them: "-k,--k"; messages name the first
template <class T>
CLI::Option* add_whole(CLI::App& app, const std::string& names, T& value, std::type_identity_t<T> low,
                       std::type_identity_t<T> high, const std::string& help);

/// T is float or double. NaN is refused.
template <class T>
CLI::Option* add_real(CLI::App& app, const std::string& names, T& value, std::type_identity_t<T> low,
                      std::type_identity_t<T> high, const std::string& help);

/// Bytes as 1000000, 2e9, 1.5GB or 8GiB, where K, M, G and T count in steps of 1,024 with and without the i, as ever.
/// `help` says what 0 means.
CLI::Option* add_bytes(CLI::App& app, const std::string& names, std::int64_t& value, const std::string& help);

/// Text that may not be empty, as the name of a file to write may not.
/// \param type  of the value, in the help
CLI::Option* add_name(CLI::App& app, const std::string& names, std::string& value, const std::string& type,
                      const std::string& help);

}  // namespace cli

// SPDX-License-Identifier: MIT
#pragma once
/// The options whose values are numbers, sizes, names and names of files. They are read here and nowhere else, so that
/// every command takes and refuses the same, in the same words, as wrong usage.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "gnnd/error.h"

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

/// Notes for a shell's completion that the option takes these values. \return the option
CLI::Option* offer(CLI::Option* option, const std::vector<std::string>& values);
/// The values that were noted; none for an option that takes numbers or files.
std::vector<std::string> offered(CLI::Option& option);

/// An option whose value is one of an enumeration's names. `parse` throws gnnd::InvalidArgument for other texts, which
/// becomes a usage error.
/// \param names  those that `parse` takes
template <class T, class Parse>
CLI::Option* add_parsed(CLI::App& app, const std::string& flag, T& value, Parse parse, const std::string& default_text,
                        const std::vector<std::string>& names, const std::string& help) {
    const auto assign = [flag, &value, parse](const std::string& text) {
        try {
            value = parse(text);
        } catch (const gnnd::InvalidArgument& error) {
            throw CLI::ValidationError(flag, error.what());
        }
    };
    CLI::Option* option = app.add_option_function<std::string>(flag, assign, help);
    return offer(option->type_name("NAME")->default_str(default_text), names);
}

/// An option, or an argument, whose value is one of `names`. \param what  the names are called in messages: "type"
CLI::Option* add_one_of(CLI::App& app, const std::string& flag, std::string& value, const std::string& what,
                        const std::vector<std::string>& names, const std::string& help);

/// "a, b, c"
std::string listed(const std::vector<std::string>& names);
/// The names in "a, b, c", of which one may be empty.
std::vector<std::string> words_of_list(const std::string& list, std::string_view separator = ", ");

/// Text that may not be empty, as the name of a file may not.
/// \param type  of the value, in the help
CLI::Option* add_name(CLI::App& app, const std::string& names, std::string& value, const std::string& type,
                      const std::string& help);

}  // namespace cli

// SPDX-License-Identifier: MIT
#include "values.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "faiss_part.h"
#include "gnnd/detail/numbers.h"

namespace cli {

using gnnd::detail::number_text;
using gnnd::detail::read_number;

namespace {

/// \param parse  gives a value or nothing; \param allowed  ends the sentence "NAME VALUE: allowed ..."
template <class T, class Parse>
CLI::Option* add_value(CLI::App& app, const std::string& names, T& value, const Parse& parse, const std::string& type,
                       const std::string& default_text, const std::string& allowed, const std::string& help) {
    const auto assign = [name = names.substr(0, names.find(',')), &value, parse, allowed](const std::string& text) {
        const auto parsed = parse(text);
        if (!parsed) throw CLI::ValidationError(name + " " + (text.empty() ? "''" : text) + ": allowed " + allowed);
        value = *parsed;
    };
    return app.add_option_function<std::string>(names, assign, help)->type_name(type)->default_str(default_text);
}

/// Reads a number of a range, which NaN is not of.
template <class T>
auto within(T low, T high) {
    return [low, high](const std::string& text) {
        const std::optional<T> parsed = read_number<T>(text);
        return parsed && *parsed >= low && *parsed <= high ? parsed : std::nullopt;
    };
}

}  // namespace

template <class T>
CLI::Option* add_whole(CLI::App& app, const std::string& names, T& value, std::type_identity_t<T> low,
                       std::type_identity_t<T> high, const std::string& help) {
    return add_value(app, names, value, within<T>(low, high), "INT", std::to_string(value),
                     "are whole numbers from " + std::to_string(low) + " to " + std::to_string(high), help);
}

template <class T>
CLI::Option* add_real(CLI::App& app, const std::string& names, T& value, std::type_identity_t<T> low,
                      std::type_identity_t<T> high, const std::string& help) {
    return add_value(app, names, value, within<T>(low, high), "NUMBER", number_text(float(value)),
                     "are numbers from " + number_text(float(low)) + " to " + number_text(float(high)), help);
}

template CLI::Option* add_whole(CLI::App&, const std::string&, int&, int, int, const std::string&);
template CLI::Option* add_whole(CLI::App&, const std::string&, std::int64_t&, std::int64_t, std::int64_t,
                                const std::string&);
template CLI::Option* add_whole(CLI::App&, const std::string&, std::uint64_t&, std::uint64_t, std::uint64_t,
                                const std::string&);
template CLI::Option* add_real(CLI::App&, const std::string&, float&, float, float, const std::string&);
template CLI::Option* add_real(CLI::App&, const std::string&, double&, double, double, const std::string&);

CLI::Option* add_bytes(CLI::App& app, const std::string& names, std::int64_t& value, const std::string& help) {
    return add_value(app, names, value, gnnd::detail::read_bytes, "BYTES", std::to_string(value),
                     std::string("are ") + gnnd::detail::kSizes, help);
}

std::string listed(const std::vector<std::string>& names) {
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    return list;
}

std::vector<std::string> words_of_list(const std::string& list, std::string_view separator) {
    std::vector<std::string> words;
    for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + separator.size()) {
        end = list.find(separator, begin);
        words.push_back(list.substr(begin, end - begin));
    }
    return words;
}

/// Of what a program can hang on an option, CLI11 has checks only: this one accepts all, and its name is the list.
CLI::Option* offer(CLI::Option* option, const std::vector<std::string>& values) {
    return option->check(CLI::Validator([](std::string&) { return std::string(); }, "", listed(values)));
}

std::vector<std::string> offered(CLI::Option& option) {
    try {
        return words_of_list(option.get_validator(0)->get_name());
    } catch (const CLI::OptionNotFound&) {  // it has no check
        return {};
    }
}

CLI::Option* add_one_of(CLI::App& app, const std::string& flag, std::string& value, const std::string& what,
                        const std::vector<std::string>& names, const std::string& help) {
    const auto parse = [what, names](const std::string& text) {
        if (std::find(names.begin(), names.end(), text) == names.end())
            throw gnnd::InvalidArgument("unknown " + what + " '" + text + "'; known are " + listed(names) +
                                        unknown_without_faiss());
        return text;
    };
    return add_parsed(app, flag, value, parse, value, names, help);
}

CLI::Option* add_name(CLI::App& app, const std::string& names, std::string& value, const std::string& type,
                      const std::string& help) {
    const auto parse = [](const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); };
    return add_value(app, names, value, parse, type, "", "is a name, which may not be empty", help);
}

}  // namespace cli

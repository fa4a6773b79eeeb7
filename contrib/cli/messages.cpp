// SPDX-License-Identifier: MIT
#include "messages.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>
#include <vector>

#include "faiss_part.h"

namespace cli {

namespace {

/// Small letters without dashes in front, and without a value behind.
std::string bare(std::string_view name) {
    name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
    std::string text(name.substr(0, name.find('=')));
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return char(std::tolower(c)); });
    return text;
}

/// Letters to insert, to leave out, to change or to swap with the next one (optimal string alignment distance).
std::size_t typing_errors(const std::string& a, const std::string& b) {
    std::vector<std::vector<std::size_t>> errors(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i)
        for (std::size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                errors[i][j] = i + j;
                continue;
            }
            errors[i][j] = std::min(
                {errors[i - 1][j] + 1, errors[i][j - 1] + 1, errors[i - 1][j - 1] + std::size_t(a[i - 1] != b[j - 1])});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                errors[i][j] = std::min(errors[i][j], errors[i - 2][j - 2] + 1);
        }
    return errors[a.size()][b.size()];
}

/// "; did you mean NAME?", or nothing where no name is near.
std::string suggestion(const std::string& typed, const std::vector<std::string>& names) {
    const std::string given = bare(typed);
    std::string best;
    std::size_t fewest = 1 + given.size() / 3;
    for (const std::string& name : names) {
        const std::string known = bare(name);
        const bool begun = given.size() >= 3 && known.starts_with(given);
        const std::size_t errors = begun ? 0 : typing_errors(given, known);
        if (errors >= fewest) continue;
        fewest = errors;
        best = name;
    }
    return best.empty() ? "" : "; did you mean " + best + "?";
}

std::vector<std::string> option_names(const CLI::App& command) {
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options()) {
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
        for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    }
    return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
        names.push_back(command->get_name());
    return names;
}

bool looks_like_option(const std::string& argument) {
    return argument.size() > 1 && argument[0] == '-';
}

/// CLI11's words for too few or too many values of an option, in the user's.
std::string count_message(const std::string& text) {
    const std::string name = text.substr(0, text.find(':'));
    if (text.ends_with(" missing") || text.find("At least") != std::string::npos) return name + " needs a value";
    if (text.find("At Most 1 ") != std::string::npos) return name + " is given more than once";
    return text;
}

/// The same for a flag with a value that is neither true nor false, "Could not convert: NAME = VALUE".
std::string flag_message(const std::string& text) {
    const std::size_t name = text.find(": "), value = text.find(" = ");
    if (name == std::string::npos || value == std::string::npos || value < name) return text;
    return text.substr(name + 2, value - name - 2) + " " + text.substr(value + 3) + ": allowed are true and false";
}

}  // namespace

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
    const std::vector<CLI::App*> given = app.get_subcommands();
    // What stands before the command is the application's own.
    const bool before = given.empty() || !app.remaining().empty();
    const CLI::App& command = before ? app : *given.front();
    const std::string where = " (see `" + app.get_name() + (before ? "" : " " + command.get_name()) + " --help`)";
    std::vector<std::string> unknown = command.remaining();
    const bool too_little = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
    const bool too_much = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    // Behind a -- there are no options, nor does one behind a command that is none say anything.
    const auto mark = std::find(unknown.begin(), unknown.end(), "--");
    const auto end = given.empty() && mark != unknown.begin() ? unknown.begin() + 1 : mark;
    const auto option = std::find_if(unknown.begin(), end, looks_like_option);
    if ((too_little || too_much) && option != end)
        return "no such option: " + *option + suggestion(*option, option_names(command)) + where;
    const bool no_word = unknown.empty() || mark == unknown.begin();
    if ((too_little || too_much) && before && !no_word)
        return "no such command: " + unknown[0] + suggestion(unknown[0], command_names(app)) + where;
    if (mark != unknown.end()) unknown.erase(mark);
    if (too_much && !before && !unknown.empty()) return "one argument too many: " + unknown[0] + where;
    if (given.empty() && too_little) return "a command is required" + where;
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) return count_message(error.what()) + where;
    if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) return flag_message(error.what()) + where;
    return error.what() + where;
}

std::string parameter_message(const std::string& error) {
    const std::size_t colons = error.find("Params::"), equals = error.find(" = ");
    if (colons == std::string::npos || error.find(' ') < colons || equals == std::string::npos) return "";
    std::string name = error.substr(colons + 8, error.find_first_of(" (.", colons) - colons - 8);
    std::replace(name.begin(), name.end(), '_', '-');
    std::string rest = error.substr(equals + 3);
    if (const std::size_t comma = rest.find(", "); comma != std::string::npos) rest.replace(comma, 1, ":");
    return (name == "k" ? "-k " : "--" + name + " ") + rest;
}

std::string message_of(const std::exception& error) {
    if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return "out of memory";
    if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
        return file->path1().string() + ": " + file->code().message();
    if (const auto* system = dynamic_cast<const std::system_error*>(&error);
        system != nullptr && system->code() == std::errc::resource_unavailable_try_again)
        return "cannot start a thread: " + system->code().message();
    return faiss_message(error).value_or(error.what());
}

std::string printable(const std::string& text) {
    std::string shown;
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    // In UTF-8 the other half of the control characters, as the short form of ESC [, are c2 80 to c2 9f.
    const auto begins_control = [&](std::size_t i) {
        return byte(i) == 0xc2 && byte(i + 1) >= 0x80 && byte(i + 1) <= 0x9f;
    };
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\n') {
            shown += ' ';
        } else if (byte(i) < 0x20 || byte(i) == 0x7f || begins_control(i) || (i > 0 && begins_control(i - 1))) {
            std::array<char, 5> code{};
            std::snprintf(code.data(), code.size(), "\\x%02x", byte(i));
            shown += code.data();
        } else {
            shown += text[i];
        }
    }
    return shown;
}

}  // namespace cli

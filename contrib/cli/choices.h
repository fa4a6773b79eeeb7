// SPDX-License-Identifier: MIT
#pragma once
/// Options for what faiss_ext offers by name: the graph builders and the graph indexes. Their names, their help and
/// which option goes with which come from its lists.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "faiss_ext/options.h"
#include "values.h"

namespace cli {

/// The option that chooses, --method or --type. \param help  goes before what the choices are
template <class Make>
CLI::Option* add_choice(CLI::App& app, const std::string& flag, std::string& value,
                        const std::vector<faiss_ext::Choice<Make>>& choices, std::string help) {
    std::vector<std::string> names;
    for (const auto& choice : choices) {
        help += (names.empty() ? "" : ", ") + choice.name + " (" + choice.help + ")";
        names.push_back(choice.name);
    }
    return add_one_of(app, flag, value, flag.substr(2), names, help);
}

/// The choices that have an option of that name, "a, b: ".
template <class Make>
std::string owners_of(const std::string& option, const std::vector<faiss_ext::Choice<Make>>& choices) {
    std::string owners;
    for (const auto& choice : choices)
        if (choice.option(option) != nullptr) owners += (owners.empty() ? "" : ", ") + choice.name;
    return owners + ": ";
}

/// The options of all choices, each once, into `values`, which then holds the defaults. Those that the command has
/// already are left as they are, but their help says what they mean to the choice.
template <class Make>
void add_choice_options(CLI::App& app, const std::vector<faiss_ext::Choice<Make>>& choices,
                        faiss_ext::OptionValues& values) {
    for (const auto& choice : choices)
        for (const faiss_ext::Option& option : choice.options) {
            if (!values.try_emplace(option.name, option.value).second) continue;
            const std::string flag = "--" + option.name;
            CLI::Option* present = app.get_option_no_throw(flag);
            if (present != nullptr) {
                if (present->get_description() != option.help)
                    present->description(present->get_description() + "; " + choice.name + ": " + option.help + ", " +
                                         std::to_string(option.value) + " by default");
            } else if (option.flag) {
                app.add_flag(flag, values[option.name], owners_of(option.name, choices) + option.help);
            } else {
                add_whole(app, flag, values[option.name], option.least, option.most,
                          owners_of(option.name, choices) + option.help);
            }
        }
}

/// Of all values those of options that the choice has.
template <class Make>
faiss_ext::OptionValues values_for(const faiss_ext::Choice<Make>& choice, const faiss_ext::OptionValues& values) {
    faiss_ext::OptionValues own;
    for (const auto& [name, value] : values)
        if (choice.option(name) != nullptr) own[name] = value;
    return own;
}

/// Refuses options of choices that were not chosen.
/// \param chooser  "--method"
/// \param first    options of the first choice that its list does not name
/// \throws CLI::ValidationError
template <class Make>
faiss_ext::Choice<Make> require_own_options(const CLI::App& app, const std::string& chooser, const std::string& chosen,
                                            const std::vector<faiss_ext::Choice<Make>>& choices,
                                            const std::vector<std::string>& first = {}) {
    const faiss_ext::Choice<Make> choice = faiss_ext::choose(choices, chooser, chosen, {});
    const auto require = [&](const std::string& flag, bool fits) {
        if (!fits && app.get_option(flag)->count() > 0)
            throw CLI::ValidationError(flag, "has no meaning for " + chooser + " " + chosen);
    };
    const bool is_first = choice.name == choices.front().name;
    for (const std::string& flag : first) require(flag, is_first || choice.option(flag.substr(2)) != nullptr);
    for (const auto& other : choices)
        for (const faiss_ext::Option& option : other.options) {
            const std::string flag = "--" + option.name;
            const bool of_first = std::find(first.begin(), first.end(), flag) != first.end();
            require(flag, choice.option(option.name) != nullptr || (is_first && of_first));
        }
    const CLI::Option* device = app.get_option_no_throw("--device");
    if (!choice.gpu && device != nullptr && device->count() > 0 && device->as<std::string>().starts_with("cuda"))
        throw CLI::ValidationError("--device", chosen + " runs on the CPU only");
    return choice;
}

}  // namespace cli

// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file options.h
/// Things that are chosen by name, and their options, for programs that offer the choice.

#include <faiss/impl/FaissException.h>

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace faiss_ext {

/// A whole number with a name.
struct Option {
    std::string name;                                     ///< "nlist"
    std::string help;                                     ///< half a sentence
    std::int64_t value = 0;                               ///< the default
    std::int64_t least = 0;                               ///< smallest value that is allowed
    std::int64_t most = std::numeric_limits<int>::max();  ///< largest one
    bool flag = false;                                    ///< 0 or 1
};

/// Values by the names of options; an option without one keeps its default.
using OptionValues = std::map<std::string, std::int64_t>;

/// Sets `value` where there is one of that name.
template <class T>
void take(const OptionValues& values, const std::string& name, T& value) {
    const auto found = values.find(name);
    if (found != values.end()) value = T(found->second);
}

/// One of several things that do alike, chosen by name.
template <class Make>
struct Choice {
    std::string name;             ///< as programs take it: "ivfpq"
    std::string help;             ///< half a sentence
    bool gpu = false;             ///< true where it uses a GPU where one is given
    std::vector<Option> options;  ///< that `make` looks at
    Make make;                    ///< makes one, of the values of its options

    /// The option of that name; null where there is none.
    const Option* option(const std::string& wanted) const {
        for (const Option& option : options)
            if (option.name == wanted) return &option;
        return nullptr;
    }
};

/// "a, b, c", of choices or options.
template <class T>
std::string names_of(const std::vector<T>& all) {
    std::string names;
    for (const T& one : all) names += (names.empty() ? "" : ", ") + one.name;
    return names;
}

/// The choice of that name.
/// \param what  a choice is called in messages, "graph builder"
/// \throws faiss::FaissException, unless there is one and it has options of the values' names, that lists what there is
template <class Make>
const Choice<Make>& choose(const std::vector<Choice<Make>>& choices, const std::string& what, const std::string& name,
                           const OptionValues& values) {
    for (const Choice<Make>& choice : choices) {
        if (choice.name != name) continue;
        for (const auto& [wanted, value] : values)
            if (choice.option(wanted) == nullptr)
                throw faiss::FaissException(what + " " + name + " has no option '" + wanted + "'; it has " +
                                            (choice.options.empty() ? "none" : names_of(choice.options)));
        return choice;
    }
    throw faiss::FaissException("unknown " + what + " '" + name + "'; there are " + names_of(choices));
}

}  // namespace faiss_ext

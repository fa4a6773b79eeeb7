// SPDX-License-Identifier: MIT
#pragma once
/// \file names.h
/// Enumerations with names, as the command line and files spell them.

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "gnnd/error.h"

namespace gnnd {

/// The names of an enumeration E, each written once. Made from a list macro, or by name_table().
template <class E, std::size_t N>
struct NameTable {
    std::string_view what;  ///< what the enumeration is called in error messages
    std::array<std::pair<E, std::string_view>, N> entries;

    std::string_view name_of(E value) const {
        for (const auto& [entry, name] : entries)
            if (entry == value) return name;
        throw InvalidArgument("unknown " + std::string(what) + " number " + std::to_string(int(value)));
    }

    std::optional<E> find(std::string_view text) const {
        for (const auto& [entry, name] : entries)
            if (name == text) return entry;
        return std::nullopt;
    }

    /// "a, b, c"
    std::string known() const {
        std::string known;
        for (const auto& [entry, name] : entries) known += (known.empty() ? "" : ", ") + std::string(name);
        return known;
    }

    /// \throws InvalidArgument that lists the known names
    E parse(std::string_view text) const {
        if (const auto entry = find(text)) return *entry;
        throw InvalidArgument("unknown " + std::string(what) + " '" + std::string(text) + "'; known are " + known());
    }
};

/// The names of an enumeration whose numbers are 0, 1 and so on.
/// \tparam Spell  a switch without a default, so that the compiler tells of an enumerator without a name; for numbers
///                that are none it returns an empty one
template <class E, std::string_view (*Spell)(E)>
constexpr auto name_table(std::string_view what) {
    constexpr std::size_t count = [] {
        std::size_t known = 0;
        while (!Spell(E(known)).empty()) ++known;
        return known;
    }();
    NameTable<E, count> table{what, {}};
    for (std::size_t i = 0; i < count; ++i) table.entries[i] = {E(i), Spell(E(i))};
    return table;
}

}  // namespace gnnd

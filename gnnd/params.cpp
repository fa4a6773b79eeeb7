// SPDX-License-Identifier: MIT
#include "gnnd/params.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <type_traits>

#include "gnnd/detail/checks.h"
#include "gnnd/detail/numbers.h"
#include "gnnd/detail/params_table.h"
#include "gnnd/detail/resolve.h"
#include "gnnd/names.h"

namespace gnnd {
namespace {

constexpr std::string_view spell(Update value) {
    switch (value) {
        case Update::automatic:
            return "auto";
        case Update::selective:
            return "selective";
        case Update::all:
            return "all";
    }
    return {};
}
constexpr std::string_view spell(Locks value) {
    switch (value) {
        case Locks::segment:
            return "segment";
        case Locks::list:
            return "list";
    }
    return {};
}
constexpr std::string_view spell(Codes value) {
    switch (value) {
        case Codes::automatic:
            return "auto";
        case Codes::none:
            return "none";
        case Codes::int8:
            return "int8";
        case Codes::pca:
            return "pca";
    }
    return {};
}

constexpr auto kUpdateNames = name_table<Update, spell>("update");
constexpr auto kLocksNames = name_table<Locks, spell>("locks");
constexpr auto kCodesNames = name_table<Codes, spell>("codes");
#define GNND_INIT(name) {Init::name, #name},
constexpr NameTable<Init, kInits.size()> kInitNames{"init", {{GNND_INITS(GNND_INIT)}}};
#undef GNND_INIT

/// Initialises whatever a field is.
struct Anything {
    template <class T>
    constexpr operator T() const;
};

template <class... Values>
constexpr int count_fields() {
    if constexpr (requires { BuildParams{Values{}..., Anything{}}; })
        return count_fields<Values..., Anything>();
    else
        return sizeof...(Values);
}

constexpr int count_lines() {
    int lines = 0;
    detail::for_each_field([&](const auto&) { ++lines; });
    return lines;
}

static_assert(count_lines() == count_fields(),
              "every field of BuildParams has one line in for_each_field() of detail/params_table.h");

}  // namespace

std::string_view name_of(Update update) {
    return kUpdateNames.name_of(update);
}
std::string_view name_of(Locks locks) {
    return kLocksNames.name_of(locks);
}
std::string_view name_of(Codes codes) {
    return kCodesNames.name_of(codes);
}
std::string_view name_of(Init init) {
    return kInitNames.name_of(init);
}
Update parse_update(std::string_view name) {
    return kUpdateNames.parse(name);
}
Locks parse_locks(std::string_view name) {
    return kLocksNames.parse(name);
}
Codes parse_codes(std::string_view name) {
    return kCodesNames.parse(name);
}
Init parse_init(std::string_view name) {
    return kInitNames.parse(name);
}
void throw_unknown(Init init) {
    throw InvalidArgument("unknown init number " + std::to_string(int(init)));
}

void BuildParams::validate() const {
    detail::for_each_field([&]<class T>(const detail::Field<T>& field) {
        const T value = field.of(*this);
        if constexpr (std::is_enum_v<T>) {
            name_of(value);  // throws
        } else if constexpr (std::is_same_v<T, Device>) {
            detail::check_range("BuildParams", "device.index", value.index, 0, 4096);
        } else if constexpr (!std::is_same_v<T, bool>) {
            const bool zero = field.zero != nullptr;
            if (zero && value == T(0)) return;
            const std::string name = zero ? field.name + (" (0: " + std::string(field.zero)) + ")" : field.name;
            detail::check_range("BuildParams", name.c_str(), value, field.low, field.high);
        }
    });
    if (recall_at != 0) detail::check_range("BuildParams", "recall_at (0: 10, or k if that is less)", recall_at, 1, k);
    if (list_size != 0)
        detail::check_range("BuildParams", "list_size (0: chosen from k and samples)", list_size, k, kMaxK);
    if (samples != 0)
        detail::check_range("BuildParams", "samples (0: chosen from k)", samples, 1, detail::list_size_of(*this));
}

namespace detail {

std::string text_of(bool value) {
    return value ? "true" : "false";
}
std::string text_of(int value) {
    return std::to_string(value);
}
std::string text_of(std::int64_t value) {
    return std::to_string(value);
}
std::string text_of(std::uint64_t value) {
    return std::to_string(value);
}
std::string text_of(float value) {
    return number_text(value);
}

namespace {

template <class T>
void parse_number(std::string_view text, T& value) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc::result_out_of_range) throw InvalidArgument("'" + std::string(text) + "' is out of range");
    if (error != std::errc{} || stop != end)
        throw InvalidArgument("'" + std::string(text) + "' is no " +
                              (std::is_integral_v<T> ? "whole number" : "number"));
}

}  // namespace

void parse(std::string_view text, bool& value) {
    value = text == "true" || text == "1";
    if (!value && text != "false" && text != "0")
        throw InvalidArgument("'" + std::string(text) + "' is neither true nor false");
}
void parse(std::string_view text, int& value) {
    parse_number(text, value);
}
void parse(std::string_view text, std::int64_t& value) {
    parse_number(text, value);
}
void parse(std::string_view text, std::uint64_t& value) {
    parse_number(text, value);
}
void parse(std::string_view text, float& value) {
    parse_number(text, value);
}

std::string known_names(Metric) {
    std::string names;
    for (const Metric metric : kMetrics) names += (names.empty() ? "" : ", ") + std::string(name_of(metric));
    return names;
}
std::string known_names(Init) {
    return kInitNames.known();
}
std::string known_names(Update) {
    return kUpdateNames.known();
}
std::string known_names(Locks) {
    return kLocksNames.known();
}
std::string known_names(Codes) {
    return kCodesNames.known();
}

}  // namespace detail

}  // namespace gnnd

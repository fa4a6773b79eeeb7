// SPDX-License-Identifier: MIT
#pragma once
/// \file numbers.h
/// Numbers as texts, both ways.

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace gnnd::detail {

/// The shortest text that gives the same number.
template <class T>
std::string number_text(T value) {
    char text[32];  // the longest, of a double, has 24 characters
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

/// All of the text as a number. A plus sign may stand before it, as for every program.
template <class T>
std::optional<T> read_number(std::string_view text) {
    if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
    T value{};
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stop != end) return std::nullopt;
    return value;
}

/// Bytes as 1000000, 2e9, 1.5GB or 8GiB, where K, M, G and T count in steps of 1,024 with and without the i, as ever;
/// nothing for what is no size or not to be had on any machine.
std::optional<std::int64_t> read_bytes(std::string_view text);
/// The texts that read_bytes() takes, for messages.
inline constexpr const char* kSizes = "sizes up to 1024T: 2e9, 500MB, 1.5GB, 8GiB";

}  // namespace gnnd::detail

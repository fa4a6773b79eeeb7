// SPDX-License-Identifier: MIT
#include "gnnd/detail/numbers.h"

#include <cctype>
#include <cmath>

namespace gnnd::detail {

std::optional<std::int64_t> read_bytes(std::string_view text) {
    constexpr std::string_view kUnits = "KMGT";
    constexpr double kMost = double(std::int64_t(1) << 50);
    std::string unit;
    while (!text.empty() && std::isalpha(static_cast<unsigned char>(text.back())) != 0) {
        unit.insert(unit.begin(), char(std::toupper(static_cast<unsigned char>(text.back()))));
        text.remove_suffix(1);
    }
    while (text.ends_with(' ')) text.remove_suffix(1);
    const std::optional<double> number = read_number<double>(text);
    if (!number || !(*number >= 0)) return std::nullopt;
    double factor = 1;
    if (!unit.empty() && unit != "B") {
        const std::size_t power = kUnits.find(unit[0]);
        const std::string_view rest = std::string_view(unit).substr(1);
        if (power == std::string_view::npos || !(rest.empty() || rest == "B" || rest == "IB")) return std::nullopt;
        factor = std::exp2(10.0 * double(power + 1));
    }
    const double bytes = *number * factor;
    if (!(bytes <= kMost) || (bytes > 0 && bytes < 1)) return std::nullopt;
    return std::int64_t(bytes);
}

}  // namespace gnnd::detail

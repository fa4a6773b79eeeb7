// SPDX-License-Identifier: MIT
#include "components.h"

#include <cmath>
#include <limits>
#include <sstream>
#include <type_traits>

#include "gnnd/error.h"

namespace cli {

namespace {

/// double holds every component of every type.
template <class T>
double load(T value) {
    if constexpr (std::is_same_v<T, gnnd::half> || std::is_same_v<T, gnnd::bfloat16>)
        return to_float(value);
    else
        return value;
}

template <class T>
bool store(double value, T& out) {
    if constexpr (std::is_same_v<T, gnnd::half>) {
        out = gnnd::to_half(float(value));
        return !std::isfinite(value) || std::isfinite(to_float(out));
    } else if constexpr (std::is_same_v<T, gnnd::bfloat16>) {
        out = gnnd::to_bfloat16(float(value));
        return !std::isfinite(value) || std::isfinite(to_float(out));
    } else if constexpr (std::is_same_v<T, float>) {
        out = float(value);
        return out == value || std::isnan(value);
    } else {
        if (!(value >= std::numeric_limits<T>::min() && value <= std::numeric_limits<T>::max())) return false;
        out = T(value);
        return out == value;
    }
}

}  // namespace

std::int64_t convert_components(const void* in, gnnd::DType from, void* out, gnnd::DType to, std::int64_t count) {
    return gnnd::visit_any(from, [&](auto source) {
        return gnnd::visit_any(to, [&](auto target) {
            const auto* a = static_cast<const decltype(source)*>(in);
            auto* b = static_cast<decltype(target)*>(out);
            for (std::int64_t i = 0; i < count; ++i)
                if (!store(load(a[i]), b[i])) return i;
            return std::int64_t(-1);
        });
    });
}

std::string component_text(const void* components, gnnd::DType dtype, std::int64_t i) {
    std::ostringstream text;
    text << gnnd::visit_any(dtype, [&](auto type) { return load(static_cast<const decltype(type)*>(components)[i]); });
    return text.str();
}

}  // namespace cli

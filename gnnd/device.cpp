// SPDX-License-Identifier: MIT
#include "gnnd/device.h"

#include <charconv>
#include <cstring>

#include "gnnd/cuda/backend.h"
#include "gnnd/error.h"

namespace gnnd {

Device Device::parse(std::string_view text) {
    if (text == "auto") return {Kind::automatic, 0};
    if (text == "cpu") return {Kind::cpu, 0};
    if (text == "cuda") return {Kind::cuda, 0};
    constexpr std::string_view prefix = "cuda:";
    if (text.starts_with(prefix)) {
        int index = -1;
        const char* end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data() + prefix.size(), end, index);
        if (error == std::errc{} && stop == end && index >= 0) return {Kind::cuda, index};
    }
    throw InvalidArgument("unknown device '" + std::string(text) + "'; known are auto, cpu, cuda and cuda:N");
}

std::string Device::name() const {
    switch (kind) {
        case Kind::automatic:
            return "auto";
        case Kind::cpu:
            return "cpu";
        case Kind::cuda:
            break;
    }
    return "cuda:" + std::to_string(index);
}

int device_count(std::string* why) {
    return cuda::device_count(why);
}

bool device_usable(int index, std::string& why) {
    return cuda::usable(index, why);
}

int device_of(const void* pointer) {
    return cuda::device_of(pointer);
}

void copy_to_host(const VectorView& vectors, void* out) {
    if (cuda::device_of(vectors.data) >= 0) return cuda::copy_to_host(vectors, out);
    const auto bytes = std::size_t(vectors.d) * size_of(vectors.dtype);
    for (std::int64_t i = 0; i < vectors.n; ++i)
        std::memcpy(static_cast<std::byte*>(out) + std::size_t(i) * bytes, vectors.row(i), bytes);
}

}  // namespace gnnd

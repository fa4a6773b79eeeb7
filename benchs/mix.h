// SPDX-License-Identifier: MIT
#pragma once
/// \file mix.h
/// The rows that generate.h's Mix makes of a file's, brought to the host.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "benchs/device_array.h"
#include "benchs/generate_on_device.h"
#include "gnnd/builder.h"
#include "gnnd/io/vector_file.h"

namespace gnnd::benchs {

/// Gives `take` the first n rows, some after the other; the file holds uint8.
inline void mix(const io::VectorFile& base, std::int64_t n,
                const std::function<void(const std::byte* rows, std::int64_t count)>& take) {
    constexpr std::int64_t kAtOnce = 2'000'000;
    const std::int64_t n0 = base.n(), d = base.d();
    BuildParams params;
    params.device = {Device::Kind::cuda, 0};
    const DeviceArray<std::uint8_t> x(n0 * d), made(std::min(n, kAtOnce) * d);
    const DeviceArray<std::int32_t> ids(n0 * params.k);
    const DeviceArray<float> distances(n0 * params.k);
    GNND_CUDA(cudaMemcpy(x, base.view().data, n0 * d, cudaMemcpyHostToDevice));
    build_into({x, n0, d, DType::u8, 0}, params, ids, distances);
    std::vector<std::byte> host(std::min(n, kAtOnce) * d);
    for (std::int64_t begin = 0; begin < n; begin += kAtOnce) {
        const std::int64_t count = std::min(kAtOnce, n - begin);
        generate(Mix{x, ids, n0, d, params.k, 1}, begin, count, made, nullptr);
        GNND_CUDA(cudaMemcpy(host.data(), made, count * d, cudaMemcpyDeviceToHost));
        take(host.data(), count);
    }
}

}  // namespace gnnd::benchs

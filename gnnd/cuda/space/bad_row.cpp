// SPDX-License-Identifier: MIT
#include "gnnd/cuda/space/bad_row.h"

#include <vector>

#include "gnnd/cpu/backend.h"
#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/error.h"

namespace gnnd::cuda {

void throw_bad_row(const std::string& who, const VectorView& vectors, std::int64_t row, std::int64_t number,
                   Metric metric) {
    std::vector<std::byte> copy(std::size_t(vectors.d) * size_of(vectors.dtype));
    GNND_CUDA(cudaMemcpy(copy.data(), vectors.row(row), copy.size(), cudaMemcpyDefault));
    throw InvalidArgument(who + "vector " + std::to_string(number) + " " +
                          cpu::fault_of_row({copy.data(), 1, vectors.d, vectors.dtype, 0}, metric));
}

void check_rows(const SpaceInfo& info, const detail::Input& input, Metric metric) {
    if (info.first_bad == ~0ull) return;
    const auto row = std::int64_t(info.first_bad);
    const int set = input.set_of(row);
    throw_bad_row("", input.vectors[set], input.number_in(set, row), input.first + row, metric);
}

}  // namespace gnnd::cuda

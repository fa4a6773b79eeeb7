// SPDX-License-Identifier: MIT
#include "gnnd/detail/checks.h"

#include <algorithm>

#include "gnnd/device.h"

namespace gnnd::detail {

void check_dimensions(const VectorView& vectors, std::int64_t least) {
    visit(vectors.dtype, [](auto) {});  // throws for others than vectors
    if (vectors.n < least || vectors.n > kMaxObjects)
        throw InvalidArgument(std::to_string(vectors.n) + " vectors; a graph needs 2 to " +
                              std::to_string(kMaxObjects));
    if (vectors.d < 1 || vectors.d > kMaxDim)
        throw InvalidArgument("vectors of dimension " + std::to_string(vectors.d) + "; allowed are 1 to " +
                              std::to_string(kMaxDim));
}

void check_shape(const VectorView& vectors, std::int64_t least) {
    check_dimensions(vectors, least);
    if (vectors.data == nullptr) throw InvalidArgument("vectors are a null pointer");
    if (vectors.row_bytes() < vectors.d * std::int64_t(size_of(vectors.dtype)))
        throw InvalidArgument("VectorView::stride of " + std::to_string(vectors.stride) + " bytes is less than a row");
}

void check_k(std::int64_t k) {
    if (k < 1 || k > kMaxK)
        throw InvalidArgument("k = " + std::to_string(k) + ", allowed are 1 to " + std::to_string(kMaxK));
}

void check_ids(const std::int32_t* ids, std::int64_t count, std::int32_t least, std::int64_t n, const char* what) {
    std::int64_t bad = count;
#pragma omp parallel for reduction(min : bad) if (count > 1 << 16)
    for (std::int64_t i = 0; i < count; ++i)
        if (ids[i] < least || ids[i] >= n) bad = std::min(bad, i);
    if (bad == count) return;
    throw InvalidArgument(std::string(what) + "[" + std::to_string(bad) + "] = " + std::to_string(ids[bad]) +
                          " is outside of [" + std::to_string(least) + ", " + std::to_string(n) + ")");
}

void check_reach(const Device& device, std::initializer_list<const void*> pointers) {
    for (const void* pointer : pointers)
        if (const int place = device_of(pointer);
            place >= 0 && (device.kind != Device::Kind::cuda || place != device.index))
            throw InvalidArgument("vectors or arrays lie in the memory of cuda:" + std::to_string(place) +
                                  ", which device " + device.name() + " cannot reach");
}

Device choose(const Device& wanted, std::string* reason) {
    if (wanted.kind == Device::Kind::cpu) return wanted;
    std::string why;
    if (device_usable(wanted.index, why)) return {Device::Kind::cuda, wanted.index};
    if (wanted.kind == Device::Kind::automatic) {
        if (reason != nullptr) *reason = why;
        return {Device::Kind::cpu, 0};
    }
    throw Unavailable("device " + wanted.name() + ": " + why);
}

Resources& or_heap(Resources* resources) {
    static HeapResources heap;
    return resources != nullptr ? *resources : heap;
}

}  // namespace gnnd::detail

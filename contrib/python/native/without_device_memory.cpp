// SPDX-License-Identifier: MIT
/// Stands in where CUDA is not compiled in.
#include <utility>

#include "device_memory.h"
#include "gnnd/error.h"

namespace gnnd::python {

namespace {

[[noreturn]] void throw_unavailable() {
    throw Unavailable("this gnnd was built without CUDA");
}

}  // namespace

DeviceMemory::DeviceMemory(int device, std::size_t bytes, CallerMemory memory, std::uintptr_t stream)
    : device_(device), bytes_(bytes), memory_(std::move(memory)), stream_(stream), process_(0) {
    throw_unavailable();
}

DeviceMemory::~DeviceMemory() = default;

void copy_to_host(int, std::uintptr_t, void*, const void*, std::int64_t, std::size_t, std::size_t) {
    throw_unavailable();
}

int current_device() noexcept {
    return 0;
}

void synchronize(int, std::uintptr_t) {
    throw_unavailable();
}

void check_stream(int, std::uintptr_t) {
    throw_unavailable();
}

}  // namespace gnnd::python

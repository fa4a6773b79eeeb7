// SPDX-License-Identifier: MIT
/// Stands in where CUDA is not compiled in.
#include "device_memory.h"
#include "gnnd/error.h"

namespace gnnd::python {

namespace {

[[noreturn]] void throw_unavailable() {
    throw Unavailable("this gnnd was built without CUDA");
}

}  // namespace

DeviceMemory::DeviceMemory(int device, std::size_t bytes) : device_(device), bytes_(bytes) {
    throw_unavailable();
}

DeviceMemory::~DeviceMemory() = default;

void DeviceMemory::copy_to_host(void*) const {
    throw_unavailable();
}

void synchronize(int, std::uintptr_t) {
    throw_unavailable();
}

}  // namespace gnnd::python

// SPDX-License-Identifier: MIT
#include "caller.h"

#include "device_memory.h"
#include "gil.h"
#include "gnnd/error.h"

namespace gnnd::python {

namespace nb = nanobind;

void* CallerMemory::allocate(std::size_t bytes, int device, std::uintptr_t stream) const {
    const GilTaken gil;
    try {
        const nb::object pointer = allocator_.attr("allocate")(bytes, device, stream);
        return reinterpret_cast<void*>(nb::cast<std::uintptr_t>(pointer));
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_MemoryError)) throw;
        throw OutOfDeviceMemory(nb::cast<const char*>(nb::str(error.value())));
    }
}

void CallerMemory::deallocate(void* pointer, std::size_t bytes, int device, std::uintptr_t stream) const noexcept {
    const GilTaken gil;
    try {
        allocator_.attr("deallocate")(reinterpret_cast<std::uintptr_t>(pointer), bytes, device, stream);
    } catch (nb::python_error& error) {
        error.discard_as_unraisable("gnnd: giving device memory back");
    }
}

std::size_t CallerMemory::free(int device) const {
    const GilTaken gil;
    return nb::cast<std::size_t>(allocator_.attr("free")(device));
}

CallerResources::CallerResources(const Run& run)
    : stream_(reinterpret_cast<Stream>(run.stream)), memory_(run.allocator) {
    if (run.gpu >= 0) check_stream(run.gpu, run.stream);
}

void* CallerResources::allocate_device(std::size_t bytes, Stream stream) {
    if (!memory_) return Resources::allocate_device(bytes, stream);
    return memory_.allocate(bytes, current_device(), reinterpret_cast<std::uintptr_t>(stream));
}

std::size_t CallerResources::free_device_memory() {
    return memory_ ? memory_.free(current_device()) : Resources::free_device_memory();
}

void CallerResources::deallocate_device(void* pointer, std::size_t bytes, Stream stream) noexcept {
    if (memory_)
        memory_.deallocate(pointer, bytes, current_device(), reinterpret_cast<std::uintptr_t>(stream));
    else
        Resources::deallocate_device(pointer, bytes, stream);
}

}  // namespace gnnd::python

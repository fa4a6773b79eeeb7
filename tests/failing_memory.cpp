// SPDX-License-Identifier: MIT
#include "tests/failing_memory.h"

#include <climits>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace gnnd::test {
namespace {

thread_local int memory_allowed = INT_MAX;
thread_local std::size_t memory_from = 0;

}  // namespace

FailingMemory::FailingMemory(int allowed, std::size_t from_bytes) {
    memory_allowed = allowed;
    memory_from = from_bytes;
}
FailingMemory::~FailingMemory() {
    memory_allowed = INT_MAX;
}
bool FailingMemory::has_failed() const {
    return memory_allowed < 0;
}
bool FailingMemory::possible() {
#ifdef GNND_SANITIZED
    return false;
#else
    return true;
#endif
}

}  // namespace gnnd::test

#ifndef GNND_SANITIZED
namespace {

void* allocate(std::size_t bytes, std::size_t alignment) {
    int& allowed = gnnd::test::memory_allowed;
    if (allowed != INT_MAX && bytes >= gnnd::test::memory_from && --allowed < 0) throw std::bad_alloc();
    void* memory = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

}  // namespace

// In place of the standard library's, whose other forms end up here, and whose delete frees what these give.
void* operator new(std::size_t bytes) {
    return allocate(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return allocate(bytes, std::size_t(alignment));
}
#endif

// SPDX-License-Identifier: MIT
#include "gnnd/array.h"

#include <sys/mman.h>

namespace gnnd::detail {
namespace {

constexpr std::align_val_t kHugePage{std::size_t(2) << 20};

}  // namespace

void* allocate_huge(std::size_t bytes) {
    void* const pointer = ::operator new(bytes, kHugePage);
    madvise(pointer, bytes, MADV_HUGEPAGE);  // where the system has none, they are ordinary ones
    return pointer;
}

void free_huge(void* pointer) noexcept {
    ::operator delete(pointer, kHugePage);
}

}  // namespace gnnd::detail

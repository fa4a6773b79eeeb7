// SPDX-License-Identifier: MIT
#include "host_memory.h"

#include <cstdint>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "gnnd/array.h"

namespace gnnd::python {

namespace {

/// Less comes from the heap, which keeps it itself.
constexpr std::size_t kLeast = std::size_t(1) << 20;
/// More is filled by several threads in any case.
constexpr std::size_t kTouchedHere = std::size_t(64) << 20;
constexpr std::size_t kPage = 4096;

struct Block {
    void* data;
    std::size_t bytes;
};

/// Blocks that nobody uses, the oldest first. Whoever does not get the lock at once goes to the system: a fork may have
/// taken the lock along, and then nobody gives it back.
class Store {
  public:
    /// A block of just this size, or null.
    void* take(std::size_t bytes) {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock) return nullptr;
        for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
            if (block->bytes != bytes) continue;
            void* const data = block->data;
            blocks_.erase(std::next(block).base());
            held_ -= bytes;
            return data;
        }
        return nullptr;
    }
    void give(Block block) noexcept {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock || block.bytes > limit_) return detail::free_huge(block.data);
        try {
            blocks_.push_back(block);
        } catch (const std::bad_alloc&) {
            return detail::free_huge(block.data);
        }
        held_ += block.bytes;
        shrink();
    }
    void limit(std::size_t bytes) {
        const std::lock_guard lock(mutex_);
        limit_ = bytes;
        shrink();
    }
    std::size_t held() {
        const std::lock_guard lock(mutex_);
        return held_;
    }

  private:
    void shrink() noexcept {
        while (held_ > limit_) {
            held_ -= blocks_.front().bytes;
            detail::free_huge(blocks_.front().data);
            blocks_.erase(blocks_.begin());
        }
    }

    std::mutex mutex_;
    std::vector<Block> blocks_;
    std::size_t held_ = 0, limit_ = std::size_t(256) << 20;
};

/// Never destroyed: arrays may outlive a static.
Store& store() {
    static Store& store = *new Store;
    return store;
}

void* touched(std::size_t bytes) {
    void* const data = detail::allocate_huge(bytes);
    if (bytes <= kTouchedHere) {
        auto* const at = static_cast<volatile unsigned char*>(data);
        const auto pages = std::int64_t((bytes + kPage - 1) / kPage);
#pragma omp parallel for schedule(static)
        for (std::int64_t page = 0; page < pages; ++page) at[std::size_t(page) * kPage] = 0;
    }
    return data;
}

void* kept_or_new(std::size_t bytes) {
    void* const data = store().take(bytes);
    return data != nullptr ? data : touched(bytes);
}

}  // namespace

HostMemory::HostMemory(std::size_t bytes) : bytes_(bytes) {
    data_ = bytes < kLeast ? ::operator new(bytes) : kept_or_new(bytes);
}

HostMemory::~HostMemory() {
    if (data_ == nullptr) return;
    if (bytes_ < kLeast)
        ::operator delete(data_);
    else
        store().give({data_, bytes_});
}

void* KeptResources::allocate(std::size_t bytes) {
    return bytes < kLeast ? heap_.allocate(bytes) : kept_or_new(bytes);
}

void KeptResources::deallocate(void* pointer, std::size_t bytes) noexcept {
    if (bytes < kLeast)
        heap_.deallocate(pointer, bytes);
    else
        store().give({pointer, bytes});
}

void keep_host_memory(std::size_t bytes) {
    store().limit(bytes);
}

std::size_t kept_host_memory() {
    return store().held();
}

}  // namespace gnnd::python

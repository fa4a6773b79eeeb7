// SPDX-License-Identifier: MIT
#pragma once
/// \file slots.h
/// Places for shards in one piece of device memory.

#include <cstddef>
#include <mutex>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/resources.h"

namespace gnnd::cuda {

/// Hands out places for shards, all of the same size, as memory of a Cache.
class Slots final : public Resources {
  public:
    /// \param data   `count` places of `bytes` bytes each
    Slots(std::byte* data, std::size_t bytes, int count) {
        for (int i = 0; i < count; ++i) free_.push_back(data + std::size_t(i) * bytes);
    }
    /// \throws Error where all are taken
    void* allocate(std::size_t) override {
        const std::lock_guard lock(mutex_);
        if (free_.empty()) throw Error("device memory: no place is left for another shard");
        std::byte* slot = free_.back();
        free_.pop_back();
        return slot;
    }
    void deallocate(void* pointer, std::size_t) noexcept override {
        const std::lock_guard lock(mutex_);
        free_.push_back(static_cast<std::byte*>(pointer));  // within its capacity: it has been there before
    }

  private:
    std::mutex mutex_;
    std::vector<std::byte*> free_;
};

}  // namespace gnnd::cuda

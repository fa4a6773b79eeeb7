// SPDX-License-Identifier: MIT
#pragma once
/// \file piece.h
/// One piece of device memory, handed out in parts.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>

#include "gnnd/resources.h"

namespace gnnd::cuda {

/// Gives parts of a piece of device memory while there is room for them, and then what `others` give, from whom
/// everything else comes, too. For one thread at a time.
class Piece final : public Resources {
  public:
    /// \param bounded  nothing beside the piece is to be planned with: what does not fit is an exception
    Piece(std::byte* data, std::size_t bytes, bool bounded, Resources& others)
        : data_(data), bytes_(bytes), bounded_(bounded), others_(others) {}

    /// Room that `bytes` take in a piece.
    static std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

    void* allocate(std::size_t bytes) override { return others_.allocate(bytes); }
    void deallocate(void* pointer, std::size_t bytes) noexcept override { others_.deallocate(pointer, bytes); }
    Stream stream() override { return others_.stream(); }
    Staging staging() override { return others_.staging(); }

    void* allocate_device(std::size_t bytes, Stream stream) override {
        std::size_t begin = 0;
        for (const auto& [offset, taken] : parts_) {  // the first gap that is large enough
            if (offset - begin >= aligned(bytes)) break;
            begin = offset + taken;
        }
        if (bytes_ - begin < aligned(bytes)) return others_.allocate_device(bytes, stream);
        parts_.emplace(begin, aligned(bytes));
        return data_ + begin;
    }
    void deallocate_device(void* pointer, std::size_t bytes, Stream stream) noexcept override {
        auto* const data = static_cast<std::byte*>(pointer);
        if (data >= data_ && data < data_ + bytes_)
            parts_.erase(std::size_t(data - data_));
        else
            others_.deallocate_device(pointer, bytes, stream);
    }
    /// The most bytes that could be given at once.
    std::size_t free_device_memory() override {
        std::size_t begin = 0, most = 1;  // 0 would say that it is unknown
        for (const auto& [offset, taken] : parts_) {
            most = std::max(most, offset - begin);
            begin = offset + taken;
        }
        most = std::max(most, bytes_ - begin);
        return bounded_ ? most : std::max(most, others_.free_device_memory());
    }

  private:
    std::byte* const data_;
    const std::size_t bytes_;
    const bool bounded_;
    Resources& others_;
    std::map<std::size_t, std::size_t> parts_;  ///< taken: offsets and bytes
};

}  // namespace gnnd::cuda

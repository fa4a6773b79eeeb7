// SPDX-License-Identifier: MIT
#pragma once
/// \file packed_type.h
/// The form in which vectors reach the tensor cores.

#include <string>
#include <type_traits>

#include "gnnd/error.h"

namespace gnnd::cuda {

/// The type of the components of packed rows. Integers stay exact; all else becomes f16, centred and scaled (space.cu).
enum class PackedType { u8, i8, f16 };

/// Calls f with the type as a std::integral_constant.
template <class F>
decltype(auto) visit(PackedType type, F&& f) {
    switch (type) {
        case PackedType::u8:
            return f(std::integral_constant<PackedType, PackedType::u8>());
        case PackedType::i8:
            return f(std::integral_constant<PackedType, PackedType::i8>());
        case PackedType::f16:
            return f(std::integral_constant<PackedType, PackedType::f16>());
    }
    throw InvalidArgument("unknown packed type number " + std::to_string(int(type)));
}

/// Bytes of a row that are in shared memory at a time, and that one tensor instruction takes of them.
inline constexpr int kTileBytes = 128, kStep = 32;

/// Sums of longer rows of integers, all of which are compared, could overflow (sweep/thresholds.cu).
inline constexpr int kMaxSweptBytes = 8192;

/// Bits of a key (device/tile.cuh) that hold the number of a column, and as many columns as have numbers in them.
inline constexpr int kColumnBits = 8, kColumnGroup = 1 << kColumnBits;

}  // namespace gnnd::cuda

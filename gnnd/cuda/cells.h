#pragma once
/// \file cells.h
/// The form in which vectors reach the tensor cores.

namespace gnnd::cuda {

/// What a packed row consists of. Integers stay exact; everything else becomes f16, centred and scaled (space.cu).
enum class Cell { u8, i8, f16 };

/// Bytes of a row that stand in shared memory at a time, and that one tensor instruction takes of it.
inline constexpr int kSlab = 128, kStep = 32;

}  // namespace gnnd::cuda

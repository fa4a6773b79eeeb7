// SPDX-License-Identifier: MIT
#pragma once
/// Threads where the system starts few of them. OpenMP's runtime ends the process when it cannot start one, and
/// OpenBLAS waits for ever; so they are told beforehand how many there can be.

namespace cli {

/// Finds out how many threads the system starts (limits of processes, of address space). Where OpenMP's default is more
/// than that allows, starts the program again with a lower one. Called first of all.
void limit_threads(char** argv);

/// `threads` as an option gives it, 0 standing for all, lowered to what the system starts.
int allowed_threads(int threads);

/// Lets OpenBLAS use its threads, for commands in which FAISS multiplies matrices. Until then it has none.
/// \throws std::bad_alloc where the address space is limited to less than it takes
void use_blas();

}  // namespace cli

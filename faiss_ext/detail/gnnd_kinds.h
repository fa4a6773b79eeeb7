// SPDX-License-Identifier: MIT
#pragma once
/// \file gnnd_kinds.h
/// From FAISS's own graph indexes to those with GNND, whichever they are.

#include <faiss/Index.h>

#include <memory>
#include <string>

namespace faiss_ext::detail {

/// The classes that the functions below take, for messages.
extern const char* const kGnndKinds;

/// The index with GNND that comes in place of FAISS's, whose vectors and links it takes over; null where there is none.
std::unique_ptr<faiss::Index> take_over(faiss::Index& index);

/// The same of a copy; of an index with GNND a copy with its graph.
std::unique_ptr<faiss::Index> gnnd_copy_of(const faiss::Index& index);

}  // namespace faiss_ext::detail

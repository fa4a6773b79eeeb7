// SPDX-License-Identifier: MIT
#pragma once
/// \file wrappers.h
/// Indexes that keep objects in another one.

#include <faiss/Index.h>

namespace faiss_ext::detail {

/// The slot in which an IDMap, PreTransform or Refine (the index before refining) keeps the index inside; null for
/// others.
faiss::Index** inner_of(faiss::Index& index);

/// The slot of the innermost index: `index` itself without wrappers.
inline faiss::Index*& innermost(faiss::Index*& index) {
    faiss::Index** slot = &index;
    for (faiss::Index** deeper = slot; deeper != nullptr && *deeper != nullptr; deeper = inner_of(**slot))
        slot = deeper;
    return *slot;
}

}  // namespace faiss_ext::detail

// SPDX-License-Identifier: MIT
#pragma once
/// \file chosen_rows.h
/// Rows and lists of objects that a sweep was asked for: these come together, and go back to where they are from. All
/// start a kernel on the stream and return.

#include "gnnd/cuda/sweep/bounds.h"

namespace gnnd::cuda {

/// Ids of lists as hits, so that they get exact distances; where a list has less than some times as many as are wanted,
/// those of the lists of its first entries behind them: the last ones of a list may be far off, and so would its bound.
/// \param ids  n x stride, the first `width` of each row, at most hits.capacity
void lists_as_hits(const u32* objects, u32 count, const u32* ids, int stride, int width, Wanted wanted, int k,
                   const Candidates& hits, cudaStream_t);
/// Packed rows of chosen objects.
void gather_rows(const SweptRows& from, const u32* objects, u32 count, std::uint8_t* to, cudaStream_t);
/// Lists from some places among all, or to these. \param places  count
void take_lists(const Lists& all, const u32* places, u32 count, const Lists& chosen, cudaStream_t);
void put_back(const Lists& chosen, const u32* places, u32 count, const Lists& all, cudaStream_t);

}  // namespace gnnd::cuda

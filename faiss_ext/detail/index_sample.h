// SPDX-License-Identifier: MIT
#pragma once
/// \file index_sample.h
/// Signs of a graph index's vectors and links, for who keeps beside the index what follows from them: FAISS's own
/// methods change an index, too, and tell nobody.

#include <faiss/IndexFlatCodes.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexNSG.h>

#include <cstdint>

namespace faiss_ext::detail {

/// Checksums of at most 256 objects, evenly among all, and of how many there are. They differ where objects came, went
/// or changed places; the change of a few in place may be missed.
struct IndexSample {
    std::uint64_t vectors = 0;  ///< or of their codes
    std::uint64_t links = 0;    ///< on level 0; 0 where they are not those of as many objects
};

/// \param storage  of the index
IndexSample sample_of(const faiss::IndexNSG& index, const faiss::IndexFlatCodes& storage);
IndexSample sample_of(const faiss::IndexHNSW& index, const faiss::IndexFlatCodes& storage);

}  // namespace faiss_ext::detail

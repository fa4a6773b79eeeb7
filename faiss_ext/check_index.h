// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file check_index.h
/// FAISS believes what an index file says. What a damaged one says can send a search out of its memory, or round in
/// circles for ever.

#include <faiss/Index.h>

namespace faiss_ext {

/// Checks that an index that was read can be searched: sizes fit each other, links lead to objects that are there,
/// beams are within what the search can take. Of IndexFlat, IndexScalarQuantizer, IndexPQ, IndexHNSW, IndexNSG,
/// IndexNNDescent, IndexIVF and of these in IndexIDMap, IndexPreTransform and IndexRefine; others pass. It cannot know
/// whether vectors or codes are the right ones. Time is that of a pass over links and inverted lists' sizes.
/// \throws faiss::FaissException that says what is wrong with which class
void check_index(const faiss::Index& index);

}  // namespace faiss_ext

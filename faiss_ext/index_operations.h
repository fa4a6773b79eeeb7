// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file index_operations.h
/// The operations that FAISS has for indexes of its own, for those with add() by GNND (gnnd_index.h).

#include <faiss/AutoTune.h>
#include <faiss/Index.h>

#include <memory>
#include <string>

namespace faiss_ext {

/// faiss::clone_index(), under which indexes with GNND, also inside of others, stay what they are. FAISS's own copies
/// them as its own, without the k-NN graph; 1.7.3's as ones that cannot be written.
/// \throws faiss::FaissException for an index that FAISS cannot clone, and when out of memory
std::unique_ptr<faiss::Index> clone_index(const faiss::Index& index);

/// Two graph indexes in, one out, by GGM: both of one class of FAISS that gnnd_index.h has a class for, with GNND or
/// FAISS's own; or both IndexIDMap or IndexIDMap2 of such ones, whose ids are kept. The graphs of FAISS's own are made
/// of their links first.
/// \return an index with GNND, where they were with the wrapper of `a`; object j of b comes behind those of a. Its
///         parameters and its builder are those of a
/// \throws faiss::FaissException as GnndIndex::merge_from(), and for others than these
std::unique_ptr<faiss::Index> merge_indexes(const faiss::Index& a, const faiss::Index& b);

/// FAISS's names of parameters and "search_L", the beam of an NSG, as "efSearch" is of an HNSW; and "gnnd_recall", what
/// the builder of an index with GNND is asked for. Of wrappers the index inside is meant.
struct ParameterSpace : faiss::ParameterSpace {
    /// Adds the ranges of what changes searches of the index, its beam among them.
    void initialize(const faiss::Index* index) override;
    /// \throws faiss::FaissException for other names and for values outside of what is allowed
    void set_index_parameter(faiss::Index* index, const std::string& name, double value) const override;
};

}  // namespace faiss_ext

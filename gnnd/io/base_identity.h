// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file base_identity.h
/// The identity of a base: what tells whether a set of vectors is the one that a graph was built from.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "gnnd/dtype.h"
#include "gnnd/vectors.h"

namespace gnnd::io {

class VectorFile;
class VectorReader;

/// Depends on the rows alone: a set has one identity in every file format, mapped or in memory, with a stride or
/// without, in one file or in several.
struct BaseIdentity {
    std::int64_t n = 0;        ///< rows
    std::int64_t d = 0;        ///< components of a row
    DType dtype = DType::f32;  ///< of the components
    /// XXH3 of the rows' components in 64 blocks of rows (see base_identity.cpp), the first and the last among them.
    /// Every byte of a set of up to 4 MiB is in one of them; of a larger set a change is found where it touches one.
    std::uint64_t checksum = 0;

    /// The first field in which the other one differs, as text: "d is 96, expected 128"; empty where both are the same.
    /// \param other  what was found where this one was expected
    std::string difference(const BaseIdentity& other) const;
    friend bool operator==(const BaseIdentity&, const BaseIdentity&) = default;
};

/// Puts rows [begin, begin + count) of n x d vectors one after the other.
using ReadVectors = std::function<void(std::int64_t begin, std::int64_t count, std::byte* out)>;
/// Reads as much as for a file. What `read` throws ends the call.
BaseIdentity identify(std::int64_t n, std::int64_t d, DType dtype, const ReadVectors& read);
/// \param vectors  in host memory
BaseIdentity identify(const VectorView& vectors);
/// Reads at most 4 MiB, or 64 rows where those are more. \throws IoError
BaseIdentity identify(const VectorFile& file);
/// The same of vectors that come from anywhere. What their function throws ends the call.
BaseIdentity identify(const VectorReader& vectors);
/// Of the rows of all files, one file after the other. \param files  one or more, of one d and dtype
/// \throws InvalidArgument where d or dtype differ, IoError
BaseIdentity identify(std::span<const VectorFile> files);

/// Refuses a base that a graph was not built from.
/// \param expected  the identity that the graph keeps
/// \param found     that of the base
/// \throws InvalidArgument that names both files and what differs
void require_base_of(const std::string& graph_path, const BaseIdentity& expected, const std::string& base_path,
                     const BaseIdentity& found);

}  // namespace gnnd::io

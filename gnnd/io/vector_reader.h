// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file vector_reader.h
/// Vectors that are read in ranges, from wherever they come, so that nothing need hold all of them.

#include <cstdint>
#include <string>

#include "gnnd/dtype.h"
#include "gnnd/io/base_identity.h"
#include "gnnd/io/vector_file.h"

namespace gnnd::io {

/// n vectors of d components: those of a file, or what a function makes of the numbers of rows or reads from a place of
/// its own. Copies share file and function.
class VectorReader {
  public:
    /// \param file  must outlive the reader
    VectorReader(const VectorFile& file);  // NOLINT(google-explicit-constructor): a file is one
    /// \param read  puts rows [begin, begin + count) one after the other, count x d components without gaps; gives the
    ///              same rows whenever it is asked for them. It may be called by several threads at a time. What it
    ///              throws ends whatever asks for the rows, and comes out of that as it is.
    /// \throws InvalidArgument for n out of 1..kMaxShardedObjects, d out of 1..kMaxDim, and where there is no function
    VectorReader(std::int64_t n, std::int64_t d, DType dtype, ReadVectors read);

    std::int64_t n() const { return n_; }             ///< rows
    std::int64_t d() const { return d_; }             ///< components of a row
    DType dtype() const { return dtype_; }            ///< of the components
    const VectorFile* file() const { return file_; }  ///< null where the vectors come from a function
    /// Of the vectors, for messages: the file's path, or "the base".
    std::string name() const;

    /// Puts rows [begin, begin + count) one after the other. \throws InvalidArgument for a range outside of [0, n), and
    /// as the file or the function does
    void read(std::int64_t begin, std::int64_t count, void* out) const;

  private:
    std::int64_t n_, d_;
    DType dtype_;
    const VectorFile* file_ = nullptr;
    ReadVectors read_;
};

}  // namespace gnnd::io

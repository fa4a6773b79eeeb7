#pragma once
/// \file vector_file.h
/// Files of vectors: fvecs, bvecs, ivecs, fbin, u8bin, i8bin, ibin and npy. The format follows from the extension.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "gnnd/io/atomic_file.h"
#include "gnnd/io/mapped_file.h"
#include "gnnd/vectors.h"

namespace gnnd::io {

/// fvecs/bvecs/ivecs: every row is an int32 d and then d components (float32, uint8, int32).
/// fbin/u8bin/i8bin/ibin: int32 n, int32 d, then the rows (float32, uint8, int8, int32).
/// npy: NumPy's format 1 to 3, C order, two dimensions, <f4, <f2, |u1, |i1 or <i4.
enum class VectorFormat { fvecs, bvecs, ivecs, fbin, u8bin, i8bin, ibin, npy };

std::string_view name_of(VectorFormat format);

/// The format of a path by its extension; throws IoError that lists the known ones.
VectorFormat format_of(const std::string& path);

/// Opens a file for reading. The header is checked against the file's size before anything else is read.
class VectorFile {
  public:
    /// \throws IoError: missing, empty, truncated, larger or smaller than its header says, d out of 1..kMaxDim, n over
    ///         kMaxObjects, unknown extension, content that contradicts the extension
    explicit VectorFile(const std::string& path);

    const std::string& path() const { return path_; }
    VectorFormat format() const { return format_; }
    std::int64_t n() const { return view_.n; }
    std::int64_t d() const { return view_.d; }
    DType dtype() const { return view_.dtype; }

    /// The whole file, memory-mapped: pages are read when touched. Valid as long as this object. For the *vecs formats
    /// the view has a stride.
    const VectorView& view() const { return view_; }

    /// Reads rows [begin, begin + count) into out, row-major, in the file's own type; nothing else is read.
    /// \throws InvalidArgument for a range outside of [0, n), IoError when a row of a *vecs file has another d
    void read(std::int64_t begin, std::int64_t count, void* out) const;

  private:
    std::string path_;
    VectorFormat format_;
    MappedFile file_;
    VectorView view_;
};

/// Writes a vector file row by row; the file appears under its name only with commit().
class VectorWriter {
  public:
    /// \throws IoError when the format of the path cannot hold the type, or the file cannot be created
    VectorWriter(const std::string& path, std::int64_t n, std::int64_t d, DType dtype);
    /// Appends `count` rows of d components of the writer's type.
    void append(const void* rows, std::int64_t count);
    /// \throws IoError unless exactly n rows were appended, or when the disk is full; the old file survives then
    void commit();

  private:
    VectorFormat format_;
    std::int64_t n_, d_, written_ = 0;
    std::size_t row_bytes_;
    AtomicFile file_;
};

/// Writes all rows of the view. The format of the path must hold the view's type.
void write_vectors(const std::string& path, const VectorView& vectors);

}  // namespace gnnd::io

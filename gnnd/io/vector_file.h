// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file vector_file.h
/// Files of vectors: fvecs, bvecs, ivecs, fbin, u8bin, i8bin, ibin and npy. The format follows from the extension.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "gnnd/vectors.h"

namespace gnnd::io {

namespace detail {
class AtomicFile;
class MappedFile;
}  // namespace detail

/// fvecs/bvecs/ivecs: every row is an int32 d and then d components (float32, uint8, int32).
/// fbin/u8bin/i8bin/ibin: int32 n, int32 d, then the rows (float32, uint8, int8, int32).
/// npy: NumPy's format 1 to 3, C order, two dimensions, <f4, <f2, |u1, |i1 or <i4.
/// All little-endian.
enum class VectorFormat { fvecs, bvecs, ivecs, fbin, u8bin, i8bin, ibin, npy };

/// The format's extension without its dot, for instance "fvecs".
std::string_view name_of(VectorFormat format);
/// \throws InvalidArgument that lists the known names
VectorFormat parse_vector_format(std::string_view name);

/// The format of a path by its extension; throws IoError that lists the known ones.
VectorFormat format_of(const std::string& path);

/// Opens a file for reading. The header is checked against the file's size before anything else is read.
class VectorFile {
  public:
    /// \throws IoError: missing, empty, truncated, larger or smaller than its header says, n out of 1..kMaxObjects or d
    ///         out of 1..kMaxDim, unknown extension, content that contradicts the extension. Of a *vecs file only the
    ///         first row's d and the size are checked here; see view() and read().
    explicit VectorFile(const std::string& path);
    ~VectorFile();
    VectorFile(VectorFile&&) noexcept;
    VectorFile& operator=(VectorFile&&) noexcept;

    const std::string& path() const { return path_; }  ///< as given
    VectorFormat format() const { return format_; }    ///< by the path's extension
    std::int64_t n() const { return view_.n; }         ///< rows
    std::int64_t d() const { return view_.d; }         ///< components of a row
    DType dtype() const { return view_.dtype; }        ///< of the components

    /// The whole file, memory-mapped: pages are read when touched. Valid as long as this object, moved or not. Do not
    /// truncate the file meanwhile: touching what is gone raises SIGBUS. For the *vecs formats the view has a stride,
    /// and the first call reads d of every row, which touches most of the file's pages.
    /// \throws IoError when a row of a *vecs file has another d than the first
    const VectorView& view() const;

    /// Reads rows [begin, begin + count) into out, row-major, in the file's own type; nothing else is read.
    /// \throws InvalidArgument for a range outside of [0, n), IoError when one of these rows of a *vecs file has
    ///         another d than the first, or the file was truncated after it was opened
    void read(std::int64_t begin, std::int64_t count, void* out) const;

    /// \throws IoError when the file was written to since it was opened, as its size and time of modification tell
    void require_unchanged() const;

  private:
    /// The findings of view() about the rows of a *vecs file.
    struct RowCheck {
        std::once_flag once;
        std::int64_t fitting = 0;  ///< so many rows at the start have the d of the first
    };

    void check_row(std::int64_t row, const std::byte* bytes) const;

    std::string path_;
    VectorFormat format_;
    std::unique_ptr<const detail::MappedFile> file_;
    VectorView view_;
    std::unique_ptr<RowCheck> rows_ = std::make_unique<RowCheck>();
};

/// Writes a vector file row by row; the file appears under its name only with commit().
class VectorWriter {
  public:
    /// \throws InvalidArgument for n out of 1..kMaxObjects or d out of 1..kMaxDim, IoError when the format of the path
    ///         cannot hold the type, or the file cannot be created
    VectorWriter(const std::string& path, std::int64_t n, std::int64_t d, DType dtype);
    ~VectorWriter();
    VectorWriter(VectorWriter&&) noexcept;
    VectorWriter& operator=(VectorWriter&&) noexcept;
    /// Appends `count` rows of d components of the writer's type. \throws InvalidArgument past n rows, IoError when the
    /// disk is full
    void append(const void* rows, std::int64_t count);
    /// \throws IoError unless exactly n rows were appended, or when the disk is full; the old file survives then
    void commit();

  private:
    VectorFormat format_;
    std::int64_t n_, d_, written_ = 0;
    std::size_t row_bytes_;
    std::unique_ptr<detail::AtomicFile> file_;
};

/// Writes all rows of the view. The format of the path must hold the view's type. \throws as VectorWriter
void write_vectors(const std::string& path, const VectorView& vectors);

}  // namespace gnnd::io

// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file vector_file.h
/// Files of vectors, in all formats that GNND_VECTOR_FORMATS lists. The format follows from the extension.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "gnnd/vectors.h"

namespace gnnd::io {

namespace detail {
class AtomicFile;
}

/// All formats: the name, which is the extension in lower case, the layout and the type of components (any: the file
/// tells). All are little-endian.
/// *vecs: every row is an int32 d and then d components.
/// *bin: uint32 n, int32 d, then the rows.
/// npy: NumPy's format 1 to 3, two dimensions: <f4, <f2, |u1, |i1 or <i4 in C order are used as they are; <f8, <i8 and
/// Fortran order are converted when they are read, to f32, i32 and C order, which takes memory for all rows in view().
// clang-format off
#define GNND_VECTOR_FORMATS(apply)  \
    apply(fvecs, kVecsLayout, f32)  \
    apply(bvecs, kVecsLayout, u8)   \
    apply(ivecs, kVecsLayout, i32)  \
    apply(fbin, kBinLayout, f32)    \
    apply(f16bin, kBinLayout, f16)  \
    apply(bf16bin, kBinLayout, bf16) \
    apply(u8bin, kBinLayout, u8)    \
    apply(i8bin, kBinLayout, i8)    \
    apply(ibin, kBinLayout, i32)    \
    apply(npy, kNpyLayout, any)
// clang-format on

/// A format of vector files.
enum class VectorFormat {
#define GNND_FORMAT(name, layout, dtype) name,
    GNND_VECTOR_FORMATS(GNND_FORMAT)
#undef GNND_FORMAT
};

/// All formats.
inline constexpr VectorFormat kVectorFormats[] = {
#define GNND_FORMAT(name, layout, dtype) VectorFormat::name,
    GNND_VECTOR_FORMATS(GNND_FORMAT)
#undef GNND_FORMAT
};

/// The format's extension without its dot, for instance "fvecs".
std::string_view name_of(VectorFormat format);
/// The type that files of the format hold; none where each file tells its own.
std::optional<DType> dtype_of(VectorFormat format);
/// True if files of the format can hold components of the type.
bool holds(VectorFormat format, DType dtype);
/// The *bin format of the type; every type has one. \throws InvalidArgument for a number that is none
VectorFormat bin_format_of(DType dtype);
/// \throws InvalidArgument that lists the known names
VectorFormat parse_vector_format(std::string_view name);

/// The format of a path by its extension; throws IoError that lists the known ones.
VectorFormat format_of(const std::string& path);

/// Opens a file for reading. The header is checked against the file's size before anything else is read.
class VectorFile {
  public:
    /// \throws IoError: missing, empty, truncated, larger or smaller than its header says, n out of
    ///         1..kMaxShardedObjects or d out of 1..kMaxDim, unknown extension, content that contradicts the extension.
    ///         Of a *vecs file the size and d of up to 64 rows are checked here, the first and the last among them; see
    ///         view() and read().
    explicit VectorFile(const std::string& path);
    ~VectorFile();
    VectorFile(VectorFile&&) noexcept;
    VectorFile& operator=(VectorFile&&) noexcept;

    const std::string& path() const { return path_; }  ///< as given
    VectorFormat format() const { return format_; }    ///< by the path's extension
    std::int64_t n() const { return view_.n; }         ///< rows
    std::int64_t d() const { return view_.d; }         ///< components of a row
    DType dtype() const { return view_.dtype; }        ///< of the components

    /// The whole file, memory-mapped unless it is converted (converted_from()): pages are read when touched. Valid as
    /// long as this object, moved or not. Where the file is truncated meanwhile, touching what is gone raises SIGBUS,
    /// which ends a process that does not handle it, as with every mapping: no exception can be made of it, and signals
    /// are the program's. The tool does handle it; who must not end uses read(), as build_sharded() does. For the *vecs
    /// formats the view has a stride, and the first call reads d of every row, which touches most of the
    /// file's pages. \throws IoError when a row of a *vecs file has another d than the first; as require_digits()
    const VectorView& view() const;

    /// Of a file of float64, which becomes float32: a sample of it tells whether the vectors differ in digits that
    /// float32 has. view() and read() ask first. \throws InvalidArgument where they do not, as 1e12 + i; IoError
    void require_digits() const;

    /// Reads rows [begin, begin + count) into out, row-major, in the file's own type; nothing else is read.
    /// \throws InvalidArgument for a range outside of [0, n) and as require_digits(),
    ///         IoError when one of these rows of a *vecs file has another d than the first, or the file was truncated
    ///         after it was opened
    void read(std::int64_t begin, std::int64_t count, void* out) const;

    /// True of a file of float64.
    bool is_wide() const;
    /// True of a file that holds one column after the other.
    bool is_by_columns() const;
    /// Reads a row of a file of float64 as it is. \throws InvalidArgument outside of [0, n), IoError as read()
    void read_wide(std::int64_t row, double* out) const;

    /// \throws IoError when the file was written to since it was opened, as its size and time of modification tell
    void require_unchanged() const;

    /// The stored form, where the file is converted when it is read: "float64", "int64", "Fortran order" or
    /// "float64, Fortran order"; otherwise empty.
    std::string converted_from() const;

  private:
    struct Contents;
    void require_range(std::int64_t begin, std::int64_t count) const;

    std::string path_;
    VectorFormat format_;
    std::unique_ptr<Contents> contents_;
    mutable VectorView view_;  ///< without data as long as they are not converted
};

/// Writes a vector file row by row; the file appears under its name only with commit().
class VectorWriter {
  public:
    /// \throws InvalidArgument for n out of 1..kMaxShardedObjects, of *bin 1..2^32 - 1, or d out of 1..kMaxDim,
    ///         IoError when the format of the path cannot hold the type, or the file cannot be created
    VectorWriter(const std::string& path, std::int64_t n, std::int64_t d, DType dtype);
    ~VectorWriter();
    VectorWriter(VectorWriter&&) noexcept;
    VectorWriter& operator=(VectorWriter&&) noexcept;
    /// Appends `count` rows of d components of the writer's type. \throws InvalidArgument past n rows, IoError when the
    /// disk is full
    void append(const void* rows, std::int64_t count);
    /// Writes rows [begin, begin + count) instead, in any order; each row is to be written once. For formats without
    /// row headers, those other than *vecs, and writers to which nothing is appended. \throws as append(), and
    /// InvalidArgument for a format with row headers
    void put(std::int64_t begin, const void* rows, std::int64_t count);
    /// \throws IoError unless exactly n rows were appended, or when the disk is full; the old file survives then
    void commit();

  private:
    VectorFormat format_;
    std::int64_t n_, d_, written_ = 0;
    std::size_t row_bytes_, header_bytes_;
    std::unique_ptr<detail::AtomicFile> file_;
};

/// Writes all rows of the view. The format of the path must hold the view's type. \throws as VectorWriter
void write_vectors(const std::string& path, const VectorView& vectors);

}  // namespace gnnd::io

// SPDX-License-Identifier: MIT
#pragma once
/// \file vector_layouts.h
/// The layouts of headers and rows in formats of vector files.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "gnnd/dtype.h"
#include "gnnd/io/detail/mapped_file.h"

namespace gnnd::io::detail {

/// Components as a file has them, where they are read as another type.
enum class StoredAs { same, float64, int64 };

/// The shape that a file says it has, checked against its size.
struct FileShape {
    std::int64_t n = 0, d = 0;
    DType dtype = DType::f32;  ///< as which components are read
    std::size_t offset = 0;    ///< of the first component
    std::int64_t stride = 0;   ///< bytes from one row to the next; 0: rows follow each other
    StoredAs stored = StoredAs::same;
    bool fortran_order = false;  ///< one column after the other

    /// True if the mapped file can be used as it is.
    bool mapped() const { return stored == StoredAs::same && !fortran_order; }
    /// Bytes of a component in the file.
    std::size_t component_bytes() const { return stored == StoredAs::same ? size_of(dtype) : 8; }
};

struct Layout {
    /// \param dtype  of the components; none: the header tells. \throws IoError
    FileShape (*open)(const std::string& path, const MappedFile& file, std::optional<DType> dtype);
    /// The bytes before the first row.
    std::string (*header)(std::int64_t n, std::int64_t d, DType dtype);
    /// False for what only other formats can hold.
    bool (*holds)(DType dtype);
    std::int64_t most_rows;  ///< that a header can tell
    std::size_t row_header;  ///< bytes before each row: d, as an int32, or none
};

/// Every row is an int32 d and then d components.
extern const Layout kVecsLayout;
/// uint32 n, int32 d, then the rows.
extern const Layout kBinLayout;
/// NumPy's array file.
extern const Layout kNpyLayout;

/// \throws IoError unless `bytes`, before a row of a file with row headers, tell the d of the file
void check_row_header(const std::string& path, std::int64_t row, const std::byte* bytes, std::int64_t d);

/// Rows [begin, begin + count) of a file that is not mapped() to out, row-major, in the type that is stored.
void read_stored(const MappedFile& file, const FileShape& shape, std::int64_t begin, std::int64_t count,
                 std::byte* out);

/// Rows [begin, begin + count) of a file that is not mapped() to out, row-major, converted.
/// \throws IoError for a value that the type cannot hold; float64 is rounded to float32
void read_converted(const std::string& path, const MappedFile& file, const FileShape& shape, std::int64_t begin,
                    std::int64_t count, std::byte* out);

}  // namespace gnnd::io::detail

// SPDX-License-Identifier: MIT
#include "gnnd/io/detail/vector_layouts.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/io/detail/npy_header.h"
#include "gnnd/vectors.h"

namespace gnnd::io::detail {

namespace {

constexpr std::size_t kVecsHeader = sizeof(std::int32_t);
constexpr std::size_t kBinHeader = 2 * sizeof(std::int32_t);
/// So much of a file is converted at once.
constexpr std::size_t kChunkBytes = 4 << 20;

std::string allowed(std::int64_t most) {
    return ", expected 1 to " + std::to_string(most);
}

void check_extents(const std::string& path, std::int64_t n, std::int64_t d) {
    if (n < 1 || n > kMaxShardedObjects)
        throw IoError(path + ": header says n = " + std::to_string(n) + allowed(kMaxShardedObjects));
    if (d < 1 || d > kMaxDim) throw IoError(path + ": header says d = " + std::to_string(d) + allowed(kMaxDim));
}

/// Compares a header's n x d with the file's size. Once the extents are checked, no product here passes 2^63.
void check_size(const std::string& path, const MappedFile& file, const FileShape& shape) {
    check_extents(path, shape.n, shape.d);
    const std::size_t wanted = shape.offset + std::size_t(shape.n) * std::size_t(shape.d) * shape.component_bytes();
    const std::string_view type = shape.stored == StoredAs::float64 ? "f64"
                                  : shape.stored == StoredAs::int64 ? "i64"
                                                                    : name_of(shape.dtype);
    if (wanted != file.size())
        throw IoError(path + ": header says " + std::to_string(shape.n) + " x " + std::to_string(shape.d) + " " +
                      std::string(type) + " = " + std::to_string(wanted) + " bytes, the file has " +
                      std::to_string(file.size()));
}

/// A few rows tell whether the file is of another type: that its size fits may be chance.
void check_some_rows(const std::string& path, const MappedFile& file, const FileShape& shape) {
    constexpr std::int64_t kRows = 64;
    const std::int64_t rows = std::min(shape.n, kRows);
    for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t row = rows == 1 ? 0 : (shape.n - 1) * r / (rows - 1);
        std::byte header[kVecsHeader];
        file.read(std::size_t(row * shape.stride), sizeof header, header);
        check_row_header(path, row, header, shape.d);
    }
}

FileShape open_vecs(const std::string& path, const MappedFile& file, std::optional<DType> dtype) {
    std::int32_t d = 0;
    if (file.size() < kVecsHeader)
        throw IoError(path + ": the file has " + std::to_string(file.size()) + " bytes, the d of its first row takes " +
                      std::to_string(kVecsHeader));
    file.read(0, kVecsHeader, &d);
    check_extents(path, 1, d);
    const std::size_t stride = kVecsHeader + std::size_t(d) * size_of(*dtype);
    if (file.size() % stride != 0)
        throw IoError(path + ": rows of " + std::to_string(d) + " " + std::string(name_of(*dtype)) + " take " +
                      std::to_string(stride) + " bytes, the file has " + std::to_string(file.size()) +
                      ", which is no multiple");
    const std::size_t n = file.size() / stride;
    if (n > std::size_t(kMaxShardedObjects))
        throw IoError(path + ": " + std::to_string(n) + " rows" + allowed(kMaxShardedObjects));
    FileShape shape;
    shape.n = std::int64_t(n);
    shape.d = d;
    shape.dtype = *dtype;
    shape.offset = kVecsHeader;
    shape.stride = std::int64_t(stride);
    check_some_rows(path, file, shape);
    return shape;
}

FileShape open_bin(const std::string& path, const MappedFile& file, std::optional<DType> dtype) {
    std::int32_t extents[2] = {};
    if (file.size() < kBinHeader)
        throw IoError(path + ": the file has " + std::to_string(file.size()) + " bytes, its header alone takes " +
                      std::to_string(kBinHeader));
    file.read(0, kBinHeader, extents);
    FileShape shape;
    shape.n = std::uint32_t(extents[0]);
    shape.d = extents[1];
    shape.dtype = *dtype;
    shape.offset = kBinHeader;
    check_size(path, file, shape);
    return shape;
}

FileShape open_npy(const std::string& path, const MappedFile& file, std::optional<DType>) {
    const FileShape shape = read_npy_header(path, file);
    check_size(path, file, shape);
    if (shape.mapped() && shape.offset % size_of(shape.dtype) != 0)
        throw IoError(path + ": the data starts at byte " + std::to_string(shape.offset) + ", expected a multiple of " +
                      std::to_string(size_of(shape.dtype)) + "; save it again with NumPy");
    return shape;
}

std::string no_header(std::int64_t, std::int64_t, DType) {
    return "";
}

std::string bin_header(std::int64_t n, std::int64_t d, DType) {
    const std::uint32_t extents[2] = {std::uint32_t(n), std::uint32_t(d)};
    return {reinterpret_cast<const char*>(extents), sizeof extents};
}

bool holds_all(DType) {
    return true;
}

/// \return whether the type To holds the value; a float is rounded
template <class From, class To>
bool convert(const std::byte* from, std::byte* to) {
    From value;
    std::memcpy(&value, from, sizeof value);
    if constexpr (std::is_floating_point_v<From>) {
        if (std::isfinite(value) && std::abs(value) > std::numeric_limits<To>::max()) return false;
    } else {
        if (value < std::numeric_limits<To>::min() || value > std::numeric_limits<To>::max()) return false;
    }
    const To converted = To(value);
    std::memcpy(to, &converted, sizeof converted);
    return true;
}

/// Components of one row after the other. \return the first one that the type cannot hold, or count
std::int64_t convert(const FileShape& shape, const std::byte* from, std::int64_t count, std::byte* to) {
    const std::size_t size = size_of(shape.dtype);
    if (shape.stored == StoredAs::same) {
        std::memcpy(to, from, std::size_t(count) * size);
        return count;
    }
    const auto one = shape.stored == StoredAs::float64 ? convert<double, float> : convert<std::int64_t, std::int32_t>;
    for (std::int64_t i = 0; i < count; ++i)
        if (!one(from + 8 * i, to + std::int64_t(size) * i)) return i;
    return count;
}

}  // namespace

const Layout kVecsLayout{open_vecs, no_header, holds_all, kMaxShardedObjects, kVecsHeader};
const Layout kBinLayout{open_bin, bin_header, holds_all, std::numeric_limits<std::uint32_t>::max(), 0};
const Layout kNpyLayout{open_npy, make_npy_header, npy_holds, kMaxShardedObjects, 0};

void check_row_header(const std::string& path, std::int64_t row, const std::byte* bytes, std::int64_t d) {
    std::int32_t found = 0;
    std::memcpy(&found, bytes, sizeof found);
    if (found != d)
        throw IoError(path + ": row " + std::to_string(row) + " has d = " + std::to_string(found) +
                      ", the first row has " + std::to_string(d));
}

void read_stored(const MappedFile& file, const FileShape& shape, std::int64_t begin, std::int64_t count,
                 std::byte* out) {
    const std::size_t size = shape.component_bytes(), d = std::size_t(shape.d), rows = std::size_t(count);
    if (!shape.fortran_order) return file.read(shape.offset + std::size_t(begin) * d * size, rows * d * size, out);
    std::vector<std::byte> column(rows * size);
    for (std::size_t j = 0; j < d; ++j) {
        file.read(shape.offset + (j * std::size_t(shape.n) + std::size_t(begin)) * size, rows * size, column.data());
        for (std::size_t i = 0; i < rows; ++i) std::memcpy(out + (i * d + j) * size, column.data() + i * size, size);
    }
}

void read_converted(const std::string& path, const MappedFile& file, const FileShape& shape, std::int64_t begin,
                    std::int64_t count, std::byte* out) {
    const std::size_t size = shape.component_bytes(), d = std::size_t(shape.d);
    const std::size_t chunk = std::max<std::size_t>(1, kChunkBytes / (d * size));
    std::vector<std::byte> raw(std::min(chunk, std::size_t(count)) * d * size);
    for (std::int64_t first = begin; first < begin + count; first += std::int64_t(chunk)) {
        const std::size_t rows = std::min(chunk, std::size_t(begin + count - first));
        read_stored(file, shape, first, std::int64_t(rows), raw.data());
        const std::int64_t bad = convert(shape, raw.data(), std::int64_t(rows * d), out);
        if (bad < std::int64_t(rows * d))
            throw IoError(path + ": row " + std::to_string(first + bad / shape.d) + " holds a value that " +
                          std::string(name_of(shape.dtype)) + " cannot hold");
        out += rows * d * size_of(shape.dtype);
    }
}

}  // namespace gnnd::io::detail

// SPDX-License-Identifier: MIT
#include "gnnd/io/vector_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/io/detail/atomic_file.h"
#include "gnnd/io/detail/mapped_file.h"
#include "gnnd/io/detail/npy_header.h"
#include "gnnd/names.h"

namespace gnnd::io {

namespace {

enum class Layout { vecs, bin, npy };

constexpr NameTable<VectorFormat, 8> kNames{"vector format",
                                            {{{VectorFormat::fvecs, "fvecs"},
                                              {VectorFormat::bvecs, "bvecs"},
                                              {VectorFormat::ivecs, "ivecs"},
                                              {VectorFormat::fbin, "fbin"},
                                              {VectorFormat::u8bin, "u8bin"},
                                              {VectorFormat::i8bin, "i8bin"},
                                              {VectorFormat::ibin, "ibin"},
                                              {VectorFormat::npy, "npy"}}}};

struct FormatInfo {
    VectorFormat format;
    Layout layout;
    DType dtype;  ///< not used for npy, which holds all types
};

constexpr FormatInfo kFormats[] = {
    {VectorFormat::fvecs, Layout::vecs, DType::f32}, {VectorFormat::bvecs, Layout::vecs, DType::u8},
    {VectorFormat::ivecs, Layout::vecs, DType::i32}, {VectorFormat::fbin, Layout::bin, DType::f32},
    {VectorFormat::u8bin, Layout::bin, DType::u8},   {VectorFormat::i8bin, Layout::bin, DType::i8},
    {VectorFormat::ibin, Layout::bin, DType::i32},   {VectorFormat::npy, Layout::npy, DType::f32},
};

const FormatInfo& info_of(VectorFormat format) {
    for (const FormatInfo& info : kFormats)
        if (info.format == format) return info;
    throw InvalidArgument("unknown vector format number " + std::to_string(int(format)));
}

constexpr std::size_t kVecsHeader = sizeof(std::int32_t);
constexpr std::size_t kBinHeader = 2 * sizeof(std::int32_t);
/// How much of a *vecs file is read at once before its rows are freed of their headers.
constexpr std::size_t kChunkBytes = 1 << 20;

/// What the header of a *vecs row says.
std::int32_t d_of(const std::byte* header) {
    std::int32_t d = 0;
    std::memcpy(&d, header, sizeof d);
    return d;
}

std::string allowed(std::int64_t most) {
    return ", expected 1 to " + std::to_string(most);
}

void check_shape(const std::string& path, std::int64_t n, std::int64_t d) {
    if (n < 1 || n > kMaxObjects) throw IoError(path + ": header says n = " + std::to_string(n) + allowed(kMaxObjects));
    if (d < 1 || d > kMaxDim) throw IoError(path + ": header says d = " + std::to_string(d) + allowed(kMaxDim));
}

/// What a header of n x d says, against the file. Once the shape is checked, no product here passes 2^54.
VectorView checked_view(const std::string& path, const detail::MappedFile& file, std::size_t offset, std::int64_t n,
                        std::int64_t d, DType dtype) {
    check_shape(path, n, d);
    const std::size_t wanted = offset + std::size_t(n) * std::size_t(d) * size_of(dtype);
    if (wanted != file.size())
        throw IoError(path + ": header says " + std::to_string(n) + " x " + std::to_string(d) + " " +
                      std::string(name_of(dtype)) + " = " + std::to_string(wanted) + " bytes, the file has " +
                      std::to_string(file.size()));
    return {file.data() + offset, n, d, dtype, 0};
}

VectorView open_vecs(const std::string& path, const detail::MappedFile& file, DType dtype) {
    std::int32_t d = 0;
    if (file.size() < kVecsHeader)
        throw IoError(path + ": the file has " + std::to_string(file.size()) + " bytes, the d of its first row takes " +
                      std::to_string(kVecsHeader));
    file.read(0, kVecsHeader, &d);
    check_shape(path, 1, d);
    const std::size_t stride = kVecsHeader + std::size_t(d) * size_of(dtype);
    if (file.size() % stride != 0)
        throw IoError(path + ": rows of " + std::to_string(d) + " " + std::string(name_of(dtype)) + " take " +
                      std::to_string(stride) + " bytes, the file has " + std::to_string(file.size()) +
                      ", which is no multiple");
    const std::size_t n = file.size() / stride;
    if (n > std::size_t(kMaxObjects)) throw IoError(path + ": " + std::to_string(n) + " rows" + allowed(kMaxObjects));
    return {file.data() + kVecsHeader, std::int64_t(n), d, dtype, std::int64_t(stride)};
}

VectorView open_bin(const std::string& path, const detail::MappedFile& file, DType dtype) {
    std::int32_t shape[2] = {};
    if (file.size() < kBinHeader)
        throw IoError(path + ": the file has " + std::to_string(file.size()) + " bytes, its header alone takes " +
                      std::to_string(kBinHeader));
    file.read(0, kBinHeader, shape);
    return checked_view(path, file, kBinHeader, shape[0], shape[1], dtype);
}

VectorView open_npy(const std::string& path, const detail::MappedFile& file) {
    const detail::NpyHeader header = detail::read_npy_header(path, file);
    const VectorView view =
        checked_view(path, file, header.data_offset, header.shape[0], header.shape[1], header.dtype);
    if (header.data_offset % size_of(header.dtype) != 0)
        throw IoError(path + ": the data starts at byte " + std::to_string(header.data_offset) +
                      ", expected a multiple of " + std::to_string(size_of(header.dtype)) +
                      "; save it again with NumPy");
    return view;
}

VectorView open_view(const std::string& path, VectorFormat format, const detail::MappedFile& file) {
    const FormatInfo& info = info_of(format);
    switch (info.layout) {
        case Layout::vecs:
            return open_vecs(path, file, info.dtype);
        case Layout::bin:
            return open_bin(path, file, info.dtype);
        case Layout::npy:
            break;
    }
    return open_npy(path, file);
}

/// The format of the path, provided that it holds n x d of that type.
VectorFormat writable_format(const std::string& path, std::int64_t n, std::int64_t d, DType dtype) {
    if (n < 1 || n > kMaxObjects) throw InvalidArgument(path + ": n = " + std::to_string(n) + allowed(kMaxObjects));
    if (d < 1 || d > kMaxDim) throw InvalidArgument(path + ": d = " + std::to_string(d) + allowed(kMaxDim));
    const FormatInfo& info = info_of(format_of(path));
    if (info.layout != Layout::npy && info.dtype != dtype) {
        std::string fitting;
        for (const FormatInfo& other : kFormats)
            if (other.layout == Layout::npy || other.dtype == dtype)
                fitting += (fitting.empty() ? "" : ", ") + std::string(name_of(other.format));
        throw IoError(path + ": " + std::string(name_of(info.format)) + " holds " + std::string(name_of(info.dtype)) +
                      " only; for " + std::string(name_of(dtype)) + " use " + fitting);
    }
    return info.format;
}

}  // namespace

std::string_view name_of(VectorFormat format) {
    return kNames.name_of(format);
}

VectorFormat parse_vector_format(std::string_view name) {
    return kNames.parse(name);
}

VectorFormat format_of(const std::string& path) {
    std::string extension = std::filesystem::path(path).extension();
    if (!extension.empty()) extension.erase(0, 1);
    if (const auto format = kNames.find(extension)) return *format;
    throw IoError(path + ": " + (extension.empty() ? "no extension" : "unknown extension '" + extension + "'") +
                  ", known vector formats are " + kNames.known());
}

VectorFile::VectorFile(const std::string& path)
    : path_(path),
      format_(format_of(path)),
      file_(std::make_unique<detail::MappedFile>(path)),
      view_(open_view(path, format_, *file_)) {}

VectorFile::~VectorFile() = default;
VectorFile::VectorFile(VectorFile&&) noexcept = default;
VectorFile& VectorFile::operator=(VectorFile&&) noexcept = default;

const VectorView& VectorFile::view() const {
    if (view_.stride == 0) return view_;
    const auto header = [this](std::int64_t row) { return view_.row(row) - kVecsHeader; };
    // Nothing is thrown inside: with some C libraries, and under the thread sanitizer, the next call would wait for
    // ever (GCC bug 66146).
    std::call_once(rows_->once, [&] {
        while (rows_->fitting < view_.n && d_of(header(rows_->fitting)) == view_.d) ++rows_->fitting;
    });
    if (rows_->fitting < view_.n) check_row(rows_->fitting, header(rows_->fitting));
    return view_;
}

void VectorFile::read(std::int64_t begin, std::int64_t count, void* out) const {
    if (begin < 0 || count < 0 || begin > view_.n - count)
        throw InvalidArgument(path_ + ": rows " + std::to_string(begin) + " + " + std::to_string(count) +
                              " are outside of 0 to " + std::to_string(view_.n));
    const std::size_t packed = std::size_t(view_.d) * size_of(view_.dtype);
    const std::size_t stride = std::size_t(view_.row_bytes());
    if (stride == packed) {
        const std::size_t offset = std::size_t(view_.row(begin) - file_->data());
        return file_->read(offset, std::size_t(count) * packed, out);
    }
    const std::int64_t chunk_rows = std::max<std::int64_t>(1, std::int64_t(kChunkBytes / stride));
    std::vector<std::byte> chunk(std::size_t(std::min(chunk_rows, count)) * stride);
    std::byte* to = static_cast<std::byte*>(out);
    for (std::int64_t first = begin; first < begin + count; first += chunk_rows) {
        const std::int64_t rows = std::min(chunk_rows, begin + count - first);
        file_->read(std::size_t(first) * stride, std::size_t(rows) * stride, chunk.data());
        for (std::int64_t i = 0; i < rows; ++i, to += packed) {
            const std::byte* row = chunk.data() + std::size_t(i) * stride;
            check_row(first + i, row);
            std::memcpy(to, row + kVecsHeader, packed);
        }
    }
}

void VectorFile::require_unchanged() const {
    file_->require_unchanged();
}

void VectorFile::check_row(std::int64_t row, const std::byte* bytes) const {
    const std::int32_t d = d_of(bytes);
    if (d != view_.d)
        throw IoError(path_ + ": row " + std::to_string(row) + " has d = " + std::to_string(d) +
                      ", the first row has " + std::to_string(view_.d));
}

VectorWriter::VectorWriter(const std::string& path, std::int64_t n, std::int64_t d, DType dtype)
    : format_(writable_format(path, n, d, dtype)),
      n_(n),
      d_(d),
      row_bytes_(std::size_t(d) * size_of(dtype)),
      file_(std::make_unique<detail::AtomicFile>(path)) {
    const Layout layout = info_of(format_).layout;
    if (layout == Layout::bin) {
        const std::int32_t shape[2] = {std::int32_t(n), std::int32_t(d)};
        file_->write(shape, sizeof shape);
    } else if (layout == Layout::npy) {
        const std::string header = detail::make_npy_header(n, d, dtype);
        file_->write(header.data(), header.size());
    }
}

VectorWriter::~VectorWriter() = default;
VectorWriter::VectorWriter(VectorWriter&&) noexcept = default;
VectorWriter& VectorWriter::operator=(VectorWriter&&) noexcept = default;

void VectorWriter::append(const void* rows, std::int64_t count) {
    if (count < 0 || count > n_ - written_)
        throw InvalidArgument(file_->path() + ": " + std::to_string(written_) + " + " + std::to_string(count) +
                              " rows appended, announced were " + std::to_string(n_));
    if (info_of(format_).layout == Layout::vecs) {
        const std::int32_t d = std::int32_t(d_);
        const std::byte* row = static_cast<const std::byte*>(rows);
        for (std::int64_t i = 0; i < count; ++i, row += row_bytes_) {
            file_->write(&d, sizeof d);
            file_->write(row, row_bytes_);
        }
    } else {
        file_->write(rows, std::size_t(count) * row_bytes_);
    }
    written_ += count;
}

void VectorWriter::commit() {
    if (written_ != n_)
        throw IoError(file_->path() + ": " + std::to_string(written_) + " rows appended, announced were " +
                      std::to_string(n_));
    file_->commit();
}

void write_vectors(const std::string& path, const VectorView& vectors) {
    VectorWriter writer(path, vectors.n, vectors.d, vectors.dtype);
    const std::int64_t packed = vectors.d * std::int64_t(size_of(vectors.dtype));
    if (vectors.row_bytes() == packed)
        writer.append(vectors.data, vectors.n);
    else
        for (std::int64_t i = 0; i < vectors.n; ++i) writer.append(vectors.row(i), 1);
    writer.commit();
}

}  // namespace gnnd::io

// SPDX-License-Identifier: MIT
#include "gnnd/io/vector_file.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <mutex>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/io/detail/atomic_file.h"
#include "gnnd/io/detail/digits.h"
#include "gnnd/io/detail/mapped_file.h"
#include "gnnd/io/detail/vector_layouts.h"
#include "gnnd/names.h"

namespace gnnd::io {

namespace {

constexpr std::size_t kFormats = std::size(kVectorFormats);

constexpr NameTable<VectorFormat, kFormats> kNames{"vector format",
                                                   {{
#define GNND_FORMAT(name, layout, dtype) {VectorFormat::name, #name},
                                                       GNND_VECTOR_FORMATS(GNND_FORMAT)
#undef GNND_FORMAT
                                                   }}};

const detail::Layout& layout_of(VectorFormat format) {
    switch (format) {
#define GNND_FORMAT(name, layout, dtype) \
    case VectorFormat::name:             \
        return detail::layout;
        GNND_VECTOR_FORMATS(GNND_FORMAT)
#undef GNND_FORMAT
    }
    throw InvalidArgument("unknown vector format number " + std::to_string(int(format)));
}

/// So much of a *vecs file is read at once before its rows are freed of their headers.
constexpr std::size_t kChunkBytes = 1 << 20;

std::string allowed(std::int64_t most) {
    return ", expected 1 to " + std::to_string(most);
}

/// The format of the path, provided that it holds n x d of that type.
VectorFormat writable_format(const std::string& path, std::int64_t n, std::int64_t d, DType dtype) {
    const VectorFormat format = format_of(path);
    const std::int64_t most = layout_of(format).most_rows;
    if (n < 1 || n > most) throw InvalidArgument(path + ": n = " + std::to_string(n) + allowed(most));
    if (d < 1 || d > kMaxDim) throw InvalidArgument(path + ": d = " + std::to_string(d) + allowed(kMaxDim));
    if (holds(format, dtype)) return format;
    const std::string type(name_of(dtype));
    std::string fitting;
    for (const VectorFormat other : kVectorFormats)
        if (holds(other, dtype)) fitting += (fitting.empty() ? "" : ", ") + std::string(name_of(other));
    const std::optional<DType> only = dtype_of(format);
    throw IoError(path + ": " + std::string(name_of(format)) + " holds " +
                  (only ? std::string(name_of(*only)) + " only" : "no " + type) + "; for " + type + " use " + fitting);
}

/// What is done once, and throws the same whenever it is asked for.
class Once {
  public:
    /// Nothing is thrown inside: with some C libraries, and under the thread sanitizer, the next call would wait for
    /// ever (GCC bug 66146).
    template <class Action>
    void operator()(const Action& action) {
        std::call_once(flag_, [&]() noexcept {
            try {
                action();
            } catch (...) {
                error_ = std::current_exception();
            }
        });
        if (error_) std::rethrow_exception(error_);
    }

  private:
    std::once_flag flag_;
    std::exception_ptr error_;
};

VectorView view_of(const detail::FileShape& shape, const detail::MappedFile& file) {
    return {shape.mapped() ? file.data() + shape.offset : nullptr, shape.n, shape.d, shape.dtype, shape.stride};
}

}  // namespace

std::string_view name_of(VectorFormat format) {
    return kNames.name_of(format);
}

std::optional<DType> dtype_of(VectorFormat format) {
    using enum DType;
    [[maybe_unused]] constexpr std::nullopt_t any = std::nullopt;
    switch (format) {
#define GNND_FORMAT(name, layout, dtype) \
    case VectorFormat::name:             \
        return dtype;
        GNND_VECTOR_FORMATS(GNND_FORMAT)
#undef GNND_FORMAT
    }
    throw InvalidArgument("unknown vector format number " + std::to_string(int(format)));
}

bool holds(VectorFormat format, DType dtype) {
    return dtype_of(format).value_or(dtype) == dtype && layout_of(format).holds(dtype);
}

VectorFormat bin_format_of(DType dtype) {
    for (const VectorFormat format : kVectorFormats)
        if (&layout_of(format) == &detail::kBinLayout && dtype_of(format) == dtype) return format;
    throw InvalidArgument("no *bin format of type number " + std::to_string(int(dtype)));
}

VectorFormat parse_vector_format(std::string_view name) {
    return kNames.parse(name);
}

VectorFormat format_of(const std::string& path) {
    std::string extension = std::filesystem::path(path).extension();
    if (!extension.empty()) extension.erase(0, 1);
    std::string lower = extension;
    for (char& letter : lower)
        if (letter >= 'A' && letter <= 'Z') letter = char(letter - 'A' + 'a');
    if (const auto format = kNames.find(lower)) return *format;
    throw IoError(path + ": " + (extension.empty() ? "no extension" : "unknown extension '" + extension + "'") +
                  ", known vector formats are " + kNames.known());
}

/// The findings of view() and require_digits(), and the rows that view() has made.
struct VectorFile::Contents {
    detail::MappedFile file;
    detail::FileShape shape;
    Once looked_at, digits;
    std::vector<std::byte> converted;

    Contents(const std::string& path, VectorFormat format)
        : file(path), shape(layout_of(format).open(path, file, dtype_of(format))) {}
};

VectorFile::VectorFile(const std::string& path)
    : path_(path),
      format_(format_of(path)),
      contents_(std::make_unique<Contents>(path, format_)),
      view_(view_of(contents_->shape, contents_->file)) {}

VectorFile::~VectorFile() = default;
VectorFile::VectorFile(VectorFile&&) noexcept = default;
VectorFile& VectorFile::operator=(VectorFile&&) noexcept = default;

std::string VectorFile::converted_from() const {
    const detail::FileShape& shape = contents_->shape;
    std::string text = is_wide() ? "float64" : shape.stored == detail::StoredAs::int64 ? "int64" : "";
    if (is_by_columns()) text += text.empty() ? "Fortran order" : ", Fortran order";
    return text;
}

void VectorFile::require_digits() const {
    Contents& contents = *contents_;
    if (!is_wide()) return;
    contents.digits([&] { detail::require_digits(path_, contents.file, contents.shape); });
}

const VectorView& VectorFile::view() const {
    Contents& contents = *contents_;
    require_digits();
    if (contents.shape.mapped() && view_.stride == 0) return view_;
    contents.looked_at([&] {
        if (contents.shape.mapped()) {
            for (std::int64_t i = 0; i < view_.n; ++i)
                detail::check_row_header(path_, i, view_.row(i) - layout_of(format_).row_header, view_.d);
            return;
        }
        contents.converted.resize(std::size_t(view_.n * view_.row_bytes()));
        detail::read_converted(path_, contents.file, contents.shape, 0, view_.n, contents.converted.data());
        view_.data = contents.converted.data();
    });
    return view_;
}

void VectorFile::require_range(std::int64_t begin, std::int64_t count) const {
    if (begin < 0 || count < 0 || begin > view_.n - count)
        throw InvalidArgument(path_ + ": rows " + std::to_string(begin) + " + " + std::to_string(count) +
                              " are outside of 0 to " + std::to_string(view_.n));
}

void VectorFile::read(std::int64_t begin, std::int64_t count, void* out) const {
    require_range(begin, count);
    require_digits();
    const detail::MappedFile& file = contents_->file;
    const detail::FileShape& shape = contents_->shape;
    std::byte* to = static_cast<std::byte*>(out);
    if (!shape.mapped()) return detail::read_converted(path_, file, shape, begin, count, to);
    const std::size_t packed = std::size_t(shape.d) * size_of(shape.dtype);
    if (shape.stride == 0)
        return file.read(shape.offset + std::size_t(begin) * packed, std::size_t(count) * packed, out);
    const std::size_t stride = std::size_t(shape.stride), header = stride - packed;
    const std::int64_t chunk_rows = std::max<std::int64_t>(1, std::int64_t(kChunkBytes / stride));
    std::vector<std::byte> chunk(std::size_t(std::min(chunk_rows, count)) * stride);
    for (std::int64_t first = begin; first < begin + count; first += chunk_rows) {
        const std::int64_t rows = std::min(chunk_rows, begin + count - first);
        file.read(std::size_t(first) * stride, std::size_t(rows) * stride, chunk.data());
        for (std::int64_t i = 0; i < rows; ++i, to += packed) {
            const std::byte* row = chunk.data() + std::size_t(i) * stride;
            detail::check_row_header(path_, first + i, row, view_.d);
            std::memcpy(to, row + header, packed);
        }
    }
}

bool VectorFile::is_wide() const {
    return contents_->shape.stored == detail::StoredAs::float64;
}

bool VectorFile::is_by_columns() const {
    return contents_->shape.fortran_order;
}

void VectorFile::read_wide(std::int64_t row, double* out) const {
    require_range(row, 1);
    detail::read_stored(contents_->file, contents_->shape, row, 1, reinterpret_cast<std::byte*>(out));
}

void VectorFile::require_unchanged() const {
    contents_->file.require_unchanged();
}

VectorWriter::VectorWriter(const std::string& path, std::int64_t n, std::int64_t d, DType dtype)
    : format_(writable_format(path, n, d, dtype)),
      n_(n),
      d_(d),
      row_bytes_(std::size_t(d) * size_of(dtype)),
      file_(std::make_unique<detail::AtomicFile>(path)) {
    const std::string header = layout_of(format_).header(n, d, dtype);
    header_bytes_ = header.size();
    file_->write(header.data(), header.size());
}

VectorWriter::~VectorWriter() = default;
VectorWriter::VectorWriter(VectorWriter&&) noexcept = default;
VectorWriter& VectorWriter::operator=(VectorWriter&&) noexcept = default;

void VectorWriter::append(const void* rows, std::int64_t count) {
    if (count < 0 || count > n_ - written_)
        throw InvalidArgument(file_->path() + ": " + std::to_string(written_) + " + " + std::to_string(count) +
                              " rows appended, announced were " + std::to_string(n_));
    if (layout_of(format_).row_header != 0) {
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

void VectorWriter::put(std::int64_t begin, const void* rows, std::int64_t count) {
    if (layout_of(format_).row_header != 0)
        throw InvalidArgument(file_->path() + ": rows of this format can only be appended");
    if (begin < 0 || count < 0 || begin > n_ - count || written_ > n_ - count)
        throw InvalidArgument(file_->path() + ": rows " + std::to_string(begin) + " + " + std::to_string(count) +
                              " put after " + std::to_string(written_) + ", announced were " + std::to_string(n_));
    file_->write_at(header_bytes_ + std::size_t(begin) * row_bytes_, rows, std::size_t(count) * row_bytes_);
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

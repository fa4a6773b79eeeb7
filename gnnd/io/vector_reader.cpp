// SPDX-License-Identifier: MIT
#include "gnnd/io/vector_reader.h"

#include <utility>

#include "gnnd/detail/checks.h"
#include "gnnd/error.h"

namespace gnnd::io {

VectorReader::VectorReader(const VectorFile& file) : n_(file.n()), d_(file.d()), dtype_(file.dtype()), file_(&file) {
    file.require_digits();  // before anything is made of it
}

VectorReader::VectorReader(std::int64_t n, std::int64_t d, DType dtype, ReadVectors read)
    : n_(n), d_(d), dtype_(dtype), read_(std::move(read)) {
    gnnd::detail::check_range("VectorReader", "n", n, std::int64_t(1), kMaxShardedObjects);
    gnnd::detail::check_range("VectorReader", "d", d, std::int64_t(1), kMaxDim);
    if (!read_) throw InvalidArgument("VectorReader: there is no function that reads");
}

std::string VectorReader::name() const {
    return file_ != nullptr ? file_->path() : "the base";
}

void VectorReader::read(std::int64_t begin, std::int64_t count, void* out) const {
    if (file_ != nullptr) return file_->read(begin, count, out);
    if (begin < 0 || count < 0 || begin > n_ - count)
        throw InvalidArgument("rows " + std::to_string(begin) + " + " + std::to_string(count) + " of " + name() +
                              " are outside of 0 to " + std::to_string(n_));
    if (count > 0) read_(begin, count, static_cast<std::byte*>(out));
}

}  // namespace gnnd::io

// SPDX-License-Identifier: MIT
#include "gnnd/io/base_identity.h"

#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/io/vector_file.h"
#include "gnnd/io/vector_reader.h"

namespace gnnd::io {

namespace {

// Both are part of the graph file format and never change.
constexpr std::int64_t kBlocks = 64;
constexpr std::int64_t kBlockBytes = 1 << 16;

std::int64_t block_rows_of(std::int64_t d, DType dtype) {
    return std::max<std::int64_t>(1, kBlockBytes / (d * std::int64_t(size_of(dtype))));
}

std::string differing(const char* what, std::string_view found, std::string_view expected) {
    return std::string(what).append(" is ").append(found).append(", expected ").append(expected);
}

/// All rows where they fit into kBlocks blocks of as many rows as kBlockBytes hold, but at least one; otherwise
/// kBlocks blocks at equal distances, of which the first begins with the first row and the last ends with the last.
/// \param rows  rows(begin, count) gives them one after the other
template <class Rows>
BaseIdentity identify_rows(std::int64_t n, std::int64_t d, DType dtype, const Rows& rows) {
    const std::int64_t row_bytes = d * std::int64_t(size_of(dtype)), block_rows = block_rows_of(d, dtype);
    const bool all = n <= kBlocks * block_rows;
    const std::int64_t blocks = all ? (n + block_rows - 1) / block_rows : kBlocks;
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    for (std::int64_t b = 0; b < blocks; ++b) {
        const std::int64_t begin = all ? b * block_rows : (n - block_rows) * b / (kBlocks - 1);
        const std::int64_t count = std::min(block_rows, n - begin);
        XXH3_64bits_update(&state, rows(begin, count), std::size_t(count * row_bytes));
    }
    return {n, d, dtype, XXH3_64bits_digest(&state)};
}

}  // namespace

BaseIdentity identify(std::int64_t n, std::int64_t d, DType dtype, const ReadVectors& read) {
    std::vector<std::byte> block(std::size_t(std::min(n, block_rows_of(d, dtype)) * d) * size_of(dtype));
    return identify_rows(n, d, dtype, [&](std::int64_t begin, std::int64_t count) {
        read(begin, count, block.data());
        return static_cast<const void*>(block.data());
    });
}

std::string BaseIdentity::difference(const BaseIdentity& other) const {
    if (other.n != n) return differing("n", std::to_string(other.n), std::to_string(n));
    if (other.d != d) return differing("d", std::to_string(other.d), std::to_string(d));
    if (other.dtype != dtype) return differing("dtype", name_of(other.dtype), name_of(dtype));
    return other.checksum == checksum ? "" : "the vectors are others";
}

BaseIdentity identify(const VectorView& vectors) {
    const std::int64_t row_bytes = vectors.d * std::int64_t(size_of(vectors.dtype));
    if (vectors.n < 2 || vectors.row(1) == vectors.row(0) + row_bytes)
        return identify_rows(vectors.n, vectors.d, vectors.dtype,
                             [&](std::int64_t begin, std::int64_t) { return vectors.row(begin); });
    return identify(vectors.n, vectors.d, vectors.dtype, [&](std::int64_t begin, std::int64_t count, std::byte* out) {
        for (std::int64_t i = begin; i < begin + count; ++i, out += row_bytes)
            std::copy_n(vectors.row(i), row_bytes, out);
    });
}

BaseIdentity identify(const VectorFile& file) {
    return identify(std::span(&file, 1));
}

BaseIdentity identify(const VectorReader& vectors) {
    return identify(vectors.n(), vectors.d(), vectors.dtype(),
                    [&](std::int64_t begin, std::int64_t count, std::byte* out) { vectors.read(begin, count, out); });
}

BaseIdentity identify(std::span<const VectorFile> files) {
    const VectorFile& first = files.front();
    std::int64_t n = 0;
    for (const VectorFile& file : files) {
        if (file.d() != first.d() || file.dtype() != first.dtype())
            throw InvalidArgument(file.path() + " holds vectors of " + std::to_string(file.d()) + " " +
                                  std::string(name_of(file.dtype())) + ", " + first.path() + " of " +
                                  std::to_string(first.d()) + " " + std::string(name_of(first.dtype())));
        n += file.n();
    }
    return identify(n, first.d(), first.dtype(), [&](std::int64_t begin, std::int64_t count, std::byte* out) {
        for (const VectorFile& file : files) {
            const std::int64_t rows = std::clamp<std::int64_t>(file.n() - begin, 0, count);
            if (rows > 0) {
                file.read(begin, rows, out);
                out += rows * file.d() * std::int64_t(size_of(file.dtype()));
                begin += rows;
                count -= rows;
            }
            begin -= file.n();
        }
    });
}

void require_base_of(const std::string& graph_path, const BaseIdentity& expected, const std::string& base_path,
                     const BaseIdentity& found) {
    const std::string difference = expected.difference(found);
    if (!difference.empty()) throw InvalidArgument(graph_path + " was not built from " + base_path + ": " + difference);
}

}  // namespace gnnd::io

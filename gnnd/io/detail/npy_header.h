// SPDX-License-Identifier: MIT
#pragma once
/// \file npy_header.h
/// NumPy's array header: a magic string, a version, a length and a Python dict literal.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gnnd/dtype.h"
#include "gnnd/error.h"
#include "gnnd/io/detail/mapped_file.h"
#include "gnnd/io/detail/vector_layouts.h"

namespace gnnd::io::detail {

/// The types that arrays may have, without their byte order.
struct NpyType {
    std::string_view descr;
    DType dtype;
    StoredAs stored;
};
inline constexpr NpyType kNpyTypes[] = {{"f4", DType::f32, StoredAs::same},    {"f2", DType::f16, StoredAs::same},
                                        {"u1", DType::u8, StoredAs::same},     {"b1", DType::u8, StoredAs::same},
                                        {"i1", DType::i8, StoredAs::same},     {"i4", DType::i32, StoredAs::same},
                                        {"f8", DType::f32, StoredAs::float64}, {"i8", DType::i32, StoredAs::int64}};

/// As NumPy writes it. The byte order of a single byte means nothing.
inline std::string full_descr(const NpyType& type) {
    return std::string(1, type.descr.ends_with('1') ? '|' : '<').append(type.descr);
}

/// Type of the array of such components, or null.
inline const NpyType* npy_type_of(DType dtype) {
    for (const NpyType& type : kNpyTypes)
        if (type.dtype == dtype && type.stored == StoredAs::same) return &type;
    return nullptr;
}

inline bool npy_holds(DType dtype) {
    return npy_type_of(dtype) != nullptr;
}

/// Reads the few literals that a header may hold.
class NpyParser {
  public:
    NpyParser(const std::string& path, std::string_view text) : path_(path), text_(text) {}

    FileShape parse() {
        const NpyType* type = nullptr;
        std::optional<std::vector<std::int64_t>> shape;
        std::optional<bool> fortran_order;
        expect('{');
        while (!accept('}')) {
            const std::string_view key = string();
            expect(':');
            if (key == "descr")
                type = &parse_type();
            else if (key == "shape")
                shape = parse_shape();
            else if (key == "fortran_order")
                fortran_order = parse_bool();
            else
                fail("unknown key '" + std::string(key) + "'");
            if (accept(',')) continue;
            expect('}');
            break;
        }
        skip_space();
        if (at_ != text_.size()) fail("text after the closing brace");
        if (type == nullptr || !shape || !fortran_order) fail("descr, fortran_order or shape is missing");
        if (shape->size() != 2)
            fail("the array has " + std::to_string(shape->size()) + " dimensions, expected 2 (n x d)");
        FileShape result;
        result.n = (*shape)[0];
        result.d = (*shape)[1];
        result.dtype = type->dtype;
        result.stored = type->stored;
        result.fortran_order = *fortran_order && result.n > 1 && result.d > 1;
        return result;
    }

  private:
    [[noreturn]] void fail(const std::string& what) const { throw IoError(path_ + ": npy header: " + what); }

    void skip_space() {
        while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
    }
    bool accept(char wanted) {
        skip_space();
        if (at_ == text_.size() || text_[at_] != wanted) return false;
        ++at_;
        return true;
    }
    void expect(char wanted) {
        if (!accept(wanted)) fail(std::string("expected '") + wanted + "' at character " + std::to_string(at_));
    }
    bool accept_word(std::string_view word) {
        skip_space();
        if (text_.substr(at_, word.size()) != word) return false;
        at_ += word.size();
        return true;
    }

    std::string_view string() {
        const char quote = accept('\'') ? '\'' : '"';
        if (quote == '"') expect('"');
        const std::size_t end = text_.find(quote, at_);
        if (end == std::string_view::npos) fail("a string does not end");
        const std::string_view result = text_.substr(at_, end - at_);
        at_ = end + 1;
        return result;
    }

    bool parse_bool() {
        if (accept_word("True")) return true;
        if (!accept_word("False")) fail("fortran_order is neither True nor False");
        return false;
    }

    std::vector<std::int64_t> parse_shape() {
        std::vector<std::int64_t> shape;
        expect('(');
        while (!accept(')')) {
            skip_space();
            std::int64_t extent = 0;
            const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
            if (error != std::errc()) fail("the shape holds something else than 64-bit integers");
            at_ = std::size_t(end - text_.data());
            accept_word("L");  // Python 2 marks long integers
            shape.push_back(extent);
            if (accept(',')) continue;
            expect(')');
            break;
        }
        return shape;
    }

    static std::string known_types() {
        std::string known;
        for (const NpyType& type : kNpyTypes) known += (known.empty() ? "" : ", ") + full_descr(type);
        return known;
    }

    const NpyType& parse_type() {
        skip_space();
        if (at_ < text_.size() && text_[at_] == '[') fail("a structured dtype, expected one of " + known_types());
        const std::string_view descr = string();
        std::string_view name = descr;
        const bool has_order = !name.empty() && std::string_view("<>|=").find(name[0]) != std::string_view::npos;
        const char order = has_order ? name[0] : '=';
        if (has_order) name.remove_prefix(1);
        // "=" and none are the machine's own order, which is little-endian.
        for (const NpyType& type : kNpyTypes)
            if (type.descr == name && (order == '<' || order == '=' || name.ends_with('1'))) return type;
        fail("dtype '" + std::string(descr) + "', expected one of " + known_types());
    }

    const std::string& path_;
    std::string_view text_;
    std::size_t at_ = 0;
};

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

/// \throws IoError unless the file starts with the header of a two-dimensional array of a known type
inline FileShape read_npy_header(const std::string& path, const MappedFile& file) {
    constexpr std::size_t kMaxHeader = 1 << 16;  // a header of two dimensions takes some 100 characters
    unsigned char start[12] = {};
    file.read(0, std::min<std::size_t>(file.size(), sizeof start), start);
    if (std::string_view(reinterpret_cast<const char*>(start), kNpyMagic.size()) != kNpyMagic)
        throw IoError(path + ": not an npy file, it does not start with \\x93NUMPY");
    const int version = start[6];
    if (version < 1 || version > 3)
        throw IoError(path + ": npy format version " + std::to_string(version) + ", known are 1, 2 and 3");
    const std::size_t text_offset = version == 1 ? 10 : 12;
    std::size_t length = start[8] | std::size_t(start[9]) << 8;
    if (version > 1) length |= std::size_t(start[10]) << 16 | std::size_t(start[11]) << 24;
    if (length > kMaxHeader)
        throw IoError(path + ": npy header of " + std::to_string(length) + " bytes, expected at most " +
                      std::to_string(kMaxHeader));
    if (file.size() < text_offset + length)
        throw IoError(path + ": npy header says it ends at byte " + std::to_string(text_offset + length) +
                      ", the file has " + std::to_string(file.size()));
    std::string text(length, '\0');
    file.read(text_offset, length, text.data());
    FileShape shape = NpyParser(path, text).parse();
    shape.offset = text_offset + length;
    return shape;
}

/// A version 1 header whose data starts at a multiple of 64 bytes, as NumPy writes it.
/// \param descr  NumPy's name of the type
/// \param shape  a Python tuple
inline std::string npy_header_of(const std::string& descr, const std::string& shape) {
    std::string text = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
    text.append(63 - (10 + text.size()) % 64, ' ');
    text += '\n';
    std::string header(kNpyMagic);
    header += {'\1', '\0', char(text.size() & 0xff), char(text.size() >> 8)};
    return header + text;
}

/// Of an array of n x d.
inline std::string make_npy_header(std::int64_t n, std::int64_t d, DType dtype) {
    return npy_header_of(full_descr(*npy_type_of(dtype)),
                         std::string("(").append(std::to_string(n)).append(", ").append(std::to_string(d)).append(")"));
}

}  // namespace gnnd::io::detail

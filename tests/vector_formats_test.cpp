// SPDX-License-Identifier: MIT
// Vector files of every format: written and read back, whole and by range, cut short, and with rows missing.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/io/vector_file.h"
#include "tests/io_conditions.h"
#include "tests/temp_dir.h"

namespace gnnd::io {
namespace {

using test::message_of;
using test::read_bytes;
using test::TempDir;
using test::write_bytes;

struct Case {
    const char* extension;
    VectorFormat format;
    DType dtype;

    std::string name() const { return std::string("file.") + extension; }
    bool is_vecs() const { return name().ends_with("vecs") || name().ends_with("VECS"); }
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << c.extension << "_" << name_of(c.dtype);
}

constexpr Case kCases[] = {
    {"fvecs", VectorFormat::fvecs, DType::f32},   {"bvecs", VectorFormat::bvecs, DType::u8},
    {"ivecs", VectorFormat::ivecs, DType::i32},   {"fbin", VectorFormat::fbin, DType::f32},
    {"u8bin", VectorFormat::u8bin, DType::u8},    {"i8bin", VectorFormat::i8bin, DType::i8},
    {"ibin", VectorFormat::ibin, DType::i32},     {"npy", VectorFormat::npy, DType::f32},
    {"npy", VectorFormat::npy, DType::f16},       {"npy", VectorFormat::npy, DType::u8},
    {"npy", VectorFormat::npy, DType::i8},        {"npy", VectorFormat::npy, DType::i32},
    {"f16bin", VectorFormat::f16bin, DType::f16}, {"bf16bin", VectorFormat::bf16bin, DType::bf16},
    {"FVECS", VectorFormat::fvecs, DType::f32},   {"u8Bin", VectorFormat::u8bin, DType::u8},
};

std::string random_bytes(std::int64_t count) {
    std::uint32_t state = std::uint32_t(count) + 1;
    std::string bytes(std::size_t(count), '\0');
    for (char& byte : bytes) byte = char((state = state * 1664525u + 1013904223u) >> 24);
    return bytes;
}

class EveryFormat : public ::testing::TestWithParam<Case> {
  protected:
    std::int64_t size() const { return std::int64_t(size_of(GetParam().dtype)); }
    /// Writes n x d random components and returns their bytes.
    std::string write(std::int64_t n, std::int64_t d) const {
        const std::string bytes = random_bytes(n * d * size());
        write_vectors(path_, {bytes.data(), n, d, GetParam().dtype, 0});
        return bytes;
    }
    /// Reads the rows by range and compares them with the part of the bytes that was written.
    void expect_range(const VectorFile& file, const std::string& bytes, std::int64_t begin, std::int64_t count) const {
        const std::size_t row = std::size_t(file.d() * size());
        std::string out(std::size_t(count) * row + 1, 'x');
        file.read(begin, count, out.data());
        EXPECT_EQ(out.back(), 'x') << "wrote past the end";
        out.pop_back();
        EXPECT_TRUE(out == bytes.substr(std::size_t(begin) * row, std::size_t(count) * row))
            << "rows " << begin << " + " << count;
    }

    TempDir dir_;
    const std::string path_ = dir_.file(GetParam().name());
};

INSTANTIATE_TEST_SUITE_P(Formats, EveryFormat, ::testing::ValuesIn(kCases), ::testing::PrintToStringParamName());

TEST_P(EveryFormat, RoundTripsByViewAndByRange) {
    for (const std::int64_t n : {1, 2, 7, 500})
        for (const std::int64_t d : {1, 3, 31, 128, 960}) {
            SCOPED_TRACE(testing::Message() << n << " x " << d);
            const std::string bytes = write(n, d);
            const VectorFile file(path_);
            EXPECT_EQ(file.path(), path_);
            EXPECT_EQ(file.format(), GetParam().format);
            EXPECT_EQ(file.dtype(), GetParam().dtype);
            ASSERT_EQ(file.n(), n);
            ASSERT_EQ(file.d(), d);
            const std::size_t row = std::size_t(d * size());
            for (std::int64_t i = 0; i < n; ++i)
                ASSERT_EQ(std::memcmp(file.view().row(i), bytes.data() + std::size_t(i) * row, row), 0) << i;
            expect_range(file, bytes, 0, n);
            expect_range(file, bytes, n / 2, n - n / 2);
            expect_range(file, bytes, n - 1, 1);
            expect_range(file, bytes, n, 0);
        }
    EXPECT_EQ(dir_.entries(), 1u);
}

TEST_P(EveryFormat, WritesViewsWithAStrideAndRowsInPieces) {
    const std::int64_t n = 5, d = 6, stride = (d + 1) * size();
    const std::string padded = random_bytes(n * stride);
    const VectorView view{padded.data(), n, d, GetParam().dtype, stride};
    write_vectors(path_, view);
    const std::string whole = read_bytes(path_);
    VectorWriter writer(path_, n, d, GetParam().dtype);
    for (std::int64_t i = 0; i < n; ++i) writer.append(view.row(i), 1);
    writer.append(nullptr, 0);
    writer.commit();
    EXPECT_EQ(read_bytes(path_), whole);
    const VectorFile file(path_);
    for (std::int64_t i = 0; i < n; ++i)
        EXPECT_EQ(std::memcmp(file.view().row(i), view.row(i), std::size_t(d * size())), 0) << i;
}

TEST_P(EveryFormat, RangesCrossTheChunksOfTheReader) {
    const std::int64_t d = 1000, n = 1200;
    const std::string bytes = write(n, d);
    const VectorFile file(path_);
    expect_range(file, bytes, 0, n);
    expect_range(file, bytes, 17, 1170);
}

TEST_P(EveryFormat, LargestDimension) {
    const std::string bytes = write(2, kMaxDim);
    expect_range(VectorFile(path_), bytes, 0, 2);
    EXPECT_THROW(write(1, kMaxDim + 1), InvalidArgument);
}

TEST_P(EveryFormat, RefusesRowsOutside) {
    write(4, 3);
    const VectorFile file(path_);
    char out[64];
    EXPECT_THROW(file.read(-1, 1, out), InvalidArgument);
    EXPECT_THROW(file.read(0, -1, out), InvalidArgument);
    EXPECT_THROW(file.read(3, 2, out), InvalidArgument);
    EXPECT_THROW(file.read(5, 0, out), InvalidArgument);
    EXPECT_THROW(file.read(std::numeric_limits<std::int64_t>::max(), 1, out), InvalidArgument);
    EXPECT_EQ(message_of<InvalidArgument>([&] { file.read(3, 2, out); }), path_ + ": rows 3 + 2 are outside of 0 to 4");
}

// A *vecs file that ends after a whole row is a valid shorter file; nothing in it says how many rows there were.
TEST_P(EveryFormat, RefusesEveryOtherLength) {
    const std::int64_t n = 3, d = 5;
    write(n, d);
    const std::string bytes = read_bytes(path_);
    const std::size_t vecs_row = 4 + std::size_t(d * size());
    for (std::size_t length = 0; length < bytes.size() + 9; ++length) {
        if (length == bytes.size()) continue;
        std::string other = bytes;
        other.resize(length);
        write_bytes(path_, other);
        if (GetParam().is_vecs() && length > 0 && length % vecs_row == 0)
            EXPECT_EQ(VectorFile(path_).n(), std::int64_t(length / vecs_row));
        else
            EXPECT_THROW(VectorFile{path_}, IoError) << length;
    }
}

TEST_P(EveryFormat, TruncatedAfterOpening) {
    write(100, 100);
    const VectorFile file(path_);
    std::filesystem::resize_file(path_, 5000);
    std::string out(std::size_t(100 * 100 * size()), '\0');
    EXPECT_THROW(file.read(0, 100, out.data()), IoError);
    EXPECT_THROW(file.read(99, 1, out.data()), IoError);
}

TEST_P(EveryFormat, FullDiskKeepsTheOldFile) {
    const std::string old = write(2, 2), bytes = random_bytes(300 * 1000 * size());
    const std::string before = read_bytes(path_);
    std::string message;
    {
        const test::FullDisk disk(100000);
        message = message_of<IoError>([&] { write_vectors(path_, {bytes.data(), 300, 1000, GetParam().dtype, 0}); });
    }
    EXPECT_EQ(message, path_ + ": cannot write: File too large");
    EXPECT_EQ(read_bytes(path_), before);
    EXPECT_EQ(dir_.entries(), 1u);
}

TEST_P(EveryFormat, WriterCountsItsRows) {
    write(2, 2);
    const std::string before = read_bytes(path_), rows(64, '\0');
    {
        VectorWriter writer(path_, 3, 2, GetParam().dtype);
        writer.append(rows.data(), 2);
        EXPECT_EQ(message_of<InvalidArgument>([&] { writer.append(rows.data(), 2); }),
                  path_ + ": 2 + 2 rows appended, announced were 3");
        EXPECT_THROW(writer.append(rows.data(), -1), InvalidArgument);
        EXPECT_EQ(message_of<IoError>([&] { writer.commit(); }), path_ + ": 2 rows appended, announced were 3");
    }
    EXPECT_EQ(read_bytes(path_), before);
    EXPECT_EQ(dir_.entries(), 1u);
}

TEST_P(EveryFormat, WriterPutsRowsInAnyOrder) {
    write(5, 3);
    const std::string whole = read_bytes(path_);
    const VectorFile file(path_);
    std::vector<std::string> rows;
    for (std::int64_t i = 0; i < 5; ++i) {
        rows.emplace_back(3 * size_of(file.dtype()), '\0');
        file.read(i, 1, rows.back().data());
    }
    const std::string last = rows[3] + rows[4], put_path = dir_.file("put." + std::string(name_of(file.format())));
    {
        VectorWriter writer(put_path, 5, 3, file.dtype());
        if (put_path.ends_with("vecs")) {
            EXPECT_EQ(message_of<InvalidArgument>([&] { writer.put(0, rows[0].data(), 1); }),
                      put_path + ": rows of this format can only be appended");
            return;
        }
        writer.put(3, last.data(), 2);
        writer.put(0, rows[0].data(), 1);
        writer.put(2, rows[2].data(), 1);
        EXPECT_THROW(writer.put(-1, rows[1].data(), 1), InvalidArgument);
        EXPECT_THROW(writer.put(4, last.data(), 2), InvalidArgument);
        EXPECT_EQ(message_of<InvalidArgument>([&] { writer.put(0, last.data(), 2); }),
                  put_path + ": rows 0 + 2 put after 4, announced were 5");
        EXPECT_THROW(writer.commit(), IoError) << "one is missing";
        writer.put(1, rows[1].data(), 1);
        writer.commit();
    }
    EXPECT_EQ(read_bytes(put_path), whole);
    const test::FullDisk disk(10);
    VectorWriter writer(put_path, 5, 3, file.dtype());
    EXPECT_NE(message_of<IoError>([&] { writer.put(4, rows[4].data(), 1); }).find("File too large"), std::string::npos);
}

}  // namespace
}  // namespace gnnd::io

// SPDX-License-Identifier: MIT
// Vector files written and read back, whole and by range. Files that are refused are in vector_file_errors_test.cpp.
#include "gnnd/io/vector_file.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/io/detail/mapped_file.h"
#include "tests/io_conditions.h"
#include "tests/temp_dir.h"

namespace gnnd::io {
namespace {

using test::bytes_of;
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

TEST(VectorFile, BytesAreThoseOfTheFormats) {
    const TempDir dir;
    const std::int32_t ids[] = {1, 2, 3, 4};
    write_vectors(dir.file("a.ivecs"), {ids, 2, 2, DType::i32, 0});
    EXPECT_EQ(read_bytes(dir.file("a.ivecs")), bytes_of({2, 1, 2, 2, 3, 4}));
    write_vectors(dir.file("a.ibin"), {ids, 2, 2, DType::i32, 0});
    EXPECT_EQ(read_bytes(dir.file("a.ibin")), bytes_of({2, 2, 1, 2, 3, 4}));
    // What NumPy 2.4 saves for a (2, 2) array of int32.
    write_vectors(dir.file("a.npy"), {ids, 2, 2, DType::i32, 0});
    EXPECT_EQ(read_bytes(dir.file("a.npy")), std::string("\x93NUMPY\x01\x00v\x00", 10) +
                                                 "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 2), }" +
                                                 std::string(58, ' ') + "\n" + bytes_of({1, 2, 3, 4}));
}

TEST(VectorFile, TheSampleOfTheRepository) {
    const VectorFile file(std::string(GNND_TEST_DATA) + "/photosift20k.u8bin");
    EXPECT_EQ(file.n(), 20000);
    EXPECT_EQ(file.d(), 128);
    EXPECT_EQ(file.dtype(), DType::u8);
}

TEST(VectorFile, OffsetsPass32Bits) {
    const TempDir dir;
    const std::string path = dir.file("a.u8bin");
    const std::int32_t n = 40000000, d = 128;
    write_bytes(path, bytes_of({n, d}));
    std::error_code error;
    std::filesystem::resize_file(path, 8 + std::uintmax_t(n) * d, error);
    if (error) GTEST_SKIP() << "no sparse files of 5 GB here: " << error.message();
    {
        std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
        out.seekp(8 + std::int64_t(n - 1) * d);
        out.write("last row", 8);
    }
    const VectorFile file(path);
    char row[128];
    file.read(n - 1, 1, row);
    EXPECT_EQ(std::string(row, 8), "last row");
    EXPECT_EQ(std::memcmp(file.view().row(n - 1), row, sizeof row), 0);
}

// A sparse file, too.
TEST(VectorFile, RowsPass2To31) {
    const TempDir dir;
    const std::string path = dir.file("a.u8bin");
    constexpr std::uint32_t kRows = 3'000'000'000, kDim = 1;
    const std::uint32_t header[2] = {kRows, kDim};
    write_bytes(path, std::string(reinterpret_cast<const char*>(header), sizeof header));
    std::filesystem::resize_file(path, sizeof header + std::size_t(kRows));
    const VectorFile file(path);
    EXPECT_EQ(file.n(), kRows);
    char rows[3] = {1, 1, 1};
    file.read(std::int64_t(kRows) - 3, 3, rows);
    EXPECT_EQ(rows[2], 0);
    EXPECT_THROW(file.read(std::int64_t(kRows) - 2, 3, rows), InvalidArgument);
    // Written as it was: nobody reads the rest of it.
    VectorWriter writer(dir.file("b.u8bin"), kRows, kDim, DType::u8);
    EXPECT_THROW(writer.commit(), IoError) << "no row was appended";
}

TEST(VectorFile, ARowOfAnotherDimension) {
    const TempDir dir;
    const std::string path = dir.file("a.ivecs");
    std::string bytes;
    for (int i = 0; i < 1000; ++i) bytes += bytes_of({i == 2 ? 2 : 1, 10 + i});
    write_bytes(path, bytes);
    const VectorFile file(path);  // which looks at a few rows only
    std::int32_t out[4] = {};
    file.read(0, 2, out);
    EXPECT_EQ(out[1], 11);
    file.read(3, 1, out);
    EXPECT_EQ(out[0], 13);
    const std::string message = path + ": row 2 has d = 2, the first row has 1";
    EXPECT_EQ(message_of<IoError>([&] { file.read(1, 3, out); }), message);
    for (int call = 0; call < 2; ++call) EXPECT_EQ(message_of<IoError>([&] { file.view(); }), message);
}

TEST(VectorFile, ConvertsWhatNumPyWrites) {
    const TempDir dir;
    const std::int64_t n = 3000, d = 500;  // more than is converted at once
    const auto value = [](std::int64_t i, std::int64_t j) { return i * 1000 + j; };
    const auto check = [&](const char* descr, bool fortran, auto stored, auto expected, const char* from) {
        SCOPED_TRACE(from);
        std::string dict = std::string("{'descr': '") + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
                           ", 'shape': (3000, 500)}";
        dict.resize(118, ' ');
        std::vector<decltype(stored)> values(n * d);
        for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = 0; j < d; ++j)
                values[fortran ? j * n + i : i * d + j] = decltype(stored)(value(i, j));
        const std::string path = dir.file("a.npy");
        write_bytes(path, std::string("\x93NUMPY\x01\x00\x76\x00", 10) + dict +
                              std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof stored));
        using Expected = decltype(expected);
        const VectorFile file(path);
        EXPECT_EQ(file.converted_from(), from);
        EXPECT_EQ(size_of(file.dtype()), sizeof(Expected));
        ASSERT_EQ(file.n(), n);
        std::vector<Expected> rows(20 * d);
        for (const std::int64_t begin : {std::int64_t(0), std::int64_t(1040), n - 20}) {
            file.read(begin, 20, rows.data());
            for (std::int64_t i = 0; i < 20 * d; ++i) ASSERT_EQ(rows[i], Expected(value(begin + i / d, i % d))) << i;
        }
        const VectorView view = file.view();
        for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = 0; j < d; ++j)
                ASSERT_EQ(reinterpret_cast<const Expected*>(view.row(i))[j], Expected(value(i, j)));
    };
    check("<f8", false, double(), float(), "float64");
    check("<f8", true, double(), float(), "float64, Fortran order");
    check("<f4", true, float(), float(), "Fortran order");
    check("<i8", false, std::int64_t(), std::int32_t(), "int64");
}

TEST(VectorFile, MovesWithItsView) {
    const TempDir dir;
    write_bytes(dir.file("a.ivecs"), bytes_of({1, 10, 1, 11}));
    VectorFile first(dir.file("a.ivecs"));
    const std::byte* row = first.view().row(1);
    const VectorFile second = std::move(first);
    EXPECT_EQ(second.view().row(1), row);
    EXPECT_EQ(int(*row), 11);
}

TEST(MappedFiles, AreKnownByTheirAddresses) {
    const TempDir dir;
    const char byte = 1;
    std::optional<VectorFile> first;
    for (const char* name : {"first.u8bin", "second.u8bin"}) write_vectors(dir.file(name), {&byte, 1, 1, DType::u8});
    first.emplace(dir.file("first.u8bin"));
    const VectorFile second(dir.file("second.u8bin"));
    const void* address = first->view().data;
    EXPECT_EQ(detail::mapped_path_at(address), dir.file("first.u8bin"));
    EXPECT_EQ(detail::mapped_path_at(second.view().data), dir.file("second.u8bin"));
    EXPECT_EQ(detail::mapped_path_at(&byte), nullptr);
    first.reset();
    EXPECT_EQ(detail::mapped_path_at(address), nullptr);
}

TEST(VectorFile, NoticesThatItWasWrittenTo) {
    const TempDir dir;
    const char bytes[2] = {1, 2};
    const std::string path = dir.file("a.u8bin");
    write_vectors(path, {bytes, 2, 1, DType::u8});
    const VectorFile file(path);
    EXPECT_NO_THROW(file.require_unchanged());
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::milliseconds(5));
    EXPECT_EQ(message_of<IoError>([&] { file.require_unchanged(); }), path + ": was written to while it was in use");
    std::filesystem::resize_file(path, 9);
    EXPECT_EQ(message_of<IoError>([&] { file.require_unchanged(); }), path + ": was written to while it was in use");
}

}  // namespace
}  // namespace gnnd::io

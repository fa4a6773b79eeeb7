// SPDX-License-Identifier: MIT
// Vector files of one format or another: their bytes, sizes past 32 bits, what is converted, and files that change
// while they are open. tests/vector_formats_test.cpp goes through all formats, tests/vector_file_errors_test.cpp has
// files that are refused.
#include "gnnd/io/vector_file.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/io/detail/mapped_file.h"
#include "tests/io_conditions.h"
#include "tests/paths.h"
#include "tests/temp_dir.h"

namespace gnnd::io {
namespace {

using test::bytes_of;
using test::message_of;
using test::read_bytes;
using test::TempDir;
using test::write_bytes;

TEST(VectorFile, BytesAreThoseOfTheFormats) {
    const TempDir dir;
    const std::int32_t ids[] = {1, 2, 3, 4};
    write_vectors(dir.file("a.ivecs"), {ids, 2, 2, DType::i32, 0});
    EXPECT_EQ(read_bytes(dir.file("a.ivecs")), bytes_of({2, 1, 2, 2, 3, 4}));
    write_vectors(dir.file("a.ibin"), {ids, 2, 2, DType::i32, 0});
    EXPECT_EQ(read_bytes(dir.file("a.ibin")), bytes_of({2, 2, 1, 2, 3, 4}));
    // NumPy 2.4 saves these bytes for a (2, 2) array of int32.
    write_vectors(dir.file("a.npy"), {ids, 2, 2, DType::i32, 0});
    EXPECT_EQ(read_bytes(dir.file("a.npy")), std::string("\x93NUMPY\x01\x00v\x00", 10) +
                                                 "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 2), }" +
                                                 std::string(58, ' ') + "\n" + bytes_of({1, 2, 3, 4}));
}

TEST(VectorFile, TheSampleOfTheRepository) {
    const VectorFile file(test::kSampleFile);
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
    check("|b1", false, std::uint8_t(), std::uint8_t(), "");
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

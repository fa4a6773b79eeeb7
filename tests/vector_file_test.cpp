#include "gnnd/io/vector_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <vector>

#include "gnnd/error.h"
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
    bool is_vecs() const { return name().ends_with("vecs"); }
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << c.extension << "_" << name_of(c.dtype);
}

constexpr Case kCases[] = {
    {"fvecs", VectorFormat::fvecs, DType::f32}, {"bvecs", VectorFormat::bvecs, DType::u8},
    {"ivecs", VectorFormat::ivecs, DType::i32}, {"fbin", VectorFormat::fbin, DType::f32},
    {"u8bin", VectorFormat::u8bin, DType::u8},  {"i8bin", VectorFormat::i8bin, DType::i8},
    {"ibin", VectorFormat::ibin, DType::i32},   {"npy", VectorFormat::npy, DType::f32},
    {"npy", VectorFormat::npy, DType::f16},     {"npy", VectorFormat::npy, DType::u8},
    {"npy", VectorFormat::npy, DType::i8},      {"npy", VectorFormat::npy, DType::i32},
};

std::string random_bytes(std::int64_t count) {
    std::uint32_t state = std::uint32_t(count) + 1;
    std::string bytes(std::size_t(count), '\0');
    for (char& byte : bytes) byte = char((state = state * 1664525u + 1013904223u) >> 24);
    return bytes;
}

std::string bytes_of(std::initializer_list<std::int32_t> values) {
    return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(std::int32_t)};
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

TEST(VectorFile, ARowOfAnotherDimension) {
    const TempDir dir;
    const std::string path = dir.file("a.ivecs");
    write_bytes(path, bytes_of({1, 10, 1, 11, 2, 12, 1, 13}));
    const VectorFile file(path);
    std::int32_t out[4] = {};
    file.read(0, 2, out);
    EXPECT_EQ(out[1], 11);
    file.read(3, 1, out);
    EXPECT_EQ(out[0], 13);
    const std::string message = path + ": row 2 has d = 2, the first row has 1";
    EXPECT_EQ(message_of<IoError>([&] { file.read(1, 3, out); }), message);
    for (int call = 0; call < 2; ++call) EXPECT_EQ(message_of<IoError>([&] { file.view(); }), message);
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

class BadVectorFile : public ::testing::Test {
  protected:
    /// What opening a file of these bytes says, without the folder.
    std::string open(const std::string& name, const std::string& bytes) const {
        write_bytes(dir_.file(name), bytes);
        return open(name);
    }
    std::string open(const std::string& name) const {
        const std::string message = message_of<IoError>([&] { VectorFile{dir_.file(name)}; });
        EXPECT_TRUE(message.starts_with(dir_.path() + "/")) << message;
        return message.substr(std::min(message.size(), dir_.path().size() + 1));
    }
    std::string npy(const std::string& dict, const std::string& data = "") const {
        std::string text = dict;
        text.append(128 - (10 + text.size()) % 64, ' ');
        std::string header("\x93NUMPY\x01\x00", 8);
        header += {char(text.size() & 0xff), char(text.size() >> 8)};
        return header + text + data;
    }
    const TempDir dir_;
};

TEST_F(BadVectorFile, Names) {
    const std::string known = ", known vector formats are fvecs, bvecs, ivecs, fbin, u8bin, i8bin, ibin, npy";
    EXPECT_EQ(open("a.txt", "x"), "a.txt: unknown extension 'txt'" + known);
    EXPECT_EQ(open("a", "x"), "a: no extension" + known);
    EXPECT_EQ(open("missing.fbin"), "missing.fbin: cannot open: No such file or directory");
    EXPECT_EQ(open("a/b.fbin"), "a/b.fbin: cannot open: Not a directory");
    std::filesystem::create_directory(dir_.file("folder.fbin"));
    EXPECT_EQ(open("folder.fbin"), "folder.fbin: cannot open: Is a directory");
    ASSERT_EQ(mkfifo(dir_.file("pipe.fbin").c_str(), 0600), 0);
    EXPECT_EQ(open("pipe.fbin"), "pipe.fbin: not a regular file; pipes and devices cannot be read by range");
    EXPECT_EQ(open("empty.npy", ""), "empty.npy: the file is empty");
    const test::OrdinaryUser user;
    if (!user.is_ordinary()) return;
    EXPECT_EQ(message_of<IoError>([&] { VectorFile{dir_.file("a.fbin")}; }),
              dir_.file("a.fbin") + ": cannot open: Permission denied");
}

TEST_F(BadVectorFile, Headers) {
    constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
    EXPECT_EQ(open("a.fbin", bytes_of({1000, 128, 1})),
              "a.fbin: header says 1000 x 128 f32 = 512008 bytes, the file has 12");
    EXPECT_EQ(open("a.u8bin", bytes_of({kMost, 1 << 20})),
              "a.u8bin: header says 2147483647 x 1048576 u8 = 2251799812636680 bytes, the file has 8");
    EXPECT_EQ(open("a.fbin", bytes_of({-1, 128})), "a.fbin: header says n = -1, expected 1 to 2147483647");
    EXPECT_EQ(open("a.fbin", bytes_of({0, 128})), "a.fbin: header says n = 0, expected 1 to 2147483647");
    EXPECT_EQ(open("a.ibin", bytes_of({3, 0})), "a.ibin: header says d = 0, expected 1 to 1048576");
    EXPECT_EQ(open("a.i8bin", bytes_of({3, kMost})), "a.i8bin: header says d = 2147483647, expected 1 to 1048576");
    EXPECT_EQ(open("a.fbin", "1234"), "a.fbin: the file has 4 bytes, its header alone takes 8");
    EXPECT_EQ(open("a.bvecs", "12"), "a.bvecs: the file has 2 bytes, the d of its first row takes 4");
    EXPECT_EQ(open("a.fvecs", bytes_of({-5, 1})), "a.fvecs: header says d = -5, expected 1 to 1048576");
    EXPECT_EQ(open("a.fvecs", bytes_of({2, 1, 1, 2})),
              "a.fvecs: rows of 2 f32 take 12 bytes, the file has 16, which is no multiple");
}

TEST_F(BadVectorFile, NpyHeaders) {
    const auto refused = [&](const std::string& dict) {
        const std::string message = open("a.npy", npy(dict, std::string(24, '\0')));
        EXPECT_TRUE(message.starts_with("a.npy: ")) << message;
        return message.substr(std::min<std::size_t>(message.size(), 7));
    };
    const std::string rest = ", 'fortran_order': False, 'shape': (2, 3)}";
    const std::string types = ", expected <f4, <f2, |u1, |i1 or <i4";
    EXPECT_EQ(refused("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}"),
              "npy header: fortran_order is True, expected rows one after the other (C order)");
    EXPECT_EQ(refused("{'descr': '>f4'" + rest), "npy header: dtype '>f4'" + types);
    EXPECT_EQ(refused("{'descr': '<f8'" + rest), "npy header: dtype '<f8'" + types);
    EXPECT_EQ(refused("{'descr': ''" + rest), "npy header: dtype ''" + types);
    EXPECT_EQ(refused("{'descr': [('a', '<f4')]" + rest), "npy header: a structured dtype" + types);
    const auto shape = [&](const std::string& text) {
        return refused("{'descr': '<f4', 'fortran_order': False, 'shape': " + text + "}");
    };
    EXPECT_EQ(shape("(6,)"), "npy header: the array has 1 dimensions, expected 2 (n x d)");
    EXPECT_EQ(shape("()"), "npy header: the array has 0 dimensions, expected 2 (n x d)");
    EXPECT_EQ(shape("(1, 2, 3)"), "npy header: the array has 3 dimensions, expected 2 (n x d)");
    EXPECT_EQ(shape("(-2, 3)"), "header says n = -2, expected 1 to 2147483647");
    EXPECT_EQ(shape("(4294967296, 4294967296)"), "header says n = 4294967296, expected 1 to 2147483647");
    EXPECT_EQ(shape("(1, 99999999999999999999)"), "npy header: the shape holds something else than 64-bit integers");
    EXPECT_EQ(shape("(2, x)"), "npy header: the shape holds something else than 64-bit integers");
    EXPECT_EQ(shape("(2, 4)"), "header says 2 x 4 f32 = 224 bytes, the file has 216");
    EXPECT_EQ(refused("{'descr': '<f4', 'shape': (2, 3)}"), "npy header: descr, fortran_order or shape is missing");
    EXPECT_EQ(refused("{'color': 'red'" + rest), "npy header: unknown key 'color'");
    EXPECT_EQ(refused("{'descr': '<f4'" + rest + "}"), "npy header: text after the closing brace");
    EXPECT_EQ(refused("{'descr"), "npy header: a string does not end");
    EXPECT_EQ(refused("nothing"), "npy header: expected '{' at character 0");
    EXPECT_EQ(refused("{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}"),
              "npy header: fortran_order is neither True nor False");
    EXPECT_EQ(open("a.npy", "text, not numbers"), "a.npy: not an npy file, it does not start with \\x93NUMPY");
    EXPECT_EQ(open("a.npy", std::string("\x93NUMPY\x04\x00\x10\x00\x00\x00", 12)),
              "a.npy: npy format version 4, known are 1, 2 and 3");
    EXPECT_EQ(open("a.npy", std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12)),
              "a.npy: npy header of 4294967295 bytes, expected at most 65536");
    EXPECT_EQ(open("a.npy", std::string("\x93NUMPY\x01\x00\x76\x00", 10)),
              "a.npy: npy header says it ends at byte 128, the file has 10");
}

TEST_F(BadVectorFile, NpyVariantsThatAreGood) {
    const std::string data = bytes_of({1, 2, 3, 4, 5, 6});
    const auto expect_good = [&](const std::string& bytes, DType dtype) {
        write_bytes(dir_.file("a.npy"), bytes);
        const VectorFile file(dir_.file("a.npy"));
        EXPECT_EQ(file.n(), 2);
        EXPECT_EQ(file.dtype(), dtype);
        EXPECT_EQ(std::memcmp(file.view().data, data.data(), std::size_t(file.n() * file.view().row_bytes())), 0);
    };
    expect_good(npy("{\"shape\":(2L,3L,),\"fortran_order\":False,\"descr\":\"=i4\"}", data), DType::i32);
    expect_good(npy("{ 'fortran_order' :False ,\n'shape':( 2 , 3 ) , 'descr' : 'f4' , }  \n", data), DType::f32);
    expect_good(npy("{'descr': 'u1', 'fortran_order': False, 'shape': (2, 12)}", data), DType::u8);
    expect_good(npy("{'descr': '>i1', 'fortran_order': False, 'shape': (2, 12)}", data), DType::i8);
    const std::string dict = "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 6)}  \n";
    ASSERT_LT(dict.size(), 256u);
    for (const char version : {'\2', '\3'}) {
        const std::string start = std::string("\x93NUMPY") + version + '\0';
        expect_good(start + bytes_of({std::int32_t(dict.size())}) + dict + data, DType::f16);
    }
    // NumPy reads data at any offset; a view of floats cannot.
    write_bytes(dir_.file("a.npy"),
                std::string("\x93NUMPY\x02\x00", 8) + bytes_of({std::int32_t(dict.size() + 1)}) + dict + " " + data);
    EXPECT_EQ(message_of<IoError>([&] { VectorFile{dir_.file("a.npy")}; }),
              dir_.file("a.npy") + ": the data starts at byte " + std::to_string(13 + dict.size()) +
                  ", expected a multiple of 2; save it again with NumPy");
}

TEST(VectorWriter, RefusesWhatTheFormatCannotHold) {
    const TempDir dir;
    const std::string path = dir.file("a.fbin");
    EXPECT_EQ(message_of<IoError>([&] { VectorWriter(path, 1, 1, DType::u8); }),
              path + ": fbin holds f32 only; for u8 use bvecs, u8bin, npy");
    EXPECT_EQ(message_of<InvalidArgument>([&] { VectorWriter(path, 0, 1, DType::f32); }),
              path + ": n = 0, expected 1 to 2147483647");
    EXPECT_THROW(VectorWriter(path, kMaxObjects + 1, 1, DType::f32), InvalidArgument);
    EXPECT_EQ(message_of<InvalidArgument>([&] { VectorWriter(path, 1, kMaxDim + 1, DType::f32); }),
              path + ": d = 1048577, expected 1 to 1048576");
    EXPECT_THROW(VectorWriter(path, 1, 0, DType::f32), InvalidArgument);
    EXPECT_THROW(VectorWriter(dir.file("a.txt"), 1, 1, DType::f32), IoError);
    EXPECT_EQ(dir.entries(), 0u);
}

}  // namespace
}  // namespace gnnd::io

// SPDX-License-Identifier: MIT
// Vector files that are refused and what the errors say, headers that only look wrong, and what cannot be written.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/io/vector_file.h"
#include "gnnd/io/vector_reader.h"
#include "tests/io_conditions.h"
#include "tests/temp_dir.h"

namespace gnnd::io {
namespace {

using test::bytes_of;
using test::message_of;
using test::TempDir;
using test::write_bytes;

class BadVectorFile : public ::testing::Test {
  protected:
    /// Returns the error of opening a file of these bytes, without the folder.
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
    const std::string known =
        ", known vector formats are fvecs, bvecs, ivecs, fbin, f16bin, bf16bin, u8bin, i8bin, ibin, npy";
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
    EXPECT_EQ(open("a.fbin", bytes_of({-1, 128})),
              "a.fbin: header says 4294967295 x 128 f32 = 2199023255048 bytes, the file has 8");
    EXPECT_EQ(open("a.fbin", bytes_of({0, 128})), "a.fbin: header says n = 0, expected 1 to 1099511626752");
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
    const std::string types = ", expected one of <f4, <f2, |u1, |b1, |i1, <i4, <f8, <i8";
    EXPECT_EQ(refused("{'descr': '>f4'" + rest), "npy header: dtype '>f4'" + types);
    EXPECT_EQ(refused("{'descr': '<c8'" + rest), "npy header: dtype '<c8'" + types);
    EXPECT_EQ(refused("{'descr': '<f8'" + rest), "header says 2 x 3 f64 = 240 bytes, the file has 216");
    EXPECT_EQ(refused("{'descr': ''" + rest), "npy header: dtype ''" + types);
    EXPECT_EQ(refused("{'descr': [('a', '<f4')]" + rest), "npy header: a structured dtype" + types);
    const auto shape = [&](const std::string& text) {
        return refused("{'descr': '<f4', 'fortran_order': False, 'shape': " + text + "}");
    };
    EXPECT_EQ(shape("(6,)"), "npy header: the array has 1 dimensions, expected 2 (n x d)");
    EXPECT_EQ(shape("()"), "npy header: the array has 0 dimensions, expected 2 (n x d)");
    EXPECT_EQ(shape("(1, 2, 3)"), "npy header: the array has 3 dimensions, expected 2 (n x d)");
    EXPECT_EQ(shape("(-2, 3)"), "header says n = -2, expected 1 to 1099511626752");
    EXPECT_EQ(shape("(4294967296, 4294967296)"), "header says d = 4294967296, expected 1 to 1048576");
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

// The size of a file of another type may fit by chance; the headers of its rows do not.
TEST_F(BadVectorFile, RowsOfAnotherType) {
    const std::string floats = bytes_of({8, 0, 0, 0, 0, 0, 0, 0, 0});  // a row of 8 floats is as long as 3 of 8 bytes
    EXPECT_EQ(open("a.bvecs", floats), "a.bvecs: row 1 has d = 0, the first row has 8");
    std::string many;
    for (int i = 0; i < 5000; ++i) many += bytes_of({1, i});
    many.replace(many.size() - 8, 4, bytes_of({2}));
    EXPECT_EQ(open("a.ivecs", many), "a.ivecs: row 4999 has d = 2, the first row has 1");
}

/// Of a thousand rows and more a sample is looked at.
TEST_F(BadVectorFile, DigitsThatFloat32Lacks) {
    const std::string path = dir_.file("a.npy");
    const auto write = [&](double offset, bool fortran_order) {
        std::mt19937 random(1);
        std::vector<double> values(3000 * 4);
        for (double& value : values) value = offset + std::normal_distribution<double>()(random);
        values[5] = 1e30;  // one that lies elsewhere changes nothing
        const std::string data(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
        write_bytes(path, npy(std::string("{'descr': '<f8', 'fortran_order': ") + (fortran_order ? "True" : "False") +
                                  ", 'shape': (3000, 4)}",
                              data));
    };
    for (const bool fortran_order : {false, true}) {
        write(1e12, fortran_order);
        const VectorFile file(path);
        float row[4];
        const std::string message = message_of<InvalidArgument>([&] { file.read(0, 1, row); });
        EXPECT_TRUE(message.starts_with(path + " is of float64, and differs by less than float32 has digits for"));
        EXPECT_EQ(message_of<InvalidArgument>([&] { file.view(); }), message);
        EXPECT_EQ(message_of<InvalidArgument>([&] { VectorReader{file}; }), message);
        for (const double fine : {0.0, 1e4}) {
            write(fine, fortran_order);
            EXPECT_EQ(VectorFile(path).view().n, 3000);
        }
    }
}

TEST_F(BadVectorFile, ValuesThatCannotBeConverted) {
    const auto array = [&](const char* descr, const auto& values) {
        const std::string data(reinterpret_cast<const char*>(values), sizeof values);
        write_bytes(dir_.file("a.npy"),
                    npy(std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (2, 2)}", data));
        const VectorFile file(dir_.file("a.npy"));
        std::int32_t row[2];
        file.read(0, 1, row);  // which is good
        const std::string message = message_of<IoError>([&] { file.view(); });
        EXPECT_EQ(message_of<IoError>([&] { file.read(1, 1, row); }), message);
        return message;
    };
    const double large[4] = {1, 2, 3, 1e39};
    EXPECT_EQ(array("<f8", large), dir_.file("a.npy") + ": row 1 holds a value that f32 cannot hold");
    const std::int64_t ids[4] = {0, -1, 2147483648, 0};
    EXPECT_EQ(array("<i8", ids), dir_.file("a.npy") + ": row 1 holds a value that i32 cannot hold");
}

TEST(VectorWriter, RefusesWhatTheFormatCannotHold) {
    const TempDir dir;
    const std::string path = dir.file("a.fbin");
    EXPECT_EQ(message_of<IoError>([&] { VectorWriter(path, 1, 1, DType::u8); }),
              path + ": fbin holds f32 only; for u8 use bvecs, u8bin, npy");
    EXPECT_EQ(message_of<IoError>([&] { VectorWriter(dir.file("a.npy"), 1, 1, DType::bf16); }),
              dir.file("a.npy") + ": npy holds no bf16; for bf16 use bf16bin");
    EXPECT_EQ(message_of<InvalidArgument>([&] { VectorWriter(path, 0, 1, DType::f32); }),
              path + ": n = 0, expected 1 to 4294967295");
    EXPECT_THROW(VectorWriter(path, std::int64_t(1) << 32, 1, DType::f32), InvalidArgument);
    EXPECT_EQ(
        message_of<InvalidArgument>([&] { VectorWriter(dir.file("a.npy"), kMaxShardedObjects + 1, 1, DType::f32); }),
        dir.file("a.npy") + ": n = 1099511626753, expected 1 to 1099511626752");
    EXPECT_EQ(message_of<InvalidArgument>([&] { VectorWriter(path, 1, kMaxDim + 1, DType::f32); }),
              path + ": d = 1048577, expected 1 to 1048576");
    EXPECT_THROW(VectorWriter(path, 1, 0, DType::f32), InvalidArgument);
    EXPECT_THROW(VectorWriter(dir.file("a.txt"), 1, 1, DType::f32), IoError);
    EXPECT_EQ(dir.entries(), 0u);
}

}  // namespace
}  // namespace gnnd::io

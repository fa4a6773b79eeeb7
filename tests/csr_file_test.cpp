// SPDX-License-Identifier: MIT
// Files of sparse matrices: checksums, large archives, and what is refused. tests/cli_graph_test.cpp reads whole ones.
#include "gnnd/io/csr_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "gnnd/error.h"
#include "gnnd/io/detail/zip_file.h"
#include "tests/temp_dir.h"

namespace gnnd::test {
namespace {

CsrGraph small_matrix() {
    CsrGraph graph;
    graph.n = 3;
    graph.indptr = {0, 1, 3, 4};
    graph.indices = {1, 0, 2, 1};
    graph.values = {0.5f, 0.5f, 1e-30f, 1e-30f};
    return graph;
}

TEST(CsrFile, Checksums) {
    EXPECT_EQ(io::detail::crc32("123456789", 9), 0xcbf43926U) << "the check value of the standard";
    EXPECT_EQ(io::detail::crc32("", 0), 0U);
    std::string bytes(1000, '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = char(i * 37 + i / 7);
    const std::uint32_t whole = io::detail::crc32(bytes.data(), bytes.size());
    for (const std::size_t cut : {0, 1, 7, 8, 9, 500, 999, 1000}) {
        const std::uint32_t first = io::detail::crc32(bytes.data(), cut);
        EXPECT_EQ(io::detail::crc32(bytes.data() + cut, bytes.size() - cut, first), whole) << cut;
    }
}

TEST(CsrFile, MatrixMarketIsText) {
    const TempDir dir;
    const std::string path = dir.file("a.mtx");
    io::write_csr(path, small_matrix());
    EXPECT_EQ(read_bytes(path),
              "%%MatrixMarket matrix coordinate real general\n3 3 4\n1 2 0.5\n2 1 0.5\n2 3 1e-30\n3 2 1e-30\n");
    io::write_csr(path, small_matrix(), {true, 2, {}});
    EXPECT_EQ(read_bytes(path), "%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 0.5\n3 2 1e-30\n");
    io::write_csr(path, CsrGraph());
    EXPECT_EQ(read_bytes(path), "%%MatrixMarket matrix coordinate real general\n0 0 0\n");
}

TEST(CsrFile, EqualMatricesGiveEqualFiles) {
    const TempDir dir;
    io::write_csr(dir.file("a.npz"), small_matrix());
    io::write_csr(dir.file("b.npz"), small_matrix(), {true, 1, {}});
    EXPECT_EQ(read_bytes(dir.file("a.npz")), read_bytes(dir.file("b.npz")));
    io::write_csr(dir.file("none.npz"), CsrGraph());
    EXPECT_GT(std::filesystem::file_size(dir.file("none.npz")), 500u);
}

TEST(CsrFile, WhatIsRefusedLeavesTheOldFile) {
    const TempDir dir;
    for (const char* name : {"a.npz", "a.mtx"}) {
        const std::string path = dir.file(name);
        write_bytes(path, "old");
        CsrGraph bad = small_matrix();
        bad.indices.pop_back();
        EXPECT_THROW(io::write_csr(path, bad), InvalidArgument);
        bad = small_matrix(), bad.n = 4;
        EXPECT_THROW(io::write_csr(path, bad), InvalidArgument);
        bad = small_matrix(), bad.indptr.clear();
        EXPECT_THROW(io::write_csr(path, bad), InvalidArgument);
        EXPECT_THROW(io::write_csr(path, small_matrix(), {false, 0, [] { return true; }}), Interrupted);
        EXPECT_EQ(read_bytes(path), "old");
        EXPECT_THROW(io::write_csr(dir.file("none") + "/" + name, small_matrix()), IoError);
    }
    EXPECT_EQ(dir.entries(), 2u);
    for (const char* name : {"a", "a.npy", "npz", ".npz", "a.mt"})
        EXPECT_THROW(io::write_csr(dir.file(name), small_matrix()), IoError) << name;
    EXPECT_THROW(io::write_csr(dir.file("a.mtx"), small_matrix(), {false, -1, {}}), InvalidArgument);
}

TEST(CsrFile, Labels) {
    const TempDir dir;
    const std::int32_t labels[] = {3, -1, 7};
    io::write_labels(dir.file("a.npy"), labels, 3);
    const std::string bytes = read_bytes(dir.file("a.npy"));
    EXPECT_EQ(bytes.size(), 128u + 12);
    EXPECT_NE(bytes.find("'shape': (3,), }"), std::string::npos);
    EXPECT_EQ(bytes.substr(128), std::string(reinterpret_cast<const char*>(labels), 12));
    io::write_labels(dir.file("none.npy"), labels, 0);
    EXPECT_THROW(io::write_labels(dir.file("none.ivecs"), labels, 0), InvalidArgument);
    EXPECT_THROW(io::write_labels(dir.file("a.fvecs"), labels, 3), IoError);
    EXPECT_THROW(io::write_labels(dir.file("a.txt"), labels, 3), IoError);
}

#ifndef GNND_SANITIZED
/// Python, where there is one, reads an archive with members behind and beyond 4 GiB.
TEST(CsrFile, LargeArchives) {
    if (std::system("python3 -c pass 2>/dev/null") != 0) GTEST_SKIP() << "no Python";
    const TempDir dir;
    if (std::filesystem::space(dir.file("")).available < std::uintmax_t(8) << 30) GTEST_SKIP() << "no room";
    const std::vector<char> zeros(std::size_t(512) << 20);
    const std::string path = dir.file("large.zip");
    {
        io::detail::AtomicFile file(path);
        io::detail::ZipWriter zip(file, {});
        zip.add("first", {{"abc", 3}});
        zip.add("large", std::vector<io::detail::Span>(9, {zeros.data(), zeros.size()}));
        zip.add("last", {{"de", 2}, {"f", 1}});
        zip.finish();
        file.commit();
    }
    const std::string script =
        "import sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); "
        "assert z.read('first') == b'abc' and z.read('last') == b'def' and z.namelist() == ['first', 'large', 'last']; "
        "i = z.getinfo('large'); assert i.file_size == 9 << 29 and i.CRC == " +
        std::to_string([&] {
            std::uint32_t crc = 0;
            for (int part = 0; part < 9; ++part) crc = io::detail::crc32(zeros.data(), zeros.size(), crc);
            return crc;
        }()) +
        "; f = z.open('large'); assert f.read(1 << 20) == bytes(1 << 20)";
    EXPECT_EQ(std::system(("python3 -c \"" + script + "\" " + path).c_str()), 0);
}
#endif

}  // namespace
}  // namespace gnnd::test

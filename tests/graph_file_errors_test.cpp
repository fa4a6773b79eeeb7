// SPDX-License-Identifier: MIT
// Graph files that are refused, whatever became of them, and graphs that are not written.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/io/graph_file.h"
#include "gnnd/vectors.h"
#include "tests/forged_graph_file.h"
#include "tests/graph_files.h"

namespace gnnd::io {
namespace {

using test::expect_rows;
using test::make_graph;
using test::message_of;
using test::read_bytes;
using test::write_bytes;

class GraphFileErrors : public test::GraphFiles {};

TEST_F(GraphFileErrors, EveryAlteredBitIsNoticed) {
    write_graph(path_, make_graph(20, 3), DType::u8);
    const std::string bytes = read_bytes(path_);
    ASSERT_EQ(bytes.size(), 64u + 20 * 3 * 8 + 8);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        for (int bit = 0; bit < 8; ++bit) {
            std::string altered = bytes;
            altered[i] = char(altered[i] ^ 1 << bit);
            write_bytes(path_, altered);
            const bool on_open = i < 64 || i >= bytes.size() - 8;
            EXPECT_THROW(on_open ? void(GraphFile(path_)) : void(GraphFile(path_).read()), IoError)
                << "byte " << i << " bit " << bit;
        }
    write_bytes(path_, bytes);
    EXPECT_EQ(GraphFile(path_).read().n(), 20);
}

TEST_F(GraphFileErrors, EveryOtherLengthIsNoticed) {
    write_graph(path_, make_graph(20, 3), DType::u8);
    const std::string bytes = read_bytes(path_);
    for (std::size_t length = 0; length < bytes.size() + 20; ++length) {
        if (length == bytes.size()) continue;
        std::string other = bytes;
        other.resize(length);
        write_bytes(path_, other);
        EXPECT_THROW(GraphFile{path_}, IoError) << length;
    }
    EXPECT_EQ(error(bytes.substr(0, 500)), "truncated: header says 20 x 3 = 552 bytes, the file has 500");
    EXPECT_EQ(error(bytes + "x"), "too long: header says 20 x 3 = 552 bytes, the file has 553");
    EXPECT_EQ(error(bytes.substr(0, 63)), "truncated: the file has 63 bytes, its header alone takes 64");
    EXPECT_EQ(error(""), "the file is empty");
    EXPECT_EQ(error("GNNDGRP"), "not a graph file, it does not start with GNNDGRPH");
}

TEST_F(GraphFileErrors, RefusesARecallThatIsNone) {
    const KnnGraph graph = make_graph(20, 3);
    const BaseIdentity base{20, 128, DType::i8, 1};
    const RecallEstimate good{0.9, 0.85, 0.925, 3, 20};
    EXPECT_NO_THROW(write_graph(path_, graph, base, good));
    std::vector<RecallEstimate> bad(8, good);
    bad[0].value = NAN;
    bad[1].low = -0.1;
    bad[2].low = 0.91;
    bad[3].high = 1.1;
    bad[4].at = 0;
    bad[5].at = 4;
    bad[6].objects = -1;
    bad[7].objects = 21;
    for (const RecallEstimate& recall : bad) {
        EXPECT_EQ(message_of<InvalidArgument>([&] { write_graph(path_, graph, base, recall); }),
                  path_ + ": cannot write the graph: its recall is none");
        EXPECT_EQ(GraphFile(path_).recall().value, 0.9) << "the old file survives";
    }
    // A reader finds the same in what a faulty writer left.
    std::string bytes = read_bytes(path_);
    const double value = 0.8;
    std::memcpy(bytes.data() + 72, &value, sizeof value);
    const std::uint64_t checksum = XXH3_64bits(bytes.data(), 112);
    std::memcpy(bytes.data() + 112, &checksum, sizeof checksum);
    EXPECT_EQ(error(bytes), "header says of the recall what is none");
}

TEST_F(GraphFileErrors, OtherBlocksCanStillBeRead) {
    const std::int64_t n = 1000, k = 300, block = (1 << 20) / (8 * k);
    const KnnGraph graph = make_graph(n, k);
    write_graph(path_, graph, DType::f32);
    for (const bool in_distances : {false, true}) {
        std::string bytes = read_bytes(path_);
        bytes[std::size_t(64 + (in_distances ? 4 * n * k : 0) + 4 * (block + 5) * k)] ^= 1;
        write_bytes(path_, bytes);
        const GraphFile file(path_);
        const std::string message = path_ + ": altered: rows " + std::to_string(block) + " to " +
                                    std::to_string(2 * block - 1) + " do not match their checksum";
        EXPECT_EQ(message_of<IoError>([&] { file.read(); }), message);
        EXPECT_EQ(message_of<IoError>([&] { file.read(2 * block - 1, 1); }), message);
        EXPECT_EQ(message_of<IoError>([&] { file.read(0, block + 1); }), message);
        expect_rows(file.read(0, block), graph, 0, block);
        expect_rows(file.read(2 * block, n - 2 * block), graph, 2 * block, n - 2 * block);
        write_graph(path_, graph, DType::f32);
    }
}

class ForgedGraphFile : public test::GraphFiles {
  protected:
    ForgedGraphFile() {
        write_graph(path_, make_graph(20, 3), DType::u8);
        bytes_ = read_bytes(path_);
    }
    template <class T>
    std::string forged(std::size_t offset, T value) const {
        std::string bytes = bytes_;
        std::memcpy(bytes.data() + offset, &value, sizeof value);
        return test::with_fitting_checksums(bytes);
    }
    template <class T>
    std::string error_with(std::size_t offset, T value) const {
        return error(forged(offset, value));
    }
    std::string bytes_;
};

TEST_F(ForgedGraphFile, IsRefusedForWhatItSays) {
    EXPECT_EQ(error_with<char>(0, 'X'), "not a graph file, it does not start with GNNDGRPH");
    EXPECT_EQ(error_with<std::uint32_t>(8, 6), "graph file version 6 is newer than this library, which knows 5");
    EXPECT_EQ(error_with<std::uint32_t>(8, 0), "graph file version 0, expected 1 to 5");
    EXPECT_EQ(error_with<std::uint32_t>(12, 99), "unknown metric number 99");
    EXPECT_EQ(error_with<std::uint64_t>(16, 0), "header says n = 0, expected 1 to 2147483647");
    EXPECT_EQ(error_with<std::uint64_t>(16, ~0ull), "header says n = 18446744073709551615, expected 1 to 2147483647");
    EXPECT_EQ(error_with<std::uint64_t>(16, 2147483647),
              "truncated: header says 2147483647 x 3 = 51540000816 bytes, the file has 552");
    EXPECT_EQ(error_with<std::uint64_t>(24, 0), "header says k = 0, expected 1 to 65535");
    EXPECT_EQ(error_with<std::uint64_t>(24, 65536), "header says k = 65536, expected 1 to 65535");
    EXPECT_EQ(error_with<std::uint64_t>(24, 2), "too long: header says 20 x 2 = 392 bytes, the file has 552");
    EXPECT_EQ(error_with<std::uint32_t>(32, 99), "unknown dtype number 99");
    EXPECT_EQ(error_with<std::uint32_t>(36, 0), "invalid header");
    EXPECT_EQ(error_with<std::uint32_t>(36, 10), "truncated: header says 20 x 3 = 560 bytes, the file has 552");
    EXPECT_EQ(error_with<std::uint64_t>(48, 1), "invalid header");
    EXPECT_EQ(error_with<std::int32_t>(64 + 4 * 7, 20), "invalid: row 2 holds id 20, expected -1 to 19");
    EXPECT_EQ(error_with<std::int32_t>(64 + 4 * 59, -2), "invalid: row 19 holds id -2, expected -1 to 19");
    EXPECT_EQ(error_with<std::uint32_t>(8, 2), "header says objects = 0, expected 1 to 2147483647");
    bytes_ = forged<std::uint32_t>(8, 2);
    EXPECT_EQ(error_with<std::uint64_t>(48, 1ull << 31), "header says objects = 2147483648, expected 1 to 2147483647");
    EXPECT_EQ(error_with<std::uint64_t>(48, 17), "invalid: row 3 holds id 18, expected -1 to 16");
}

// The counterpart of the test above: with a change that makes sense, the forgery passes.
TEST_F(ForgedGraphFile, ChecksumsAreTheDocumentedOnes) {
    write_bytes(path_, forged<std::int32_t>(64 + 4 * 7, 19));
    EXPECT_EQ(GraphFile(path_).read().ids()[7], 19);
}

TEST_F(GraphFileErrors, WriterRefusesWhatAReaderWould) {
    write_bytes(path_, "old");
    KnnGraph graph = make_graph(4, 2);
    const auto message = [&](const KnnGraphView& view, DType dtype = DType::f32) {
        return message_of<InvalidArgument>([&] { write_graph(path_, view, dtype); });
    };
    const std::string start = path_ + ": cannot write the graph: ";
    KnnGraphView view = graph;
    view.n = 0;
    EXPECT_EQ(message(view), start + "n = 0, expected 1 to 2147483647");
    view.n = kMaxObjects + 1;
    EXPECT_EQ(message(view), start + "n = 2147483648, expected 1 to 2147483647");
    view = graph;
    view.k = 65536;
    EXPECT_EQ(message(view), start + "k = 65536, expected 1 to 65535");
    view = graph;
    view.metric = Metric(99);
    EXPECT_EQ(message(view), "unknown metric number 99");
    EXPECT_EQ(message(graph, DType(99)), "unknown dtype number 99");
    graph.ids()[5] = 4;
    EXPECT_EQ(message(graph), start + "row 2 holds id 4, expected -1 to 3");
    EXPECT_EQ(read_bytes(path_), "old");
    EXPECT_EQ(dir_.entries(), 1u);
}

TEST_F(GraphFileErrors, FullDiskKeepsTheOldFile) {
    const KnnGraph old = make_graph(5, 5), large = make_graph(5000, 100);
    write_graph(path_, old, DType::f32);
    for (const rlim_t room : {0, 64, 1000000, 2000000, 3999000}) {
        const test::FullDisk disk(room);
        EXPECT_EQ(message_of<IoError>([&] { write_graph(path_, large, DType::f32); }),
                  path_ + ": cannot write: File too large");
        EXPECT_EQ(dir_.entries(), 1u);
    }
    expect_rows(GraphFile(path_).read(), old, 0, 5);
}

}  // namespace
}  // namespace gnnd::io

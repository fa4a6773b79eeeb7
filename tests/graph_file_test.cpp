// SPDX-License-Identifier: MIT
#include "gnnd/io/graph_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/vectors.h"
#include "tests/forged_graph_file.h"
#include "tests/io_conditions.h"
#include "tests/temp_dir.h"

namespace gnnd::io {
namespace {

using test::message_of;
using test::read_bytes;
using test::TempDir;
using test::write_bytes;

/// Entries that differ from place to place; the file does not ask for sorted rows.
KnnGraph make_graph(std::int64_t n, std::int64_t k, Metric metric = Metric::L2) {
    KnnGraph graph(n, k, metric);
    for (std::int64_t i = 0; i < n * k; ++i) {
        graph.ids()[i] = std::int32_t((i * 7919 + 1) % (n + 1)) - 1;
        graph.distances()[i] = graph.ids()[i] < 0 ? INFINITY : float(i) * 0.25f;
    }
    return graph;
}

void expect_rows(const KnnGraph& part, const KnnGraph& whole, std::int64_t begin, std::int64_t count) {
    ASSERT_EQ(part.n(), count);
    ASSERT_EQ(part.k(), whole.k());
    ASSERT_EQ(part.metric(), whole.metric());
    const std::int64_t entries = count * whole.k();
    EXPECT_TRUE(std::equal(part.ids(), part.ids() + entries, whole.ids_of(begin)));
    EXPECT_TRUE(std::equal(part.distances(), part.distances() + entries, whole.distances_of(begin)));
}

class GraphFileTest : public ::testing::Test {
  protected:
    /// What opening the file and reading all of it says, without the path.
    std::string error() const {
        const std::string message = message_of<IoError>([&] { GraphFile(path_).read(); });
        EXPECT_TRUE(message.starts_with(path_ + ": ")) << message;
        return message.substr(std::min(message.size(), path_.size() + 2));
    }
    std::string error(const std::string& bytes) const {
        write_bytes(path_, bytes);
        return error();
    }
    /// Of a file with these bytes: with a bit of any of them altered, and cut off anywhere, it is refused.
    void expect_every_byte_checked(const std::string& bytes) const {
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            std::string altered = bytes;
            altered[i] = char(altered[i] ^ 1 << i % 8);
            EXPECT_NE(error(altered), "nothing was thrown") << "byte " << i;
            EXPECT_NE(error(bytes.substr(0, i)), "nothing was thrown") << i << " bytes";
        }
    }
    const TempDir dir_;
    const std::string path_ = dir_.file("a.gnnd");
};

TEST_F(GraphFileTest, RoundTrips) {
    for (const auto& [n, k] : {std::pair{1, 1}, {2, 1}, {20, 3}, {7, 65535}, {3000, 100}, {300000, 1}})
        for (const Metric metric : {Metric::L2, Metric::InnerProduct, Metric::ChiSquare}) {
            SCOPED_TRACE(testing::Message() << n << " x " << k);
            const KnnGraph graph = make_graph(n, k, metric);
            write_graph(path_, graph, DType::i8);
            const GraphFile file(path_);
            EXPECT_EQ(file.path(), path_);
            EXPECT_EQ(file.n(), n);
            EXPECT_EQ(file.k(), k);
            EXPECT_EQ(file.metric(), metric);
            EXPECT_EQ(file.dtype(), DType::i8);
            EXPECT_EQ(file.version(), 1u);
            expect_rows(file.read(), graph, 0, n);
            expect_rows(file.read(n / 3, n - n / 3), graph, n / 3, n - n / 3);
            expect_rows(file.read(n / 2, 1), graph, n / 2, 1);
            EXPECT_EQ(file.read(n, 0).n(), 0);
        }
    EXPECT_EQ(dir_.entries(), 1u);
}

TEST_F(GraphFileTest, RangesAcrossBlocks) {
    const std::int64_t n = 1000, k = 300, block = (1 << 20) / (8 * k);
    const KnnGraph graph = make_graph(n, k);
    write_graph(path_, graph, DType::f32);
    const GraphFile file(path_);
    for (const std::int64_t begin : {std::int64_t(0), std::int64_t(1), block - 1, block, block + 1})
        for (const std::int64_t count :
             {std::int64_t(0), std::int64_t(1), block - 1, block, block + 1, n - block - 1}) {
            SCOPED_TRACE(testing::Message() << begin << " + " << count);
            expect_rows(file.read(begin, count), graph, begin, count);
        }
    EXPECT_EQ(message_of<InvalidArgument>([&] { file.read(999, 2); }),
              path_ + ": rows 999 + 2 are outside of 0 to 1000");
    EXPECT_THROW(file.read(-1, 1), InvalidArgument);
    EXPECT_THROW(file.read(0, -1), InvalidArgument);
    EXPECT_THROW(file.read(std::numeric_limits<std::int64_t>::max(), 1), InvalidArgument);
}

TEST_F(GraphFileTest, EveryAlteredBitIsNoticed) {
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

TEST_F(GraphFileTest, EveryOtherLengthIsNoticed) {
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

// Rows of a larger set: some of its objects, whose neighbours are any of them.
TEST_F(GraphFileTest, IdsMayBeOfMoreObjectsThanRows) {
    KnnGraph graph = make_graph(20, 3);
    for (std::int64_t i = 0; i < 60; ++i)
        if (graph.ids()[i] >= 0) graph.ids()[i] += 981;
    write_graph(path_, graph, DType::u8, 1001);
    const std::string bytes = read_bytes(path_);
    const GraphFile file(path_);
    EXPECT_EQ(file.version(), 2u);
    EXPECT_EQ(file.objects(), 1001);
    EXPECT_EQ(file.bytes(), bytes.size());
    expect_rows(file.read(), graph, 0, 20);
    std::vector<std::int32_t> ids(15);
    std::vector<float> distances(15);
    file.read_into(7, 5, ids.data(), distances.data());
    EXPECT_TRUE(std::equal(ids.begin(), ids.end(), graph.ids_of(7)));
    EXPECT_TRUE(std::equal(distances.begin(), distances.end(), graph.distances_of(7)));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        std::string altered = bytes;
        altered[i] = char(altered[i] ^ 1 << i % 8);
        EXPECT_NE(error(altered), "nothing was thrown") << "byte " << i;
    }
    EXPECT_EQ(message_of<InvalidArgument>([&] { write_graph(path_, graph, DType::u8, 1000); }),
              path_ + ": cannot write the graph: row 6 holds id 1000, expected -1 to 999");
    EXPECT_EQ(message_of<InvalidArgument>([&] { write_graph(path_, graph, DType::u8, kMaxObjects + 1); }),
              path_ + ": cannot write the graph: objects = 2147483648, expected 1 to 2147483647");
    write_graph(path_, make_graph(20, 3), DType::u8, 20);
    EXPECT_EQ(GraphFile(path_).version(), 1u) << "what every version of the library can read";
    EXPECT_EQ(GraphFile(path_).objects(), 20);
    EXPECT_NE(GraphFile(path_).checksum(), file.checksum());
}

TEST_F(GraphFileTest, KeepsTheIdentityOfItsBase) {
    const KnnGraph graph = make_graph(20, 3);
    write_graph(path_, graph, DType::u8);
    EXPECT_FALSE(GraphFile(path_).base()) << "of a file without";
    for (const std::int64_t objects : {20, 1001}) {  // the whole graph, and rows of a larger one
        const BaseIdentity base{objects, 128, DType::i8, 0x0123456789abcdefu};
        write_graph(path_, graph, base);
        const std::string bytes = read_bytes(path_);
        EXPECT_EQ(bytes.size(), graph_file_bytes(20, 3, true));
        const GraphFile file(path_);
        EXPECT_EQ(file.version(), 3u);
        EXPECT_EQ(file.objects(), objects);
        EXPECT_EQ(file.dtype(), DType::i8);
        ASSERT_TRUE(file.base());
        EXPECT_EQ(*file.base(), base);
        expect_rows(file.read(), graph, 0, 20);
        expect_rows(file.read(7, 5), graph, 7, 5);
        expect_every_byte_checked(bytes);
    }
    EXPECT_EQ(message_of<InvalidArgument>([&] {
                  write_graph(path_, graph, {20, 0, DType::u8, 1});
              }),
              path_ + ": cannot write the graph: d = 0, expected 1 to 1048576");
}

TEST_F(GraphFileTest, KeepsTheRecallThatWasMeasured) {
    const KnnGraph graph = make_graph(20, 3);
    const BaseIdentity base{20, 128, DType::i8, 0x0123456789abcdefu};
    write_graph(path_, graph, base);
    EXPECT_EQ(GraphFile(path_).version(), 3u) << "what earlier versions of the library can read, too";
    EXPECT_EQ(GraphFile(path_).recall().objects, 0);
    const RecallEstimate recall{0.9, 0.85, 0.925, 2, 12};
    write_graph(path_, graph, base, recall);
    const std::string bytes = read_bytes(path_);
    EXPECT_EQ(bytes.size(), graph_file_bytes(20, 3, true, true));
    const GraphFile file(path_);
    EXPECT_EQ(file.version(), 4u);
    EXPECT_EQ(*file.base(), base);
    EXPECT_EQ(file.recall().value, recall.value);
    EXPECT_EQ(file.recall().low, recall.low);
    EXPECT_EQ(file.recall().high, recall.high);
    EXPECT_EQ(file.recall().at, recall.at);
    EXPECT_EQ(file.recall().objects, recall.objects);
    expect_rows(file.read(), graph, 0, 20);
    expect_rows(file.read(7, 5), graph, 7, 5);
    expect_every_byte_checked(bytes);
}

TEST_F(GraphFileTest, RefusesARecallThatIsNone) {
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

TEST_F(GraphFileTest, OtherBlocksCanStillBeRead) {
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

class ForgedGraphFile : public GraphFileTest {
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

TEST_F(GraphFileTest, WriterRefusesWhatAReaderWould) {
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

TEST_F(GraphFileTest, FullDiskKeepsTheOldFile) {
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

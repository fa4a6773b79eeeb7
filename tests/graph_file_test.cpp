// SPDX-License-Identifier: MIT
// Graph files written and read back, whole and by range, with what they keep beside the lists. Files that are refused
// are in graph_file_errors_test.cpp, those with ids of 64 bits in wide_graph_file_test.cpp.
#include "gnnd/io/graph_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/vectors.h"
#include "tests/graph_files.h"

namespace gnnd::io {
namespace {

using test::expect_rows;
using test::make_graph;
using test::message_of;
using test::read_bytes;

class GraphFileTest : public test::GraphFiles {};

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

}  // namespace
}  // namespace gnnd::io

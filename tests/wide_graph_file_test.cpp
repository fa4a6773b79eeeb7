// SPDX-License-Identifier: MIT
// Graph files whose ids take 64 bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/io/graph_file.h"
#include "gnnd/vectors.h"
#include "tests/forged_graph_file.h"
#include "tests/io_conditions.h"
#include "tests/temp_dir.h"

namespace gnnd::io {
namespace {

constexpr std::int64_t kWideObjects = std::int64_t(10'000'000'000), kWideRows = 500, kWideColumns = 300;

class WideGraphFile : public ::testing::Test {
  protected:
    WideGraphFile() {
        for (std::int64_t i = 0; i < kWideRows * kWideColumns; ++i) {
            ids_.push_back(i % 11 == 0 ? -1 : (i * 1'234'567'891) % kWideObjects);
            distances_.push_back(float(i) * 0.5f);
        }
    }
    WideGraphView view(std::int64_t rows = kWideRows) const {
        return {rows, kWideColumns, Metric::L2, ids_.data(), distances_.data()};
    }
    /// Rows of the file against those of the view.
    void expect_rows(const GraphFile& file, std::int64_t begin, std::int64_t count) const {
        std::vector<std::int64_t> ids(std::size_t(count * kWideColumns));
        std::vector<float> distances(ids.size());
        file.read_into(begin, count, ids.data(), distances.data());
        EXPECT_TRUE(std::equal(ids.begin(), ids.end(), view().ids_of(begin)));
        EXPECT_TRUE(std::equal(distances.begin(), distances.end(), view().distances_of(begin)));
    }
    /// Returns the reason for which a file with the header's field changed, and checksums that fit, is refused.
    template <class T>
    std::string forged(std::size_t offset, T value) const {
        std::string bytes = test::read_bytes(path_);
        std::memcpy(bytes.data() + offset, &value, sizeof value);
        const std::uint64_t sum = XXH3_64bits(bytes.data(), 112);
        std::memcpy(bytes.data() + 112, &sum, sizeof sum);
        test::write_bytes(path_ + ".forged", bytes);
        const std::string message = test::message_of<IoError>([&] { GraphFile(path_ + ".forged"); });
        return message.substr(std::min(message.size(), path_.size() + 9));
    }

    const test::TempDir dir_;
    const std::string path_ = dir_.file("wide.gnnd");
    std::vector<std::int64_t> ids_;
    std::vector<float> distances_;
};

TEST_F(WideGraphFile, KeepsIdsBeyond32Bits) {
    write_graph(path_, view(), DType::u8, kWideObjects);
    const GraphFile file(path_);
    EXPECT_EQ(file.version(), 5u);
    EXPECT_EQ(file.id_bytes(), 8u);
    EXPECT_EQ(file.objects(), kWideObjects);
    EXPECT_FALSE(file.base());
    EXPECT_EQ(file.recall().objects, 0);
    EXPECT_EQ(file.bytes(), graph_file_bytes(kWideRows, kWideColumns, false, false, 8));
    EXPECT_LE(file.block_rows() * kWideColumns * 12, 1 << 20);
    EXPECT_LT(file.block_rows(), kWideRows) << "for what follows";
    expect_rows(file, 0, kWideRows);
    expect_rows(file, file.block_rows() - 1, 2);
    expect_rows(file, 7, 0);
    const std::string message = path_ +
                                ": its ids are of 10000000000 objects and take 64 bits; a graph in memory has " +
                                "ids of 32, of 2147483647 objects at most";
    std::vector<std::int32_t> narrow(kWideColumns);
    std::vector<float> distances(kWideColumns);
    EXPECT_EQ(test::message_of<IoError>([&] { file.read(); }), message);
    EXPECT_EQ(test::message_of<IoError>([&] { file.read_into(0, 1, narrow.data(), distances.data()); }), message);
    // Several threads look for such rows: the one that is named need not be the first.
    const std::string refused = test::message_of<InvalidArgument>([&] { write_graph(path_, view(), DType::u8, 1000); });
    EXPECT_TRUE(refused.starts_with(path_ + ": cannot write the graph: row ")) << refused;
    EXPECT_TRUE(refused.ends_with(", expected -1 to 999")) << refused;
    EXPECT_EQ(test::message_of<InvalidArgument>([&] { write_graph(path_, view(), DType::u8, kMaxShardedObjects + 1); }),
              path_ + ": cannot write the graph: objects = 1099511626753, expected 1 to 1099511626752");
}

TEST_F(WideGraphFile, WidthsAreReadAsEachOther) {
    for (std::int64_t& id : ids_) id = std::min<std::int64_t>(id, 999);
    write_graph(path_, view(), DType::u8, 1000);
    const KnnGraph narrow = GraphFile(path_).read();
    EXPECT_TRUE(std::equal(ids_.begin(), ids_.end(), narrow.ids()));
    EXPECT_TRUE(std::equal(distances_.begin(), distances_.end(), narrow.distances()));
    write_graph(path_, narrow, DType::u8, 1000);
    EXPECT_EQ(GraphFile(path_).version(), 2u);
    EXPECT_EQ(GraphFile(path_).id_bytes(), 4u);
    expect_rows(GraphFile(path_), 0, kWideRows);
    expect_rows(GraphFile(path_), 300, 7);
}

TEST_F(WideGraphFile, EveryAlteredByteIsNoticed) {
    write_graph(path_, view(2), DType::u8, kWideObjects);
    const std::string bytes = test::read_bytes(path_);
    std::vector<std::int64_t> ids(2 * kWideColumns);
    std::vector<float> distances(ids.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        std::string altered = bytes;
        altered[i] = char(altered[i] ^ 1 << i % 8);
        test::write_bytes(path_, altered);
        EXPECT_THROW(GraphFile(path_).read_into(0, 2, ids.data(), distances.data()), IoError) << "byte " << i;
    }
}

/// Row by row, with what is known of base and recall.
TEST_F(WideGraphFile, IsWrittenInPieces) {
    const BaseIdentity base{kWideRows, 64, DType::i8, 0x0123456789abcdefu};
    for (std::int64_t& id : ids_) id = std::min(id, kWideRows - 1);
    const ReadWideRows read = [&](std::int64_t begin, std::int64_t count, std::int64_t* ids, float* distances) {
        std::copy_n(view().ids_of(begin), count * kWideColumns, ids);
        std::copy_n(view().distances_of(begin), count * kWideColumns, distances);
    };
    const RecallEstimate recall{0.9, 0.85, 0.925, 2, 12};
    for (const bool known : {true, false}) {
        write_graph(path_, kWideRows, kWideColumns, Metric::L2, DType::i8, known ? std::optional(base) : std::nullopt,
                    read, recall);
        const GraphFile file(path_);
        EXPECT_EQ(file.version(), 5u);
        EXPECT_EQ(file.base(), known ? std::optional(base) : std::nullopt);
        EXPECT_EQ(file.recall().objects, known ? 12 : 0);
        expect_rows(file, 0, kWideRows);
    }
    std::string whole = test::read_bytes(path_);
    write_graph(path_, view(), DType::i8, kWideRows);
    EXPECT_EQ(test::read_bytes(path_), whole);
}

TEST_F(WideGraphFile, AHeaderThatCannotBeIsRefused) {
    write_graph(path_, view(2), DType::u8, kWideObjects);
    EXPECT_EQ(forged<std::uint32_t>(108, 4), "header says ids of 4 bytes, expected 8");
    EXPECT_EQ(forged<std::uint64_t>(16, 1ull << 40), "header says n = 1099511627776, expected 1 to 1099511626752");
    EXPECT_EQ(forged<std::uint64_t>(48, 0), "header says objects = 0, expected 1 to 1099511626752");
    EXPECT_EQ(forged<std::uint64_t>(56, 1ull << 30), "header says d = 1073741824, expected 1 to 1048576");
    EXPECT_EQ(forged<std::uint64_t>(96, 3), "header says of the recall what is none");
    EXPECT_EQ(forged<std::uint32_t>(8, 6), "graph file version 6 is newer than this library, which knows 5");
}

}  // namespace
}  // namespace gnnd::io

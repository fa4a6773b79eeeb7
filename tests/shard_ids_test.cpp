// SPDX-License-Identifier: MIT
// Ids of 64 bits in what lists go through: folding, samples, recalls, the files of shards whose first rows lie beyond
// 2^31. Those files are sparse: what they hold is zero but for a few rows.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "gnnd/detail/fold.h"
#include "gnnd/detail/recall.h"
#include "gnnd/error.h"
#include "gnnd/io/detail/graph_blocks.h"
#include "gnnd/io/detail/graph_header.h"
#include "gnnd/io/graph_file.h"
#include "gnnd/random.h"
#include "gnnd/sharded.h"
#include "gnnd/shards/folder.h"
#include "gnnd/shards/ids.h"
#include "gnnd/shards/recall_sample.h"
#include "tests/io_conditions.h"
#include "tests/temp_dir.h"

namespace gnnd::shards {
namespace {

constexpr std::int64_t kFar = std::int64_t(1) << 33;

TEST(WideIds, FoldGivesWhatNarrowOnesGive) {
    constexpr std::int64_t kRows = 2000, kColumns = 9;
    Random random(5);
    KnnGraph lists(kRows, kColumns, Metric::L2), found(kRows, kColumns, Metric::L2);
    for (KnnGraph* graph : {&lists, &found})
        for (std::int64_t i = 0; i < kRows; ++i) {
            std::set<std::pair<float, std::int32_t>> row;
            for (std::uint32_t j = random.below(kColumns + 1); j > 0; --j)
                row.insert({float(random.below(5)), std::int32_t(100 * j + random.below(100))});
            std::int64_t place = i * kColumns;
            for (const auto& [distance, id] : row) {
                graph->ids()[place] = id;
                graph->distances()[place++] = distance;
            }
        }
    std::vector<std::int64_t> ids(lists.ids(), lists.ids() + kRows * kColumns);
    for (std::int64_t& id : ids) id = id < 0 ? id : id + kFar;
    std::vector<float> distances(lists.distances(), lists.distances() + kRows * kColumns);
    const detail::Partner near{300, 700, 5000}, far{300, 700, kFar + 5000};
    const std::int64_t entered = detail::fold(found, near, kColumns, lists.ids(), lists.distances(), 2);
    EXPECT_GT(entered, kRows);
    EXPECT_EQ(detail::fold(found, far, kColumns, ids.data(), distances.data(), 2), entered);
    for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
        ASSERT_EQ(ids[std::size_t(i)], lists.ids()[i] < 0 ? -1 : lists.ids()[i] + kFar) << i;
        ASSERT_EQ(distances[std::size_t(i)], lists.distances()[i]) << i;
    }
    detail::put_rows(found, kFar, ids.data(), distances.data(), 2);
    for (std::int64_t i = 0; i < kRows * kColumns; ++i)
        ASSERT_EQ(ids[std::size_t(i)], found.ids()[i] < 0 ? -1 : found.ids()[i] + kFar) << i;
}

TEST(WideIds, SamplesAreThoseOfNarrowOnes) {
    const std::vector<std::int32_t> narrow = detail::sample_objects(100000, 500, 3);
    const std::vector<std::int64_t> wide = detail::sample_objects<std::int64_t>(100000, 500, 3);
    EXPECT_TRUE(std::equal(wide.begin(), wide.end(), narrow.begin(), narrow.end()));
    constexpr std::int64_t kObjects = 10'000'000'000;
    const std::vector<std::int64_t> many = detail::sample_objects<std::int64_t>(kObjects, 4000, 3);
    ASSERT_EQ(many.size(), 4000u);
    EXPECT_TRUE(std::is_sorted(many.begin(), many.end()));
    EXPECT_EQ(std::adjacent_find(many.begin(), many.end()), many.end());
    EXPECT_GE(many.front(), 0);
    EXPECT_LT(many.back(), kObjects);
    for (int tenth = 0; tenth < 10; ++tenth) {  // 400 +- 19 each
        const auto count = std::count_if(many.begin(), many.end(),
                                         [&](std::int64_t object) { return object / 1'000'000'000 == tenth; });
        EXPECT_NEAR(double(count), 400, 100) << tenth;
    }
}

/// A graph in four shards of 750,000,000 rows, each list of one entry: object 0 at distance 0, but for the rows that
/// are set.
class FarShards : public testing::Test {
  protected:
    static constexpr std::int64_t kObjects = 3'000'000'000, kShards = 4, kOne = 1;

    FarShards() {
        manifest_.base.n = kObjects;
        manifest_.base.d = 1;
        manifest_.base.dtype = DType::u8;
        manifest_.base.checksum = 7;
        manifest_.params.k = manifest_.params.recall_at = 1;
        manifest_.id_bytes = id_bytes_for(kObjects);
        manifest_.shards.resize(kShards);
        manifest_.complete = true;
        std::filesystem::create_directory(dir_.file("work"));
        for (int shard = 0; shard < kShards; ++shard) {
            ShardRecord& record = manifest_.shards[std::size_t(shard)];
            for (int other = 0; other < kShards; ++other)
                if (other != shard) record.merged.push_back(other);
            const std::string name = "lists-0000" + std::to_string(shard) + ".1.gnnd";
            // The last row of each shard: the object before it.
            write_zeros(dir_.file("work/" + name), manifest_.rows(shard), manifest_.begin(shard + 1) - 2, 0.25f);
            const io::GraphFile file(dir_.file("work/" + name));
            record.lists = FileRecord{name, file.bytes(), file.checksum()};
        }
        manifest_.write(dir_.file("work/manifest.json"));
    }

    /// \param last  the id in the last row. \param distance  and its distance
    static void write_zeros(const std::string& path, std::int64_t n, std::int64_t last, float distance) {
        namespace file = io::detail;
        const std::int64_t block = file::block_rows_for(kOne, sizeof last), blocks = file::blocks_of(n, block);
        std::vector<std::int64_t> ids(std::size_t(block), 0);
        std::vector<float> distances(std::size_t(block), 0.f);
        std::vector<std::uint64_t> table(std::size_t(blocks), file::checksum_of(ids.data(), distances.data(), block));
        const std::int64_t rest = n - (blocks - 1) * block;
        ids[std::size_t(rest - 1)] = last;
        distances[std::size_t(rest - 1)] = distance;
        table.back() = file::checksum_of(ids.data(), distances.data(), rest);
        file::Header header{};
        std::copy(std::begin(file::kMagic), std::end(file::kMagic), header.magic);
        header.version = 5;
        header.n = std::uint64_t(n);
        header.k = kOne;
        header.dtype = std::uint32_t(DType::u8);
        header.block_rows = std::uint32_t(block);
        header.table_checksum = file::checksum_of(table);
        header.objects = kObjects;
        header.id_bytes = sizeof last;
        const std::uint64_t sum = file::checksum_of(header);
        test::write_bytes(path, std::string(reinterpret_cast<const char*>(&header), sizeof header));
        const std::int64_t ids_at = sizeof header + sizeof sum, distances_at = ids_at + n * 8,
                           table_at = distances_at + n * 4;
        std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
        const auto put = [&](std::int64_t at, const void* bytes, std::size_t count) {
            out.seekp(at);
            out.write(static_cast<const char*>(bytes), std::streamsize(count));
        };
        put(sizeof header, &sum, sizeof sum);
        put(distances_at - 8, &last, sizeof last);
        put(table_at - 4, &distance, sizeof distance);
        put(table_at, table.data(), table.size() * sizeof(std::uint64_t));
        ASSERT_TRUE(out.good());
    }
    io::VectorReader base() const {
        return {kObjects, 1, DType::u8, [](std::int64_t begin, std::int64_t count, std::byte* out) {
                    for (std::int64_t i = 0; i < count; ++i) out[i] = std::byte((begin + i) % 251);
                }};
    }

    const test::TempDir dir_;
    Manifest manifest_;
};

TEST_F(FarShards, AreReadAsOneGraph) {
    const ShardedGraph graph(dir_.file("work"));
    EXPECT_EQ(graph.n(), kObjects);
    EXPECT_EQ(graph.id_bytes(), 8);
    EXPECT_GT(graph.bytes(), std::uint64_t(kObjects) * 12);
    std::vector<std::int64_t> ids(3);
    std::vector<float> distances(3);
    graph.read(kObjects - 3, 3, ids.data(), distances.data());
    EXPECT_EQ(ids, (std::vector<std::int64_t>{0, 0, kObjects - 2}));
    EXPECT_EQ(distances, (std::vector<float>{0, 0, 0.25f}));
    graph.read(2'249'999'998, 3, ids.data(), distances.data());  // of two shards
    EXPECT_EQ(ids, (std::vector<std::int64_t>{0, 2'249'999'998, 0}));
    EXPECT_THROW(graph.read(kObjects - 2, 3, ids.data(), distances.data()), InvalidArgument);
    int asked = 0;
    EXPECT_THROW(graph.write(dir_.file("one.gnnd"), [&] { return ++asked > 2; }), Interrupted);
    EXPECT_FALSE(std::filesystem::exists(dir_.file("one.gnnd")));
}

TEST_F(FarShards, ListsOfNarrowIdsAreNotTheirs) {
    manifest_.shards.back().lists->name = "lists-00003.2.gnnd";
    Manifest narrow = manifest_;
    narrow.id_bytes = 4;
    EXPECT_EQ(test::message_of<IoError>([&] { Manifest::from_text(narrow.to_text(), "m"); }),
              "m: invalid: n is outside of what is allowed");
    narrow.id_bytes = 5;
    EXPECT_EQ(test::message_of<IoError>([&] { Manifest::from_text(narrow.to_text(), "m"); }),
              "m: invalid: ids are neither of 4 nor of 8 bytes");
    narrow.base.n = 1000;
    narrow.id_bytes = 4;
    EXPECT_EQ(narrow.difference(manifest_), "the number of bytes of an id is 4, asked for is 8");
    EXPECT_EQ(narrow.to_text().find("id_bytes"), std::string::npos) << "so that older libraries read it";
    Manifest large = manifest_;
    large.shards.resize(2);
    large.shards[0].merged = {1};
    large.shards[1].merged = {0};
    EXPECT_EQ(test::message_of<IoError>([&] { Manifest::from_text(large.to_text(), "m"); }),
              "m: invalid: its shards are too large");
    const Manifest read = Manifest::from_text(manifest_.to_text(), "m");
    EXPECT_EQ(read.id_bytes, 8);
    EXPECT_EQ(read.to_text(), manifest_.to_text());
    EXPECT_EQ(read.shard_of(kObjects - 1), 3);
    EXPECT_EQ(read.shard_of(2'250'000'000), 3);
    EXPECT_EQ(read.shard_of(2'249'999'999), 2);
    // A file of the other width is not the one that the manifest describes.
    const std::string name = dir_.file("work/lists-00000.9.gnnd");
    const std::vector<std::int32_t> ids(3, 0);
    const std::vector<float> distances(3, 0.f);
    Manifest small = manifest_;
    small.base.n = 4 * 3;
    io::write_graph(name, {3, 1, Metric::L2, ids.data(), distances.data()}, DType::u8, small.base.n);
    const io::GraphFile file(name);
    small.shards[0].lists = FileRecord{"lists-00000.9.gnnd", file.bytes(), file.checksum()};
    EXPECT_EQ(test::message_of<IoError>([&] { open_lists(dir_.file("work"), small, 0); }),
              name + ": invalid: not the graph that manifest.json describes");
    small.id_bytes = 4;
    EXPECT_EQ(open_lists(dir_.file("work"), small, 0).n(), 3);
}

/// The nearest of every object are said to be in the last shard, which lists of zeros do not know but for their
/// distance.
TEST_F(FarShards, HaveARecall) {
    const io::VectorReader vectors = base();
    RecallSample sample(vectors, manifest_, 200, 1);
    EXPECT_EQ(RecallSample::bytes(manifest_, 200), 200u * (1 + 2 * 12 + 8 + 12));
    int numbered = 0;
    for (int shard = 0; shard < kShards; ++shard) {
        const std::vector<std::int32_t> numbers = sample.numbers_in(shard);
        for (const std::int32_t number : numbers) {
            EXPECT_LT(number, manifest_.rows(shard));
            numbered += number >= 0;
        }
        KnnGraph nearest(200, kOne, Metric::L2);
        for (std::int64_t i = 0; i < nearest.n(); ++i) {
            nearest.ids()[i] = std::int32_t(manifest_.rows(shard) - 5);
            nearest.distances()[i] = shard == 3 ? 1.f : 2.f;
        }
        EXPECT_FALSE(sample.compared_with(shard));
        sample.take_nearest(shard, nearest, 1);
        sample.read_lists(shard, open_lists(dir_.file("work"), manifest_, shard));
    }
    EXPECT_EQ(numbered, 200);
    const PairCounts borders = sample.borders();
    EXPECT_EQ(borders.sum(), 200);
    for (int shard = 0; shard < kShards; ++shard) {
        EXPECT_GT(borders.of(shard, 3), 20) << shard;
        EXPECT_EQ(borders.of(shard, shard), shard == 3 ? borders.of(3, 3) : 0);
    }
    const RecallEstimate recall = sample.estimate();
    EXPECT_EQ(recall.value, 1) << "object 0 is at distance 0";
    EXPECT_EQ(recall.objects, 200);
    EXPECT_LT(recall.low, 1);
}

}  // namespace
}  // namespace gnnd::shards

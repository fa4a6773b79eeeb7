// SPDX-License-Identifier: MIT
// Builds in shards whose lists have ids of 64 bits: the same graphs as with those of 32, and plans for more objects
// than these tell apart.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <filesystem>
#include <string>
#include <vector>

#include "gnnd/io/graph_file.h"
#include "gnnd/io/vector_reader.h"
#include "gnnd/shards/manifest.h"
#include "gnnd/shards/restore.h"
#include "tests/io_conditions.h"
#include "tests/shard_fixture.h"
#include "tests/shard_recall.h"

namespace gnnd::test {
namespace {

class ShardedIds : public Sharded {
  protected:
    ShardedIds() {
        params_.k = 10;
        params_.threads = 1;  // of more the order decides
        params_.device = {Device::Kind::cpu, 0};
        make_base(900);
    }
    ShardParams with_ids(int bytes, int count = 5, bool resume = false) const {
        ShardParams params = shards(count, resume);
        params.id_bytes = bytes;
        return params;
    }
    void expect_wide_lists() const {
        const shards::Manifest manifest = shards::Manifest::read(manifest_path());
        EXPECT_EQ(manifest.id_bytes, 8);
        for (const shards::ShardRecord& shard : manifest.shards)
            EXPECT_EQ(io::GraphFile(work() + "/" + shard.lists->name).id_bytes(), 8u);
    }
    static void expect_same(const KnnGraph& graph, const KnnGraph& wanted) {
        for (std::int64_t i = 0; i < wanted.n() * wanted.k(); ++i) {
            ASSERT_EQ(graph.ids()[i], wanted.ids()[i]) << i;
            ASSERT_EQ(graph.distances()[i], wanted.distances()[i]) << i;
        }
    }
};

TEST_F(ShardedIds, OfBothWidthsAreTheSame) {
    params_.recall = 0.99f;
    for (const MergePlan plan : kMergePlans)
        for (const int count : {1, 5}) {
            SCOPED_TRACE(testing::Message() << name_of(plan) << ", " << count << " shards");
            ShardParams narrow = with_ids(0, count), wide = with_ids(8, count);
            narrow.plan = wide.plan = plan;
            std::filesystem::remove_all(work());
            const ShardedStats expected = build_sharded(*base_, params_, narrow);
            const KnnGraph graph = read_all(ShardedGraph(work()));
            EXPECT_EQ(ShardedGraph(work()).id_bytes(), 4);
            ShardedGraph(work()).write(dir_.file("narrow.gnnd"));
            const ShardedPlan needs = plan_sharded(*base_, params_, narrow);
            std::filesystem::remove_all(work());
            const ShardedStats stats = build_sharded(*base_, params_, wide);
            expect_same(read_all(ShardedGraph(work())), graph);
            expect_same_recall(stats.recall, expected.recall);
            EXPECT_EQ(stats.merges, expected.merges);
            EXPECT_EQ(ShardedGraph(work()).id_bytes(), 8);
            expect_wide_lists();
            EXPECT_GT(stats.written_bytes, expected.written_bytes + 4 * 900 * 10);
            ShardedGraph(work()).write(dir_.file("wide.gnnd"));
            EXPECT_EQ(read_bytes(dir_.file("wide.gnnd")), read_bytes(dir_.file("narrow.gnnd")))
                << "few objects need no more in one file";
            const ShardedPlan more = plan_sharded(*base_, params_, wide);
            EXPECT_GE(more.disk, needs.disk + 4 * 900 * 10);
            EXPECT_GE(more.host, needs.host);
            EXPECT_LE(stats.peak_host_bytes, more.host_overlapped);
        }
}

/// In as little memory as there must be.
TEST_F(ShardedIds, GoOnAfterAFailureAnywhere) {
    for (int task = 0; task < 10; task += 3) {
        std::filesystem::remove_all(work());
        ShardParams wide = with_ids(8, 4);
        wide.host_memory = std::int64_t(plan_sharded(*base_, params_, wide).host);
        int left = task;
        EXPECT_EQ(message_of<DeviceError>([&] { build(wide, {}, failing_after(left)); }), "the device broke");
        if (task > 0) {
            EXPECT_EQ(message_of<IoError>([&] { build(with_ids(4, 4, true)); }),
                      work() + ": holds a part of another graph: the number of bytes of an id is 8, asked for is 4");
        }
        wide.resume = true;
        wide.id_bytes = 0;  // as many as it has
        build(wide);
        expect_exact();
        if (task > 0) expect_wide_lists();
    }
    std::filesystem::remove_all(work());
    build(with_ids(4));
    EXPECT_EQ(message_of<IoError>([&] { build(with_ids(8, 5, true)); }),
              work() + ": holds a part of another graph: the number of bytes of an id is 4, asked for is 8");
}

TEST_F(ShardedIds, ListsThatAreGoneAreMadeAgain) {
    build(with_ids(8));
    const shards::Manifest manifest = shards::Manifest::read(manifest_path());
    std::filesystem::remove(work() + "/" + manifest.shards[2].lists->name);
    build(with_ids(0, 0, true));
    expect_exact();
    expect_wide_lists();
}

/// An order of more rows than 32 bits tell apart, nearly all of which is not there: the last rows of the base are the
/// last ones of two shards, and each has the next one as its neighbour.
TEST_F(ShardedIds, OfAnOrderLeadBackToRowsPast31Bits) {
    shards::Manifest manifest;
    manifest.base.n = (std::int64_t(1) << 31) + 12'288;
    manifest.base.d = 1;
    manifest.plan = MergePlan::near;
    manifest.id_bytes = 8;
    manifest.params.k = 1;
    manifest.shards.resize(1024);
    const std::size_t bytes = std::size_t(manifest.base.n) * sizeof(std::int64_t);
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) GTEST_SKIP() << "no room for " << bytes << " bytes of addresses";
    auto* const order = static_cast<std::int64_t*>(memory);
    constexpr int kResult = 1023, kHolders[] = {3, 1000};
    const std::int64_t begin = manifest.begin(kResult), rows = manifest.rows(kResult);
    const auto place_of = [&](std::int64_t row) {  // of even rows in one of them, of odd ones in the other
        return manifest.begin(kHolders[row % 2] + 1) - rows / 2 + row / 2;
    };
    for (std::int64_t row = 0; row < rows; ++row) order[place_of(row)] = begin + row;
    for (const int holder : kHolders) {
        std::vector<std::int64_t> ids(std::size_t(manifest.rows(holder)), -1);
        const std::vector<float> distances(ids.size(), 2.f);
        for (std::int64_t row = holder == kHolders[1]; row < rows; row += 2)
            ids[std::size_t(place_of(row) - manifest.begin(holder))] = place_of((row + 1) % rows);
        io::write_graph(dir_.file(std::to_string(holder)),
                        WideGraphView{std::int64_t(ids.size()), 1, Metric::L2, ids.data(), distances.data()}, DType::u8,
                        manifest.base.n);
    }
    const shards::Ordered ordered{order, "the order",
                                  [&](int shard) { return io::GraphFile(dir_.file(std::to_string(shard))); }};
    std::vector<std::int64_t> ids(static_cast<std::size_t>(rows));
    std::vector<float> distances(ids.size());
    restore_rows(ordered, manifest, kResult, ids.data(), distances.data(), 1, {});
    std::int64_t wrong = 0;
    for (std::int64_t row = 0; row < rows; ++row) wrong += ids[std::size_t(row)] != begin + (row + 1) % rows;
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(ids[0], std::int64_t(1) << 30);
    EXPECT_GT(ids[std::size_t(rows) - 2], std::int64_t(1) << 31);
    munmap(memory, bytes);
}

/// Ten billion rows, none of which is anywhere.
TEST_F(ShardedIds, OfTenBillionAreWhatIsPlanned) {
    constexpr std::int64_t kRows = 10'000'000'000, kDim = 128;
    const io::VectorReader many(kRows, kDim, DType::u8, [](std::int64_t begin, std::int64_t count, std::byte* out) {
        for (std::int64_t i = 0; i < count * kDim; ++i) out[i] = std::byte((begin * kDim + i) % 251);
    });
    const ShardedPlan plan = plan_sharded(many, params_, with_ids(0, 512));
    EXPECT_EQ(plan.builds, 512);
    EXPECT_EQ(plan.merges, 512 * 511 / 2);
    // Lists of 12 bytes an entry, local graphs of 8, and the lists of 32 shards once more; 1% for checksums.
    const double lists = double(kRows) * 10 * 12, local = double(kRows) * 10 * 8;
    EXPECT_NEAR(double(plan.disk), lists * (1 + 32.0 / 512) + local, 0.01 * lists);
    const double shard = double(kRows) / 512;
    EXPECT_GT(double(plan.host), shard * (2 * (128 + 80) + 160 + 120));
    EXPECT_EQ(message_of<InvalidArgument>([&] { plan_sharded(many, params_, with_ids(4, 512)); }),
              "ShardParams::id_bytes = 4 of 10000000000 vectors; allowed are 2147483647");
    EXPECT_EQ(message_of<InvalidArgument>([&] { plan_sharded(many, params_, with_ids(0, 9)); }),
              "ShardParams::shards = 9 of 10000000000 vectors; two shards may have 2147483647 at most");
    ShardParams chosen = with_ids(0, 0);
    chosen.host_memory = std::int64_t(1) << 44;
    EXPECT_EQ(plan_sharded(many, params_, chosen).builds, 10) << "as few as there may be";
    chosen.plan = MergePlan::near;
    EXPECT_EQ(message_of<InvalidArgument>([&] { plan_sharded(many, params_, chosen); }),
              "ShardParams::plan = near of 10000000000 vectors; allowed are 4294967295");
    EXPECT_EQ(message_of<InvalidArgument>([&] { with_ids(5).validate(); }),
              "ShardParams::id_bytes = 5, allowed are 0, 4 and 8");
}

}  // namespace
}  // namespace gnnd::test

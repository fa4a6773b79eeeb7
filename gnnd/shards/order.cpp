// SPDX-License-Identifier: MIT
#include "gnnd/shards/order.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "gnnd/cpu/backend.h"
#include "gnnd/cpu/parallel.h"
#include "gnnd/detail/recall.h"

namespace gnnd::shards {
namespace {

/// Cells of a shard, at least, so that few are cut.
constexpr int kCells = 8;
/// Objects of the sample in each cell, where the set has as many.
constexpr std::int64_t kSampled = 32;
/// Most bytes and rows that a pass reads at a time.
constexpr std::size_t kBlockBytes = 16 << 20;
constexpr std::int64_t kBlockRows = 1 << 16;
/// The stream of random numbers that the order draws from.
constexpr std::uint64_t kOrderStream = 0x04de4;

int levels_for(const Manifest& manifest) {
    int levels = 0;
    while ((1 << levels) < kCells * manifest.count()) ++levels;
    return levels;
}

std::int64_t sampled(const Manifest& manifest) {
    return std::min(manifest.base.n, kSampled << levels_for(manifest));
}

std::size_t row_bytes(const Manifest& manifest) {
    return std::size_t(manifest.base.d) * size_of(manifest.base.dtype);
}

std::int64_t block_rows(const Manifest& manifest) {
    return std::min(manifest.base.n, std::clamp<std::int64_t>(kBlockBytes / row_bytes(manifest), 1, kBlockRows));
}

/// Reads all of the base, block by block, and calls use(vectors, first row).
template <class Use>
void for_blocks(const io::VectorReader& base, std::int64_t rows, const Use& use) {
    std::vector<std::byte> block(std::size_t(rows * base.d()) * size_of(base.dtype()));
    for (std::int64_t begin = 0; begin < base.n(); begin += rows) {
        const std::int64_t count = std::min(rows, base.n() - begin);
        base.read(begin, count, block.data());
        use(VectorView{block.data(), count, base.d(), base.dtype(), 0}, begin);
    }
}

/// The vectors of the sample, read row by row.
Partition read_partition(const io::VectorReader& base, const Manifest& manifest, const BuildParams& params,
                         const cpu::Team& team) {
    const std::vector<std::int64_t> objects = order_sample(manifest, params);
    const std::size_t row = row_bytes(manifest);
    std::vector<std::byte> vectors(objects.size() * row);
    team.for_chunks(std::int64_t(objects.size()), 16, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
            base.read(objects[std::size_t(i)], 1, vectors.data() + std::size_t(i) * row);
    });
    const VectorView sample{vectors.data(), std::int64_t(objects.size()), base.d(), base.dtype(), 0};
    return make_partition(manifest, sample, params, team);
}

}  // namespace

std::vector<std::int64_t> order_sample(const Manifest& manifest, const BuildParams& params) {
    return detail::sample_objects<std::int64_t>(manifest.base.n, sampled(manifest), params.seed, kOrderStream);
}

Partition make_partition(const Manifest& manifest, const VectorView& sample, const BuildParams& params,
                         const cpu::Team& team) {
    return Partition(sample, params.metric, levels_for(manifest), params.seed, team);
}

void find_shards(const Manifest& manifest, const std::uint16_t* cells, std::int64_t count,
                 std::vector<std::int64_t>& next_in_cell, std::int32_t* shards) {
    for (std::int64_t i = 0; i < count; ++i) shards[i] = manifest.shard_of(next_in_cell[cells[i]]++);
}

void order_base(const io::VectorReader& base, const Manifest& manifest, const BuildParams& params,
                const std::string& vectors, const std::string& order, const std::function<bool()>& interrupt) {
    const cpu::Team team{cpu::Team::resolve(params.threads), &interrupt};
    const std::int64_t n = base.n(), rows = block_rows(manifest);
    std::vector<std::uint16_t> cells(static_cast<std::size_t>(n));
    std::vector<std::int64_t> next_in_cell;  // places of the cells' next rows if cells followed each other
    {
        const Partition partition = read_partition(base, manifest, params, team);
        std::vector<std::int64_t> sizes(std::size_t(partition.cells()));
        Callbacks callbacks;
        callbacks.interrupt = interrupt;
        for_blocks(base, rows, [&](const VectorView& block, std::int64_t begin) {
            cpu::check_vectors(block, params.metric, params.threads, callbacks, begin);
            partition.find(block, cells.data() + begin, team);
            for (std::int64_t i = 0; i < block.n; ++i) ++sizes[cells[std::size_t(begin + i)]];
        });
        next_in_cell.resize(sizes.size());
        std::exclusive_scan(sizes.begin(), sizes.end(), next_in_cell.begin(), std::int64_t(0));
    }
    const std::size_t id_bytes = std::size_t(manifest.id_bytes), width = id_bytes / sizeof(std::int32_t);
    io::VectorWriter ordered(vectors, n, base.d(), base.dtype()), rows_of(order, n, std::int64_t(width), DType::i32);
    std::vector<std::int64_t> filled;  // places of the shards' next rows
    for (int shard = 0; shard < manifest.count(); ++shard) filled.push_back(manifest.begin(shard));
    const std::size_t row = row_bytes(manifest);
    std::vector<std::byte> moved(std::size_t(rows) * row);
    std::vector<std::int32_t> ids(std::size_t(rows) * width), shards(static_cast<std::size_t>(rows));
    for_blocks(base, rows, [&](const VectorView& block, std::int64_t begin) {
        if (interrupt && interrupt()) throw Interrupted("interrupted by the caller");
        find_shards(manifest, cells.data() + begin, block.n, next_in_cell, shards.data());
        std::vector<std::int64_t> starts(std::size_t(manifest.count()) + 1);
        for (std::int64_t i = 0; i < block.n; ++i) ++starts[std::size_t(shards[std::size_t(i)]) + 1];
        for (int shard = 0; shard < manifest.count(); ++shard)
            starts[std::size_t(shard) + 1] += starts[std::size_t(shard)];
        std::vector<std::int64_t> to(starts.begin(), starts.end() - 1);
        for (std::int64_t i = 0; i < block.n; ++i) {
            const auto place = std::size_t(to[std::size_t(shards[std::size_t(i)])]++);
            std::copy_n(block.row(i), row, moved.data() + place * row);
            const std::int64_t id = begin + i;
            std::memcpy(ids.data() + place * width, &id, id_bytes);  // the low half first
        }
        for (int shard = 0; shard < manifest.count(); ++shard) {
            const auto from = std::size_t(starts[std::size_t(shard)]);
            const std::int64_t count = to[std::size_t(shard)] - std::int64_t(from);
            if (count == 0) continue;
            ordered.put(filled[std::size_t(shard)], moved.data() + from * row, count);
            rows_of.put(filled[std::size_t(shard)], ids.data() + from * width, count);
            filled[std::size_t(shard)] += count;
        }
    });
    ordered.commit();
    rows_of.commit();
}

std::uint64_t order_bytes(const Manifest& manifest) {
    const std::uint64_t row = row_bytes(manifest), cells = std::uint64_t(1) << levels_for(manifest);
    const std::uint64_t planes = cells * std::uint64_t(manifest.base.d) * sizeof(float);
    const std::uint64_t first = std::uint64_t(sampled(manifest)) * (row + 8) + planes;
    const std::uint64_t numbers = sizeof(std::int32_t) + std::uint64_t(manifest.id_bytes);
    const std::uint64_t second = 2 * std::uint64_t(block_rows(manifest)) * (row + numbers);
    return std::uint64_t(manifest.base.n) * sizeof(std::uint16_t) + std::max(first, planes + second);
}

}  // namespace gnnd::shards

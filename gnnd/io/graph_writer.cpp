// SPDX-License-Identifier: MIT
// Writing of graph files.
#include <algorithm>
#include <memory>
#include <vector>

#include "gnnd/cpu/parallel.h"
#include "gnnd/error.h"
#include "gnnd/io/detail/atomic_file.h"
#include "gnnd/io/detail/graph_blocks.h"
#include "gnnd/io/detail/graph_header.h"
#include "gnnd/io/graph_file.h"
#include "gnnd/vectors.h"

namespace gnnd::io {

namespace {

using detail::allowed_range;
using detail::block_rows_for;
using detail::blocks_of;
using detail::checksum_of;
using detail::Header;

constexpr int kThreads = 8;  ///< that check what is to be written: more read memory no faster

/// Fields of the header that callers know.
struct Description {
    std::int64_t n, k;
    Metric metric;
    DType dtype;
    std::size_t id_bytes;
    std::int64_t objects = 0;            ///< 0: n
    const BaseIdentity* base = nullptr;  ///< null where it is not known
    RecallEstimate recall = {};          ///< of 0 objects where it is not known
};

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
    throw InvalidArgument(path + ": cannot write the graph: " + what);
}

/// Refuses ids that are no objects. \return the block's checksum
template <class Id>
std::uint64_t check_block(const std::string& path, std::int64_t first, std::int64_t rows, std::int64_t k,
                          std::int64_t objects, const Id* ids, const float* distances) {
    const std::int64_t bad = detail::find_bad_id(ids, rows * k, objects);
    if (bad < rows * k) refuse(path, detail::bad_id(first + bad / k, ids[bad], objects));
    return checksum_of(ids, distances, rows * k);
}

/// \param fill_table  called with the number of objects, rows of a block and the table of checksums to fill
/// \param write_rows  called with the file, to write all ids and then all distances
template <class FillTable, class WriteRows>
void write(const std::string& path, const Description& graph, const FillTable& fill_table,
           const WriteRows& write_rows) {
    const std::int64_t n = graph.n, k = graph.k;
    const std::int64_t most = detail::most_objects(graph.id_bytes);
    if (n < 1 || n > most) refuse(path, "n = " + std::to_string(n) + allowed_range(most));
    if (k < 1 || k > kMaxGraphFileK) refuse(path, "k = " + std::to_string(k) + allowed_range(kMaxGraphFileK));
    const std::int64_t objects = graph.objects != 0 ? graph.objects : n;
    if (objects < 1 || objects > most) refuse(path, "objects = " + std::to_string(objects) + allowed_range(most));
    if (graph.base != nullptr && (graph.base->d < 1 || graph.base->d > kMaxDim))
        refuse(path, "d = " + std::to_string(graph.base->d) + allowed_range(kMaxDim));
    const bool with_recall = graph.base != nullptr && graph.recall.objects != 0;
    if (with_recall && !detail::is_estimate(graph.recall, objects, k)) refuse(path, "its recall is none");
    name_of(graph.metric);  // throws for numbers that no reader would know
    name_of(graph.dtype);

    // Before the pass over the graph, which would be in vain if the file cannot be created.
    detail::AtomicFile file(path);
    const std::int64_t block_rows = block_rows_for(k, graph.id_bytes);
    std::vector<std::uint64_t> table(std::size_t(blocks_of(n, block_rows)));
    fill_table(objects, block_rows, table);

    Header header{};
    std::copy(std::begin(detail::kMagic), std::end(detail::kMagic), header.magic);
    const bool wide = graph.id_bytes == sizeof(std::int64_t);
    header.version = wide ? 5 : with_recall ? 4 : graph.base != nullptr ? 3 : objects == n ? 1 : 2;
    if (wide) header.id_bytes = sizeof(std::int64_t);
    header.objects = header.version == 1 ? 0 : std::uint64_t(objects);
    if (graph.base != nullptr) {
        header.base_d = std::uint64_t(graph.base->d);
        header.base_checksum = graph.base->checksum;
    }
    if (with_recall) {
        header.recall = graph.recall.value;
        header.recall_low = graph.recall.low;
        header.recall_high = graph.recall.high;
        header.recall_objects = std::uint64_t(graph.recall.objects);
        header.recall_at = std::uint32_t(graph.recall.at);
    }
    header.metric = std::uint32_t(graph.metric);
    header.n = std::uint64_t(n);
    header.k = std::uint64_t(k);
    header.dtype = std::uint32_t(graph.dtype);
    header.block_rows = std::uint32_t(block_rows);
    header.table_checksum = checksum_of(table);
    const std::uint64_t header_checksum = checksum_of(header);
    file.write(&header, detail::fields_of(header.version));
    file.write(&header_checksum, sizeof header_checksum);
    write_rows(file);
    file.write(table.data(), table.size() * sizeof(std::uint64_t));
    file.commit();
}

template <class Id>
void write_view(const std::string& path, const GraphView<Id>& graph, DType dtype, std::int64_t objects,
                const BaseIdentity* base, const RecallEstimate& recall) {
    const auto fill_table = [&](std::int64_t all, std::int64_t block_rows, std::vector<std::uint64_t>& table) {
        cpu::Team{std::min(kThreads, cpu::Team::resolve(0)), nullptr}.for_chunks(
            graph.n, block_rows, [&](int, std::int64_t first, std::int64_t last) {
                table[std::size_t(first / block_rows)] = check_block(path, first, last - first, graph.k, all,
                                                                     graph.ids_of(first), graph.distances_of(first));
            });
    };
    const auto write_rows = [&](detail::AtomicFile& file) {
        file.write(graph.ids, std::size_t(graph.n * graph.k) * sizeof *graph.ids);
        file.write(graph.distances, std::size_t(graph.n * graph.k) * sizeof *graph.distances);
    };
    write(path, {graph.n, graph.k, graph.metric, dtype, sizeof(Id), objects, base, recall}, fill_table, write_rows);
}

/// \param read  as for write_graph()
template <class Id, class Read>
void write_pieces(const std::string& path, std::int64_t n, std::int64_t k, Metric metric, DType dtype,
                  const std::optional<BaseIdentity>& base, const Read& read, const RecallEstimate& recall) {
    constexpr std::int64_t kBlocks = 16;  // read at a time
    std::unique_ptr<Id[]> ids;
    std::unique_ptr<float[]> distances;
    const auto for_pieces = [&](const auto& use) {
        const std::int64_t rows = kBlocks * block_rows_for(k, sizeof(Id));
        if (!ids) {
            ids.reset(new Id[std::size_t(std::min(rows, n) * k)]);
            distances.reset(new float[std::size_t(std::min(rows, n) * k)]);
        }
        for (std::int64_t begin = 0; begin < n; begin += rows) {
            const std::int64_t count = std::min(rows, n - begin);
            read(begin, count, ids.get(), distances.get());
            use(begin, count);
        }
    };
    const auto fill_table = [&](std::int64_t objects, std::int64_t block_rows, std::vector<std::uint64_t>& table) {
        for_pieces([&](std::int64_t begin, std::int64_t count) {
            for (std::int64_t row = 0; row < count; row += block_rows)
                table[std::size_t((begin + row) / block_rows)] =
                    check_block(path, begin + row, std::min(block_rows, count - row), k, objects, ids.get() + row * k,
                                distances.get() + row * k);
        });
    };
    const auto write_rows = [&](detail::AtomicFile& file) {
        for_pieces(
            [&](std::int64_t, std::int64_t count) { file.write(ids.get(), std::size_t(count * k) * sizeof(Id)); });
        for_pieces([&](std::int64_t, std::int64_t count) {
            file.write(distances.get(), std::size_t(count * k) * sizeof(float));
        });
    };
    write(path, {n, k, metric, dtype, sizeof(Id), n, base ? &*base : nullptr, recall}, fill_table, write_rows);
}

}  // namespace

void write_graph(const std::string& path, const KnnGraphView& graph, DType dtype, std::int64_t objects) {
    write_view(path, graph, dtype, objects, nullptr, {});
}

void write_graph(const std::string& path, const WideGraphView& graph, DType dtype, std::int64_t objects) {
    write_view(path, graph, dtype, objects, nullptr, {});
}

void write_graph(const std::string& path, const KnnGraphView& graph, const BaseIdentity& base,
                 const RecallEstimate& recall) {
    write_view(path, graph, base.dtype, base.n, &base, recall);
}

void write_graph(const std::string& path, std::int64_t n, std::int64_t k, Metric metric, DType dtype,
                 const std::optional<BaseIdentity>& base, const ReadRows& read, const RecallEstimate& recall) {
    write_pieces<std::int32_t>(path, n, k, metric, dtype, base, read, recall);
}

void write_graph(const std::string& path, std::int64_t n, std::int64_t k, Metric metric, DType dtype,
                 const std::optional<BaseIdentity>& base, const ReadWideRows& read, const RecallEstimate& recall) {
    write_pieces<std::int64_t>(path, n, k, metric, dtype, base, read, recall);
}

std::uint64_t graph_file_bytes(std::int64_t n, std::int64_t k, bool with_base, bool with_recall, std::size_t id_bytes) {
    const std::uint32_t version = id_bytes == sizeof(std::int64_t) ? 5 : !with_base ? 1 : with_recall ? 4 : 3;
    return detail::header_bytes(version) + std::uint64_t(n * k) * detail::entry_bytes(id_bytes) +
           std::uint64_t(blocks_of(n, block_rows_for(k, id_bytes))) * sizeof(std::uint64_t);
}

}  // namespace gnnd::io

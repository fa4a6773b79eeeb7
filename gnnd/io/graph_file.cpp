// SPDX-License-Identifier: MIT
#include "gnnd/io/graph_file.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "gnnd/cpu/parallel.h"
#include "gnnd/error.h"
#include "gnnd/io/detail/atomic_file.h"
#include "gnnd/io/detail/graph_header.h"
#include "gnnd/io/detail/mapped_file.h"
#include "gnnd/vectors.h"

namespace gnnd::io {

namespace {

using detail::checksum_of;
using detail::Header;
using detail::header_bytes;

constexpr std::int64_t kBlockBytes = 1 << 20;
constexpr int kThreads = 8;  ///< that check what is to be written: more read memory no faster
constexpr std::size_t kEntryBytes = sizeof(std::int32_t) + sizeof(float);

std::uint64_t checksum_of(const std::vector<std::uint64_t>& table) {
    return XXH3_64bits(table.data(), table.size() * sizeof(std::uint64_t));
}

std::uint64_t checksum_of(const std::int32_t* ids, const float* distances, std::int64_t entries) {
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, ids, std::size_t(entries) * sizeof *ids);
    XXH3_64bits_update(&state, distances, std::size_t(entries) * sizeof *distances);
    return XXH3_64bits_digest(&state);
}

std::int64_t block_rows_for(std::int64_t k) {
    return std::max<std::int64_t>(1, kBlockBytes / (k * std::int64_t(kEntryBytes)));
}

std::int64_t blocks_of(std::int64_t n, std::int64_t block_rows) {
    return n / block_rows + (n % block_rows != 0);
}

std::string range(std::int64_t most) {
    return ", expected 1 to " + std::to_string(most);
}

/// The first entry of these that is neither -1 nor an object, or `entries`.
std::int64_t find_bad_id(const std::int32_t* ids, std::int64_t entries, std::int64_t objects) {
    return std::find_if(ids, ids + entries, [objects](std::int32_t id) { return id < -1 || id >= objects; }) - ids;
}

std::string bad_id(std::int64_t row, std::int32_t id, std::int64_t objects) {
    return "row " + std::to_string(row) + " holds id " + std::to_string(id) + ", expected -1 to " +
           std::to_string(objects - 1);
}

/// Fields of the header that callers know.
struct Description {
    std::int64_t n, k;
    Metric metric;
    DType dtype;
    std::int64_t objects = 0;            ///< 0: n
    const BaseIdentity* base = nullptr;  ///< null where it is not known
    RecallEstimate recall = {};          ///< of 0 objects where it is not known
};

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
    throw InvalidArgument(path + ": cannot write the graph: " + what);
}

/// Refuses ids that are no objects. \return the block's checksum
std::uint64_t check_block(const std::string& path, std::int64_t first, std::int64_t rows, std::int64_t k,
                          std::int64_t objects, const std::int32_t* ids, const float* distances) {
    const std::int64_t bad = find_bad_id(ids, rows * k, objects);
    if (bad < rows * k) refuse(path, bad_id(first + bad / k, ids[bad], objects));
    return checksum_of(ids, distances, rows * k);
}

/// \param fill_table  called with the number of objects, rows of a block and the table of checksums to fill
/// \param write_rows  called with the file, to write all ids and then all distances
template <class FillTable, class WriteRows>
void write(const std::string& path, const Description& graph, const FillTable& fill_table,
           const WriteRows& write_rows) {
    const std::int64_t n = graph.n, k = graph.k;
    if (n < 1 || n > kMaxObjects) refuse(path, "n = " + std::to_string(n) + range(kMaxObjects));
    if (k < 1 || k > kMaxGraphFileK) refuse(path, "k = " + std::to_string(k) + range(kMaxGraphFileK));
    const std::int64_t objects = graph.objects != 0 ? graph.objects : n;
    if (objects < 1 || objects > kMaxObjects) refuse(path, "objects = " + std::to_string(objects) + range(kMaxObjects));
    if (graph.base != nullptr && (graph.base->d < 1 || graph.base->d > kMaxDim))
        refuse(path, "d = " + std::to_string(graph.base->d) + range(kMaxDim));
    const bool with_recall = graph.base != nullptr && graph.recall.objects != 0;
    if (with_recall && !detail::is_estimate(graph.recall, objects, k)) refuse(path, "its recall is none");
    name_of(graph.metric);  // throws for numbers that no reader would know
    name_of(graph.dtype);

    // Before the pass over the graph, which would be in vain if the file cannot be created.
    detail::AtomicFile file(path);
    const std::int64_t block_rows = block_rows_for(k);
    std::vector<std::uint64_t> table(std::size_t(blocks_of(n, block_rows)));
    fill_table(objects, block_rows, table);

    Header header{};
    std::copy(std::begin(detail::kMagic), std::end(detail::kMagic), header.magic);
    header.version = with_recall ? 4 : graph.base != nullptr ? 3 : objects == n ? 1 : 2;
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

void write_view(const std::string& path, const KnnGraphView& graph, DType dtype, std::int64_t objects,
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
    write(path, {graph.n, graph.k, graph.metric, dtype, objects, base, recall}, fill_table, write_rows);
}

}  // namespace

void write_graph(const std::string& path, const KnnGraphView& graph, DType dtype, std::int64_t objects) {
    write_view(path, graph, dtype, objects, nullptr, {});
}

void write_graph(const std::string& path, const KnnGraphView& graph, const BaseIdentity& base,
                 const RecallEstimate& recall) {
    write_view(path, graph, base.dtype, base.n, &base, recall);
}

void write_graph(const std::string& path, std::int64_t n, std::int64_t k, Metric metric, DType dtype,
                 const std::optional<BaseIdentity>& base, const ReadRows& read, const RecallEstimate& recall) {
    constexpr std::int64_t kBlocks = 16;  // read at a time
    std::unique_ptr<std::int32_t[]> ids;
    std::unique_ptr<float[]> distances;
    const auto for_pieces = [&](const auto& use) {
        const std::int64_t rows = kBlocks * block_rows_for(k);
        if (!ids) {
            ids.reset(new std::int32_t[std::size_t(std::min(rows, n) * k)]);
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
        for_pieces([&](std::int64_t, std::int64_t count) { file.write(ids.get(), std::size_t(count * k) * 4); });
        for_pieces([&](std::int64_t, std::int64_t count) { file.write(distances.get(), std::size_t(count * k) * 4); });
    };
    write(path, {n, k, metric, dtype, n, base ? &*base : nullptr, recall}, fill_table, write_rows);
}

std::uint64_t graph_file_bytes(std::int64_t n, std::int64_t k, bool with_base, bool with_recall) {
    return header_bytes(!with_base    ? 1
                        : with_recall ? 4
                                      : 3) +
           std::uint64_t(n * k) * kEntryBytes + std::uint64_t(blocks_of(n, block_rows_for(k))) * sizeof(std::uint64_t);
}

GraphFile::~GraphFile() = default;
GraphFile::GraphFile(GraphFile&&) noexcept = default;
GraphFile& GraphFile::operator=(GraphFile&&) noexcept = default;

std::uint64_t GraphFile::bytes() const {
    return file_->size();
}

GraphFile::GraphFile(const std::string& path) : path_(path), file_(std::make_unique<detail::MappedFile>(path)) {
    const auto refuse = [&](const std::string& what) { throw IoError(path + ": " + what); };
    const std::size_t size = file_->size();
    Header header{};
    file_->read(0, std::min(size, sizeof header), &header);
    if (std::memcmp(header.magic, detail::kMagic, sizeof detail::kMagic) != 0)
        refuse("not a graph file, it does not start with GNNDGRPH");
    const auto require_header = [&](std::uint32_t version) {
        if (size < header_bytes(version))
            refuse("truncated: the file has " + std::to_string(size) + " bytes, its header alone takes " +
                   std::to_string(header_bytes(version)));
    };
    require_header(1);
    // Before the checksum, for a newer format may keep that elsewhere.
    if (header.version > kGraphFileVersion)
        refuse("graph file version " + std::to_string(header.version) + " is newer than this library, which knows " +
               std::to_string(kGraphFileVersion));
    require_header(header.version);
    std::uint64_t header_checksum = 0;
    file_->read(detail::fields_of(header.version), sizeof header_checksum, &header_checksum);
    if (header_checksum != checksum_of(header)) refuse("altered: the header does not match its checksum");
    if (header.version < 1) refuse("graph file version 0, expected 1 to " + std::to_string(kGraphFileVersion));

    // From here on only a faulty writer or a forger can be wrong.
    if (header.n < 1 || header.n > std::uint64_t(kMaxObjects))
        refuse("header says n = " + std::to_string(header.n) + range(kMaxObjects));
    if (header.k < 1 || header.k > std::uint64_t(kMaxGraphFileK))
        refuse("header says k = " + std::to_string(header.k) + range(kMaxGraphFileK));
    if (header.block_rows == 0 || (header.version == 1 && header.objects != 0)) refuse("invalid header");
    if (header.version > 1 && (header.objects < 1 || header.objects > std::uint64_t(kMaxObjects)))
        refuse("header says objects = " + std::to_string(header.objects) + range(kMaxObjects));
    if (header.version > 2 && (header.base_d < 1 || header.base_d > std::uint64_t(kMaxDim)))
        refuse("header says d = " + std::to_string(header.base_d) + range(kMaxDim));
    version_ = header.version;
    ids_offset_ = header_bytes(version_);
    checksum_ = header_checksum;
    n_ = std::int64_t(header.n);
    objects_ = version_ == 1 ? n_ : std::int64_t(header.objects);
    k_ = std::int64_t(header.k);
    block_rows_ = header.block_rows;
    metric_ = Metric(header.metric);
    dtype_ = DType(header.dtype);
    try {
        name_of(metric_);
        name_of(dtype_);
    } catch (const InvalidArgument& error) {
        refuse(error.what());
    }

    if (version_ > 3) {
        recall_ = {header.recall, header.recall_low, header.recall_high, int(header.recall_at),
                   std::int64_t(header.recall_objects)};
        if (!detail::is_estimate(recall_, objects_, k_)) refuse("header says of the recall what is none");
    }
    if (version_ > 2) base_ = {objects_, std::int64_t(header.base_d), dtype_, header.base_checksum};

    const std::size_t table_offset = ids_offset_ + std::size_t(n_ * k_) * kEntryBytes;
    const std::size_t blocks = std::size_t(blocks_of(n_, block_rows_));
    const std::size_t wanted = table_offset + blocks * sizeof(std::uint64_t);
    if (size != wanted)
        refuse((size < wanted ? "truncated: " : "too long: ") + std::string("header says ") + std::to_string(n_) +
               " x " + std::to_string(k_) + " = " + std::to_string(wanted) + " bytes, the file has " +
               std::to_string(size));
    checksums_.resize(blocks);
    file_->read(table_offset, blocks * sizeof(std::uint64_t), checksums_.data());
    if (header.table_checksum != checksum_of(checksums_)) refuse("altered: the checksum table does not match its own");
}

KnnGraph GraphFile::read(std::int64_t begin, std::int64_t count) const {
    check_range(begin, count);
    KnnGraph graph(count, k_, metric_);
    read_into(begin, count, graph.ids(), graph.distances());
    return graph;
}

void GraphFile::read_into(std::int64_t begin, std::int64_t count, std::int32_t* ids, float* distances) const {
    check_range(begin, count);
    if (count == 0) return;
    const std::int64_t end = begin + count;
    std::vector<std::int32_t> block_ids;
    std::vector<float> block_distances;
    for (std::int64_t first = begin - begin % block_rows_; first < end; first += block_rows_) {
        const std::int64_t last = std::min(first + block_rows_, n_);
        const std::int64_t entries = (last - first) * k_;
        const std::int64_t from = std::max(first, begin), to = std::min(last, end);
        const std::int64_t place = (from - begin) * k_;
        // Blocks go straight to their place; the two at the ends, if only a part of them was asked for, take a detour.
        if (begin <= first && last <= end) {
            read_block(first, last, ids + place, distances + place);
            continue;
        }
        block_ids.resize(std::size_t(entries));
        block_distances.resize(std::size_t(entries));
        read_block(first, last, block_ids.data(), block_distances.data());
        const std::int64_t skip = (from - first) * k_, kept = (to - from) * k_;
        std::copy_n(block_ids.data() + skip, kept, ids + place);
        std::copy_n(block_distances.data() + skip, kept, distances + place);
    }
}

void GraphFile::check_range(std::int64_t begin, std::int64_t count) const {
    if (begin < 0 || count < 0 || begin > n_ - count)
        throw InvalidArgument(path_ + ": rows " + std::to_string(begin) + " + " + std::to_string(count) +
                              " are outside of 0 to " + std::to_string(n_));
}

void GraphFile::read_block(std::int64_t first, std::int64_t last, std::int32_t* ids, float* distances) const {
    const std::int64_t entries = (last - first) * k_;
    const std::size_t ids_offset = ids_offset_ + std::size_t(first * k_) * sizeof *ids;
    const std::size_t distances_offset = ids_offset + std::size_t(n_ * k_) * sizeof *ids;
    file_->read(ids_offset, std::size_t(entries) * sizeof *ids, ids);
    file_->read(distances_offset, std::size_t(entries) * sizeof *distances, distances);
    if (checksum_of(ids, distances, entries) != checksums_[std::size_t(first / block_rows_)])
        throw IoError(path_ + ": altered: rows " + std::to_string(first) + " to " + std::to_string(last - 1) +
                      " do not match their checksum");
    const std::int64_t bad = find_bad_id(ids, entries, objects_);
    if (bad < entries) throw IoError(path_ + ": invalid: " + bad_id(first + bad / k_, ids[bad], objects_));
}

}  // namespace gnnd::io

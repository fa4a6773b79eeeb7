// SPDX-License-Identifier: MIT
#include "gnnd/io/graph_file.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "gnnd/error.h"
#include "gnnd/io/detail/graph_blocks.h"
#include "gnnd/io/detail/graph_header.h"
#include "gnnd/io/detail/mapped_file.h"
#include "gnnd/vectors.h"

namespace gnnd::io {

using detail::allowed_range;
using detail::checksum_of;
using detail::Header;
using detail::header_bytes;

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
    if (header.version > 4 && header.id_bytes != sizeof(std::int64_t))
        refuse("header says ids of " + std::to_string(header.id_bytes) + " bytes, expected 8");
    id_bytes_ = header.version > 4 ? header.id_bytes : sizeof(std::int32_t);
    const std::int64_t most = detail::most_objects(id_bytes_);
    if (header.n < 1 || header.n > std::uint64_t(most))
        refuse("header says n = " + std::to_string(header.n) + allowed_range(most));
    if (header.k < 1 || header.k > std::uint64_t(kMaxGraphFileK))
        refuse("header says k = " + std::to_string(header.k) + allowed_range(kMaxGraphFileK));
    if (header.block_rows == 0 || (header.version == 1 && header.objects != 0)) refuse("invalid header");
    if (header.version > 1 && (header.objects < 1 || header.objects > std::uint64_t(most)))
        refuse("header says objects = " + std::to_string(header.objects) + allowed_range(most));
    const bool with_base = header.version > 4 ? header.base_d != 0 : header.version > 2;
    const bool with_recall = header.version > 4 ? header.recall_objects != 0 : header.version > 3;
    if (with_base && (header.base_d < 1 || header.base_d > std::uint64_t(kMaxDim)))
        refuse("header says d = " + std::to_string(header.base_d) + allowed_range(kMaxDim));
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

    if (with_recall) {
        recall_ = {header.recall, header.recall_low, header.recall_high, int(header.recall_at),
                   std::int64_t(header.recall_objects)};
        if (!detail::is_estimate(recall_, objects_, k_)) refuse("header says of the recall what is none");
    }
    if (with_base) base_ = {objects_, std::int64_t(header.base_d), dtype_, header.base_checksum};

    const std::size_t table_offset = ids_offset_ + std::size_t(n_ * k_) * detail::entry_bytes(id_bytes_);
    const std::size_t blocks = std::size_t(detail::blocks_of(n_, block_rows_));
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
    require_narrow();
    KnnGraph graph(count, k_, metric_);
    read_into(begin, count, graph.ids(), graph.distances());
    return graph;
}

void GraphFile::require_narrow() const {
    if (objects_ > kMaxObjects)
        throw IoError(path_ + ": its ids are of " + std::to_string(objects_) +
                      " objects and take 64 bits; a graph in " + "memory has ids of 32, of " +
                      std::to_string(kMaxObjects) + " objects at most");
}

void GraphFile::read_into(std::int64_t begin, std::int64_t count, std::int64_t* ids, float* distances) const {
    read_rows(begin, count, ids, distances);
}

void GraphFile::read_into(std::int64_t begin, std::int64_t count, std::int32_t* ids, float* distances) const {
    require_narrow();
    read_rows(begin, count, ids, distances);
}

template <class Id>
void GraphFile::read_rows(std::int64_t begin, std::int64_t count, Id* ids, float* distances) const {
    check_range(begin, count);
    if (count == 0) return;
    if (id_bytes_ == sizeof(std::int32_t))
        read_stored<std::int32_t>(begin, count, ids, distances);
    else
        read_stored<std::int64_t>(begin, count, ids, distances);
}

template <class Stored, class Id>
void GraphFile::read_stored(std::int64_t begin, std::int64_t count, Id* ids, float* distances) const {
    const std::int64_t end = begin + count;
    std::vector<Stored> block_ids;
    std::vector<float> block_distances;
    for (std::int64_t first = begin - begin % block_rows_; first < end; first += block_rows_) {
        const std::int64_t last = std::min(first + block_rows_, n_);
        const std::int64_t entries = (last - first) * k_;
        const std::int64_t from = std::max(first, begin), to = std::min(last, end);
        const std::int64_t place = (from - begin) * k_;
        // Blocks go straight to their place; the two at the ends, if only a part of them was asked for, and ids of
        // another width take a detour.
        if constexpr (std::is_same_v<Stored, Id>) {
            if (begin <= first && last <= end) {
                read_block(first, last, ids + place, distances + place);
                continue;
            }
        }
        block_ids.resize(std::size_t(entries));
        block_distances.resize(std::size_t(entries));
        read_block(first, last, block_ids.data(), block_distances.data());
        const std::int64_t skip = (from - first) * k_, kept = (to - from) * k_;
        std::transform(block_ids.data() + skip, block_ids.data() + skip + kept, ids + place,
                       [](Stored id) { return Id(id); });
        std::copy_n(block_distances.data() + skip, kept, distances + place);
    }
}

void GraphFile::check_range(std::int64_t begin, std::int64_t count) const {
    if (begin < 0 || count < 0 || begin > n_ - count)
        throw InvalidArgument(path_ + ": rows " + std::to_string(begin) + " + " + std::to_string(count) +
                              " are outside of 0 to " + std::to_string(n_));
}

template <class Stored>
void GraphFile::read_block(std::int64_t first, std::int64_t last, Stored* ids, float* distances) const {
    const std::int64_t entries = (last - first) * k_;
    const std::size_t ids_offset = ids_offset_ + std::size_t(first * k_) * sizeof *ids;
    const std::size_t distances_offset =
        ids_offset_ + std::size_t(n_ * k_) * sizeof *ids + std::size_t(first * k_) * sizeof *distances;
    file_->read(ids_offset, std::size_t(entries) * sizeof *ids, ids);
    file_->read(distances_offset, std::size_t(entries) * sizeof *distances, distances);
    if (checksum_of(ids, distances, entries) != checksums_[std::size_t(first / block_rows_)])
        throw IoError(path_ + ": altered: rows " + std::to_string(first) + " to " + std::to_string(last - 1) +
                      " do not match their checksum");
    const std::int64_t bad = detail::find_bad_id(ids, entries, objects_);
    if (bad < entries) throw IoError(path_ + ": invalid: " + detail::bad_id(first + bad / k_, ids[bad], objects_));
}

}  // namespace gnnd::io

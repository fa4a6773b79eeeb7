// SPDX-License-Identifier: MIT
#pragma once
/// \file graph_header.h
/// The header of a graph file, as graph_file.h describes it.

#include <xxhash.h>

#include <cstddef>
#include <cstdint>

#include "gnnd/stats.h"

namespace gnnd::io::detail {

inline constexpr char kMagic[8] = {'G', 'N', 'N', 'D', 'G', 'R', 'P', 'H'};

/// As of versions 4 and 5, without its checksum, which comes where the version's fields end.
struct Header {
    char magic[8];
    std::uint32_t version, metric;
    std::uint64_t n, k;
    std::uint32_t dtype, block_rows;
    std::uint64_t table_checksum, objects, base_d, base_checksum;
    double recall, recall_low, recall_high;
    std::uint64_t recall_objects;
    std::uint32_t recall_at, id_bytes;
};
static_assert(sizeof(Header) == 112);

/// Bytes of a version's fields.
inline std::size_t fields_of(std::uint32_t version) {
    return version < 3 ? offsetof(Header, base_d) : version < 4 ? offsetof(Header, recall) : sizeof(Header);
}

/// And its checksum.
inline std::size_t header_bytes(std::uint32_t version) {
    return fields_of(version) + sizeof(std::uint64_t);
}

inline std::uint64_t checksum_of(const Header& header) {
    return XXH3_64bits(&header, fields_of(header.version));
}

/// True for what an estimate can be, of a graph with k columns over so many objects. NaN cannot.
inline bool is_estimate(const RecallEstimate& recall, std::int64_t objects, std::int64_t k) {
    return recall.low >= 0 && recall.low <= recall.value && recall.value <= recall.high && recall.high <= 1 &&
           recall.objects >= 1 && recall.objects <= objects && recall.at >= 1 && recall.at <= k;
}

}  // namespace gnnd::io::detail

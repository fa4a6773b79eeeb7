// SPDX-License-Identifier: MIT
#pragma once
/// \file manifest.h
/// The commit record of a graph in shards: what it is made from and which files hold how much of it. A file that it
/// does not name does not count.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gnnd/io/vector_reader.h"
#include "gnnd/params.h"
#include "gnnd/sharded.h"
#include "gnnd/stats.h"

namespace gnnd::shards {

inline constexpr const char* kManifestName = "manifest.json";
/// The file by which several processes agree on the graph that they build in the folder
/// (contrib/python/gnnd/distributed); the manifest comes when they are through.
inline constexpr const char* kBuildName = "build.json";

/// A file in the folder.
struct FileRecord {
    std::string name;
    std::uint64_t bytes = 0;
    std::uint64_t checksum = 0;  ///< io::GraphFile::checksum(), or of vectors BaseIdentity::checksum
    friend bool operator==(const FileRecord&, const FileRecord&) = default;
};

struct ShardRecord {
    /// The first columns of its own graph, if they have been written: until the set is complete, or never, where it is
    /// complete before. What is missing is built again.
    std::optional<FileRecord> local;
    std::optional<FileRecord> lists;  ///< neighbours in itself and in the shards of `merged`, once written
    int version = 0;                  ///< of the file written last, which its name holds
    std::vector<int> merged;          ///< partners whose objects are in the lists, ascending
    /// Of an ordered base, once merges are through: as many rows of the base from begin() on, in its own order and with
    /// its ids. They become the lists when the set is complete.
    std::optional<FileRecord> result{};

    bool built() const { return lists.has_value(); }
    friend bool operator==(const ShardRecord&, const ShardRecord&) = default;
};

/// The vectors, and by what they are known again. Path, format, bytes and time are those of a file; of vectors from a
/// function none of them is there, nor written.
struct BaseRecord {
    std::string path;  ///< absolute
    std::optional<io::VectorFormat> format;
    std::int64_t n = 0, d = 0;
    DType dtype = DType::f32;
    std::uint64_t bytes = 0;
    std::int64_t modified = 0;  ///< nanoseconds since 1970
    /// Of io::BaseIdentity; not in the manifests of older versions.
    std::optional<std::uint64_t> checksum;

    /// \throws IoError
    static BaseRecord of(const io::VectorReader& vectors);

    /// The first reason, as text, for which the other one is a record of another file, or of other contents; another
    /// path is none. Empty where there is no reason.
    std::string difference(const BaseRecord& other) const;
};

struct Manifest {
    BaseRecord base;
    BuildParams params;  ///< without those that do not decide the graph: threads, device, device_memory
    MergePlan plan = MergePlan::all;
    int id_bytes = sizeof(std::int32_t);  ///< of an id in the lists, 4 or 8
    /// Of an ordered base: its vectors in the order of the shards, until merges are through, and the order, until the
    /// set is complete: the row of the base for each place.
    std::optional<FileRecord> vectors, order;
    std::vector<ShardRecord> shards;
    double seconds = 0;  ///< of work so far
    int samples = 0;     ///< ShardedStats::samples of the work so far; 0 in folders of older versions
    bool complete = false;
    /// Of the complete graph, or of an ordered one whose merges are through; of 0 objects where it was not measured.
    RecallEstimate recall;

    int count() const { return int(shards.size()); }
    int pairs() const { return count() * (count() - 1) / 2; }
    int merged_pairs() const;  ///< those of which both lists have seen the other
    /// First row of a shard; begin(count()) is n.
    std::int64_t begin(int shard) const { return base.n * shard / count(); }
    std::int64_t rows(int shard) const { return begin(shard + 1) - begin(shard); }
    std::int64_t most_rows() const { return (base.n + count() - 1) / count(); }
    bool has_wide_ids() const { return id_bytes != int(sizeof(std::int32_t)); }
    /// Bytes of an id and a distance of the lists.
    std::uint64_t list_entry_bytes() const { return std::uint64_t(id_bytes) + sizeof(float); }
    /// The shard of a row.
    int shard_of(std::int64_t row) const { return int(((row + 1) * count() - 1) / base.n); }
    /// True if shards are parts of the space, and their rows places in an order of the base's.
    bool is_ordered() const { return plan == MergePlan::near && count() > 1; }
    /// True if of an ordered set only the results are left to be written.
    bool merges_are_through() const { return is_ordered() && recall.objects != 0; }
    /// Columns of the local graphs: what steers merges.
    int local_columns() const;

    /// The first reason, as text, for which the other one is a record of something else: other parameters, another
    /// base. The base may have another name. Empty where there is no reason.
    std::string difference(const Manifest& other) const;

    std::string to_text() const;
    /// \param path  for messages
    /// \throws IoError when altered in any byte, or of an unknown version, or one that contradicts itself
    static Manifest from_text(const std::string& text, const std::string& path);

    /// Replaces the file in one step. \throws IoError
    void write(const std::string& path) const;
    /// \throws IoError
    static Manifest read(const std::string& path);
};

}  // namespace gnnd::shards

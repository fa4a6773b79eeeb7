// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file graph_file.h
/// The graph file (.gnnd). Little-endian:
///
///     offset 0   header, 64 bytes (version 3: 80, versions 4 and 5: 120)
///                  0  char[8]  magic "GNNDGRPH"
///                  8  u32      version (1 to 5)
///                 12  u32      metric
///                 16  u64      n
///                 24  u64      k
///                 32  u32      dtype of the vectors it was built from
///                 36  u32      rows per checksum block
///                 40  u64      XXH3 of the checksum table
///                 48  u64      version 1: 0; from version 2 on: objects, of which the ids are
///                 56  u64      from version 3 on: d of the vectors it was built from; version 5: 0 where not known
///                 64  u64      from version 3 on: BaseIdentity::checksum of these vectors
///                 72  f64[3]   from version 4 on: the recall, and the low and the high end of its 95% interval
///                 96  u64      from version 4 on: objects on which it was measured; version 5: 0 where it was not
///                104  u32      from version 4 on: neighbours of an object that it counts
///                108  u32      version 4: 0; version 5: bytes of an id, 8
///   56, 72 or 112  u64      XXH3 of the header's bytes before
///     then       ids, n x k int32, in version 5 int64
///     then       distances, n x k float32
///     then       checksum table, one u64 per block of rows: XXH3 of the block's ids followed by its distances
///
/// Every byte is covered by a checksum, and a range of rows can be read and verified without the rest. A block has as
/// many rows as fit into 1 MiB, but at least one.
///
/// In version 1 the ids are rows of the file itself. Version 2 is for the rows of some objects of a larger set: ids are
/// those of the whole set. Version 3 tells in addition which base the objects are, version 4 how good the graph was
/// when it was built. Version 5 is for more objects than ids of 32 bits are of, and knows of its base and its recall
/// what there is to know. The least version that holds what is known is written.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gnnd/dtype.h"
#include "gnnd/graph.h"
#include "gnnd/io/base_identity.h"
#include "gnnd/stats.h"

namespace gnnd::io {

namespace detail {
class MappedFile;
}

/// The newest version that this library reads.
inline constexpr std::uint32_t kGraphFileVersion = 5;
/// Largest k of a graph file.
inline constexpr std::int64_t kMaxGraphFileK = kMaxColumns;

/// Writes the graph atomically (temporary name, fsync, rename), straight from the caller's arrays.
/// \param path     of the file; an existing one is replaced
/// \param graph    n x k
/// \param dtype    of the vectors, kept in the header
/// \param objects  how many objects the ids are of; 0: the graph's n
/// \throws InvalidArgument for n or objects out of 1..kMaxObjects, k out of 1..kMaxGraphFileK, or an id outside of
///         [-1, objects) (the row is named), IoError when it cannot be written; the old file survives in any case
void write_graph(const std::string& path, const KnnGraphView& graph, DType dtype, std::int64_t objects = 0);
/// The same with ids of 64 bits in memory and in the file, of up to kMaxShardedObjects objects.
void write_graph(const std::string& path, const WideGraphView& graph, DType dtype, std::int64_t objects = 0);
/// The same, and the file keeps by what its base is known again.
/// \param base    what the ids are rows of; base.n is the number of objects
/// \param recall  as the build has measured it, which the file keeps; left out: it is not known
void write_graph(const std::string& path, const KnnGraphView& graph, const BaseIdentity& base,
                 const RecallEstimate& recall = {});

/// Puts rows [begin, begin + count) of a graph into arrays of count x k.
using ReadRows = std::function<void(std::int64_t begin, std::int64_t count, std::int32_t* ids, float* distances)>;
/// The same for a whole graph that need not fit into memory.
/// \param base  none: it is not known
/// \param read  called for all rows in their order, some 16 MiB at a time, and that three times; what it throws ends
///              the call, and the old file survives
/// \param recall  as above; kept where there is a base
void write_graph(const std::string& path, std::int64_t n, std::int64_t k, Metric metric, DType dtype,
                 const std::optional<BaseIdentity>& base, const ReadRows& read, const RecallEstimate& recall = {});
/// Rows with ids of 64 bits.
using ReadWideRows = std::function<void(std::int64_t begin, std::int64_t count, std::int64_t* ids, float* distances)>;
/// The same with ids of 64 bits, for n of up to kMaxShardedObjects.
void write_graph(const std::string& path, std::int64_t n, std::int64_t k, Metric metric, DType dtype,
                 const std::optional<BaseIdentity>& base, const ReadWideRows& read, const RecallEstimate& recall = {});

/// Bytes of the file of an n x k graph.
/// \param with_base    whether it keeps the identity of its base
/// \param with_recall  whether it keeps the recall, too
/// \param id_bytes     of an id, 4 or 8
std::uint64_t graph_file_bytes(std::int64_t n, std::int64_t k, bool with_base = false, bool with_recall = false,
                               std::size_t id_bytes = sizeof(std::int32_t));

/// Opens a graph file for reading.
class GraphFile {
  public:
    /// Checks magic, version, header checksum, the values in the header, the file's size and the checksum table.
    /// \throws IoError: missing, not a graph file, truncated, altered, newer than this library
    explicit GraphFile(const std::string& path);
    ~GraphFile();
    GraphFile(GraphFile&&) noexcept;
    GraphFile& operator=(GraphFile&&) noexcept;

    const std::string& path() const { return path_; }   ///< as given
    std::int64_t n() const { return n_; }               ///< rows
    std::int64_t k() const { return k_; }               ///< entries of a row
    Metric metric() const { return metric_; }           ///< of the distances
    DType dtype() const { return dtype_; }              ///< of the vectors that it was built from
    std::uint32_t version() const { return version_; }  ///< of the format
    /// Bytes of an id in the file: 4, or 8 where there are more objects than these tell apart, or might be.
    std::size_t id_bytes() const { return id_bytes_; }
    /// Ids are in [-1, objects).
    std::int64_t objects() const { return objects_; }
    /// The identity of the base that the graph was built from, where the file has one (from version 3 on).
    const std::optional<BaseIdentity>& base() const { return base_; }
    /// The recall that was measured when the graph was built; of 0 objects where the file has none (before version 4,
    /// and in version 5).
    const RecallEstimate& recall() const { return recall_; }
    /// Size of the file.
    std::uint64_t bytes() const;
    /// Rows of a block, which is verified as a whole.
    std::int64_t block_rows() const { return block_rows_; }
    /// Of the header. It covers the checksum table's, so that files with equal ones hold the same graph.
    std::uint64_t checksum() const { return checksum_; }

    /// Rows [begin, begin + count) into arrays of count x k. Only the blocks that hold them are read, and verified.
    /// \throws InvalidArgument for a range outside, IoError when altered or an id is not in [-1, objects); the arrays'
    ///         content is undefined then
    void read_into(std::int64_t begin, std::int64_t count, std::int64_t* ids, float* distances) const;
    /// The same with ids of 32 bits.
    /// \throws IoError, too, where there are more objects than kMaxObjects
    void read_into(std::int64_t begin, std::int64_t count, std::int32_t* ids, float* distances) const;
    /// The same as a graph of count rows (ids stay over [0, objects)).
    KnnGraph read(std::int64_t begin, std::int64_t count) const;
    /// The whole graph, verified.
    KnnGraph read() const { return read(0, n_); }

  private:
    void check_range(std::int64_t begin, std::int64_t count) const;
    void require_narrow() const;
    template <class Id>
    void read_rows(std::int64_t begin, std::int64_t count, Id* ids, float* distances) const;
    /// The same; Stored is the file's type of ids.
    template <class Stored, class Id>
    void read_stored(std::int64_t begin, std::int64_t count, Id* ids, float* distances) const;
    /// Rows [first, last) of one whole block.
    template <class Stored>
    void read_block(std::int64_t first, std::int64_t last, Stored* ids, float* distances) const;

    std::string path_;
    std::unique_ptr<const detail::MappedFile> file_;
    std::uint32_t version_ = 0;
    std::uint64_t ids_offset_ = 0;
    std::size_t id_bytes_ = sizeof(std::int32_t);
    std::int64_t n_ = 0, k_ = 0, objects_ = 0;
    std::int64_t block_rows_ = 0;
    std::uint64_t checksum_ = 0;
    Metric metric_ = Metric::L2;
    DType dtype_ = DType::f32;
    std::optional<BaseIdentity> base_;
    RecallEstimate recall_;
    std::vector<std::uint64_t> checksums_;
};

}  // namespace gnnd::io

// SPDX-License-Identifier: MIT
#pragma once
/// A graph on disk, in one file or in shards.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gnnd/io/graph_file.h"
#include "gnnd/io/vector_file.h"
#include "gnnd/sharded.h"

namespace cli {

class AnyGraph {
  public:
    /// \param path  of a graph file, or of the folder or manifest of a graph in shards
    /// \throws gnnd::IoError
    explicit AnyGraph(const std::string& path);

    std::int64_t n() const { return sharded_ ? sharded_->n() : file_->n(); }
    std::int64_t k() const { return sharded_ ? sharded_->k() : file_->k(); }
    std::int64_t objects() const { return sharded_ ? sharded_->n() : file_->objects(); }
    gnnd::Metric metric() const { return sharded_ ? sharded_->metric() : file_->metric(); }
    gnnd::DType dtype() const { return sharded_ ? sharded_->dtype() : file_->dtype(); }
    /// The base that it was built from; none in files of earlier versions.
    std::optional<gnnd::io::BaseIdentity> base() const { return sharded_ ? sharded_->base_identity() : file_->base(); }
    /// As its build has measured it; of 0 objects where it is not known.
    const gnnd::RecallEstimate& recall() const { return sharded_ ? sharded_->recall() : file_->recall(); }
    std::uint64_t bytes() const { return sharded_ ? sharded_->bytes() : file_->bytes(); }
    /// Null for a single file.
    const gnnd::ShardedGraph* sharded() const { return sharded_.get(); }
    /// Null for a graph in shards.
    const gnnd::io::GraphFile* file() const { return file_.get(); }

    /// \throws gnnd::InvalidArgument unless the graph is a whole one and was built from these vectors, as far as its
    ///         files tell: those of earlier versions keep n and dtype only
    void require_fit(const gnnd::io::VectorFile& base) const;
    /// The whole. \throws gnnd::InvalidArgument where the file holds but a part of a graph
    gnnd::KnnGraph read() const;
    /// Rows [begin, begin + count), verified.
    /// \throws gnnd::InvalidArgument, as do read(), rows_of() and require_fit(), where ids are of more objects than a
    ///         graph in memory can have
    gnnd::KnnGraph read(std::int64_t begin, std::int64_t count) const;
    /// The same of any graph, into arrays of count x k.
    void read_into(std::int64_t begin, std::int64_t count, std::int64_t* ids, float* distances) const;
    /// Bytes of an id in its files.
    int id_bytes() const { return sharded_ ? sharded_->id_bytes() : int(file_->id_bytes()); }
    /// The rows of these objects, which ascend. Reads no more than the parts that they are in.
    gnnd::KnnGraph rows_of(const std::vector<std::int32_t>& objects) const;

  private:
    void require_whole() const;
    void require_narrow() const;

    std::string path_;
    std::unique_ptr<const gnnd::io::GraphFile> file_;
    std::unique_ptr<const gnnd::ShardedGraph> sharded_;
};

}  // namespace cli

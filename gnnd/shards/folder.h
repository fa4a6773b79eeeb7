// SPDX-License-Identifier: MIT
#pragma once
/// \file folder.h
/// The folder of a graph in shards, on disk. Whatever happens at whatever moment, its manifest and the files that it
/// names are whole and belong together: new files are written beside the old ones, the manifest replaced in one step,
/// and only then the old ones deleted.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gnnd/graph.h"
#include "gnnd/io/graph_file.h"
#include "gnnd/shards/folder_lock.h"
#include "gnnd/shards/manifest.h"

namespace gnnd::shards {

/// Versions of lists that may be there beside those that the manifest on disk names: one for each worker, and so many
/// that a large set is made durable with few manifests.
int spare_versions(const Manifest& manifest, int workers);

/// Most bytes that the folder takes while the graph is made: the graph, the local graphs, and spare_versions() of a
/// shard's lists; of an ordered base its vectors and the order, and in the end the graph twice instead.
/// \param checkpoints  whether local graphs become durable before merges are through; they take no room otherwise
std::uint64_t disk_need(const Manifest& manifest, int workers, bool checkpoints = true);

/// The file of a shard, provided that it is the one that the manifest names and describes. \throws IoError
io::GraphFile open_local(const std::string& folder, const Manifest& manifest, int shard);
io::GraphFile open_lists(const std::string& folder, const Manifest& manifest, int shard);

/// All member functions may be called from several threads, those that change a shard for different shards.
class Folder {
  public:
    /// Creates the folder where it is not there, or goes on with what is in it; deletes what an earlier process left
    /// unfinished. Where a shard's file is gone, the shard counts as not built, or as not merged with any other. Where
    /// the order is gone, or a result of the complete set, nothing counts.
    /// \param wanted   base, parameters and number of shards
    /// \param resume   whether to go on; otherwise a folder with a manifest is refused. One without, or whose manifest
    ///                 names no file, is started anew either way: a build may end before anything is finished.
    /// \throws IoError: in use by another process, or by several (kBuildName), the manifest or one of its files
    /// altered, a record of something
    ///         else (the difference is named), the disk too small (needed and free are told)
    /// \param checkpoints  as for disk_need()
    Folder(const std::string& path, const Manifest& wanted, bool resume, int workers, bool checkpoints = true);

    /// The record of the files as they are, durable or not.
    Manifest manifest() const;
    io::GraphFile open_local(int shard) const;
    io::GraphFile open_lists(int shard) const;

    /// Writes the first columns of the shard's own graph, ids local. Durable with the next commit().
    void put_local(int shard, const KnnGraphView& local);
    /// Writes the shard's lists with everything from these partners in them. Durable with the next commit().
    /// \tparam Id  of as many bytes as the manifest says
    template <class Id>
    void put_lists(int shard, const GraphView<Id>& lists, const std::vector<int>& merged);
    /// The paths of the files to come: the vectors in the order of the shards, and the order.
    std::string vectors_path() const;
    std::string order_path() const;
    /// They are there, durable.
    void note_order();
    /// Provided that they are those that the manifest names. \throws IoError
    io::VectorFile open_vectors() const;
    io::VectorFile open_order() const;
    /// Of an ordered set: no merges are left to do. Deletes what only they need. \param recall  of the graph
    void end_merges(const RecallEstimate& recall);
    /// Writes rows of the base, ids its own. Durable with the next commit().
    template <class Id>
    void put_result(int shard, const GraphView<Id>& result);
    /// Keeps the most samples that a build or merge took, for the record. Durable with the next commit().
    void note_samples(int samples);
    /// All that was put is durable when it returns, and what it replaced is deleted.
    void commit();
    /// Declares the set complete and deletes what is not part of the result.
    /// \param recall  of the graph; of 0 objects where it was not measured
    void complete(const RecallEstimate& recall);

  private:
    std::string in_folder(const std::string& name) const { return path_ + "/" + name; }
    template <class Id>
    void put(int shard, const char* what, std::optional<FileRecord> ShardRecord::*which, const GraphView<Id>& graph,
             std::int64_t objects, const std::vector<int>* merged);
    void check_files();
    void forget_all();
    io::VectorFile open_vector_file(const std::optional<FileRecord>& record) const;
    void check_disk(std::uint64_t need) const;
    void remove_orphans() const;
    void commit_locked();
    std::vector<FileRecord> take_locals();
    void commit_without(const std::vector<FileRecord>& files);

    std::string path_;
    const std::int64_t objects_;  ///< the base's, which files tell
    const DType dtype_;
    FolderLock lock_;
    mutable std::mutex mutex_;  ///< of what follows
    std::condition_variable changed_;
    int free_spares_;                   ///< of spare_versions()
    Manifest manifest_;                 ///< may be ahead of the one on disk
    bool ahead_ = false;                ///< whether it is
    std::vector<FileRecord> replaced_;  ///< named by the manifest on disk, to be deleted once it is replaced
    std::map<int, int> versions_;       ///< of shards, the last that was begun to be written
    std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
    double seconds_before_ = 0;
};

}  // namespace gnnd::shards

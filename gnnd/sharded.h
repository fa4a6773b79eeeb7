// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file sharded.h
/// Graphs of more vectors than fit into memory: the set is cut into shards, each shard's own graph is built with GNND,
/// and pairs of shards are merged with GGM (the paper's Algorithm 3). Vectors come from a file, or from a function that
/// reads or makes ranges of rows, and the graph goes to a folder: one graph file per shard and a manifest.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gnnd/builder.h"
#include "gnnd/io/base_identity.h"
#include "gnnd/io/vector_reader.h"

namespace gnnd {

/// The cut of a set into shards, and the pairs of them that are merged.
enum class MergePlan {
    all,  ///< by rows; every pair
    /// By a coarse partition of the space, so that most neighbours of an object are in its own shard, and the others in
    /// few: pairs that share the most neighbours come first, until the whole graph has BuildParams::recall, which must
    /// be below 1 and not 0. The base, of 2^32 - 1 rows at most, is read twice for it, and copied to the disk.
    near,
};

/// All plans.
inline constexpr MergePlan kMergePlans[] = {MergePlan::all, MergePlan::near};

/// "all" or "near".
std::string_view name_of(MergePlan plan);
/// \throws InvalidArgument that lists the known names
MergePlan parse_merge_plan(std::string_view name);

/// Parameters of build_sharded() beside BuildParams.
struct ShardParams {
    /// 1 to 1024, at most one per object. 0: as few as there is memory for, on the host and, for a GPU to keep those
    /// that it works on, in its own; where a graph is resumed, as many as it has.
    int shards = 0;
    std::string work;  ///< the folder, created if need be
    /// Go on with what an earlier call, interrupted or killed, has left in the folder. Base, plan and parameters must
    /// be the same (of a base from a function n, d, type and io::BaseIdentity::checksum), but for threads, device,
    /// device_memory and the others here.
    bool resume = false;
    /// Most bytes to take beside the program; 0: three quarters of the machine's, or of what the control groups of the
    /// process allow, where that is less.
    std::int64_t host_memory = 0;
    /// Builds and merges become durable so often, in seconds, and at the end, and lists as soon as they are finished;
    /// 0: after every task. What is not durable when the process is killed is done again. Infinity: finished lists
    /// alone, so that the folder needs no room for the shards' own graphs unless they leave the memory before.
    double checkpoint_seconds = 60;
    /// One worker each, which has pairs of shards to itself. Empty: BuildParams::device. GPUs on each of which all
    /// shards fit pass lists on to each other directly; for that their default memory pools become, and stay,
    /// accessible to each other.
    std::vector<Device> devices;
    int workers = 0;                  ///< 1 to 64, sharing the devices in turn; 0: one per device
    MergePlan plan = MergePlan::all;  ///< which pairs are merged; of a single shard both are the same
    /// Bytes of an id in the graph's files: 4, of up to kMaxObjects objects, or 8. 0: as few as there must be, and
    /// where a graph is resumed, as many as it has.
    int id_bytes = 0;

    /// Throws InvalidArgument that names the field, its value and what is allowed.
    void validate() const;
};

/// The work of one worker, done and under way.
struct WorkerProgress {
    Device device;                    ///< where it runs
    std::string task;                 ///< "build 3" or "merge 3 5"; empty: nothing now
    int done = 0;                     ///< tasks in this call
    int left = 0;                     ///< tasks
    double build_seconds = 0;         ///< spent on the shards' own graphs
    double merge_seconds = 0;         ///< spent on merging pairs
    std::uint64_t bytes_read = 0;     ///< from base and folder
    std::uint64_t bytes_written = 0;  ///< to the folder
};

/// The progress of a build in shards.
struct ShardProgress {
    int tasks_done = 0;                   ///< of all calls
    int tasks = 0;                        ///< builds and merges in all; of near pairs those chosen so far
    double seconds = 0;                   ///< of this call
    double seconds_left = -1;             ///< estimated; negative: not known yet
    std::uint64_t bytes_read = 0;         ///< from base and folder, by all workers
    std::uint64_t bytes_written = 0;      ///< to the folder, by all workers
    std::uint64_t host_bytes = 0;         ///< held now: vectors, local graphs, lists, results
    std::vector<WorkerProgress> workers;  ///< one record each
};

/// Hooks into a running build; called from the thread that called build_sharded(), never concurrently.
struct ShardCallbacks {
    std::function<void(const ShardProgress&)> progress;  ///< at the start, after every task, at the end
    std::function<bool()> interrupt;  ///< asked many times a second; true ends the build with gnnd::Interrupted
};

/// Statistics of a call of build_sharded() that came to its end.
struct ShardedStats {
    int shards = 0;          ///< given or chosen
    int merges = 0;          ///< pairs that were merged, in all calls
    int samples = 0;         ///< the paper's p, the most that a build or merge took, in all calls
    ShardProgress progress;  ///< at the end
    /// `recall`, `recall_missed` or `exact`, as the recall says that was asked for; `converged` where none was, or the
    /// folder was finished by a version that did not measure it.
    StopReason stop = StopReason::converged;
    RecallEstimate recall;              ///< of the whole graph, measured on objects of all shards
    double recall_seconds = 0;          ///< what measuring it took in this call, of all workers together
    double seconds = 0;                 ///< of all calls that made the graph
    std::uint64_t peak_host_bytes = 0;  ///< most held at once of what host_bytes counts
    std::uint64_t peak_work_bytes = 0;  ///< most host and device memory that one build or merge took to work in
    std::uint64_t written_bytes = 0;    ///< size of the graph's files
};

/// Tasks and bytes of a sharded build.
struct ShardedPlan {
    int builds = 0;                     ///< one per shard
    int merges = 0;                     ///< one per pair of shards; of near pairs the most there can be
    std::uint64_t disk = 0;             ///< most bytes in the folder
    std::uint64_t work = 0;             ///< of host memory, for the builds and merges themselves; 0 on a GPU
    std::uint64_t sample = 0;           ///< of host memory, to measure the recall; part of what follows
    std::uint64_t host = 0;             ///< least host memory: one task after the other
    std::uint64_t host_overlapped = 0;  ///< host memory for reading, merging and folding in at the same time
};

/// Predicts what build_sharded() takes; nothing is written.
/// \param base    the vectors, n x d: a file, or a function
/// \param params  as for build_sharded()
/// \param shards  as for build_sharded(); with shards = 0 their number is chosen as there
/// \throws InvalidArgument, and as build_sharded() for shards = 0
ShardedPlan plan_sharded(const io::VectorReader& base, const BuildParams& params, const ShardParams& shards);

/// Builds the graph. On return the folder holds it whole; ShardedGraph reads it. When the call ends otherwise, by an
/// exception, a signal or a power cut at whatever moment, the folder holds what was durable by then, and another call
/// with `resume` goes on. Interrupted by the callback, or failed, it first makes durable what it has. A file of the
/// folder that is gone by then costs the builds and merges that depend on it.
/// \param base       the vectors, n x d: a file, or a function, which is asked for rows several times; must not change
///                   meanwhile
/// \param params     as for build() and merge(), used for both: each of them has the recall that is asked for, and
///                   where that is 1 all pairs are compared. How much of it the whole graph has is measured, too.
/// \param shards     how to cut and where to put the graph
/// \param callbacks  see ShardCallbacks
/// \return how long it took and what it held
/// \throws InvalidArgument, Unavailable, Interrupted as build(); IoError for the files, and where another process uses
///         the folder, it holds a part of another graph, or the disk is too small; Error where host_memory is too small
///         (needed and allowed are told), or with shards = 0 no number of them fits; and what the base's function
///         throws
ShardedStats build_sharded(const io::VectorReader& base, const BuildParams& params, const ShardParams& shards,
                           const ShardCallbacks& callbacks = {});

/// Reads a finished graph in shards as one. Ids are 64-bit, and rows and ids are those of the base file.
class ShardedGraph {
  public:
    /// \param path  of the folder or of its manifest
    /// \throws IoError: missing, altered, or not finished (what is missing is told)
    explicit ShardedGraph(const std::string& path);
    ~ShardedGraph();
    ShardedGraph(ShardedGraph&&) noexcept;  ///< the source must not be used any more

    /// True for the folder of a graph in shards, and for its manifest.
    static bool is_one(const std::string& path);

    std::int64_t n() const;       ///< rows
    std::int64_t k() const;       ///< entries of a row
    int id_bytes() const;         ///< of an id in the files, 4 or 8
    int shards() const;           ///< graph files
    Metric metric() const;        ///< of the distances
    DType dtype() const;          ///< of the vectors
    std::uint64_t bytes() const;  ///< of all files
    /// The base file, by the path under which it was last built from; empty where vectors came from a function.
    const std::string& base() const;
    /// As it was measured when the graph was finished; of 0 objects where it was not.
    const RecallEstimate& recall() const;
    /// By what the base is known again; none in folders of earlier versions.
    std::optional<io::BaseIdentity> base_identity() const;

    /// Rows [begin, begin + count), count x k each, verified; follows the invariants of graph.h. Reads blocks of 1 MiB.
    /// May be called from several threads. \throws InvalidArgument for a range outside, IoError when altered
    void read(std::int64_t begin, std::int64_t count, std::int64_t* ids, float* distances) const;

    /// Writes all of it to one graph file, which gets the same checksums as if it had been built at once. Takes 32 MiB
    /// of memory, and reads everything three times. Of more than kMaxObjects objects its ids are 64-bit, and no
    /// KnnGraph can hold it. \param interrupt  asked for every 16 MiB; true ends the call, and
    /// no file is written \throws Interrupted, and IoError as write_graph()
    void write(const std::string& path, const std::function<bool()>& interrupt = {}) const;

  private:
    struct State;
    std::unique_ptr<const State> state_;
};

}  // namespace gnnd

// SPDX-License-Identifier: MIT
#pragma once
/// \file store.h
/// The shards of a set: their vectors, local graphs and lists, in host memory as far as it goes and on disk.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gnnd/io/vector_reader.h"
#include "gnnd/shards/cache.h"
#include "gnnd/shards/folder.h"
#include "gnnd/shards/recall_sample.h"
#include "gnnd/shards/schedule.h"

namespace gnnd::shards {

/// Bytes that somebody moved from and to the disk.
struct Traffic {
    std::atomic<std::uint64_t> read{0}, written{0};
};

/// While it lives, what this thread reads and writes is counted there.
class CountTraffic {
  public:
    /// \param traffic  null: it is not counted
    explicit CountTraffic(Traffic* traffic);
    ~CountTraffic();
    CountTraffic(const CountTraffic&) = delete;
    CountTraffic& operator=(const CountTraffic&) = delete;

  private:
    Traffic* before_;
};

/// The job, to be done by another thread, counted as this thread's, where that one counts.
std::function<void()> counted(std::function<void()> job);

/// Vectors of a shard, pinned.
struct PinnedVectors {
    Cache::Pin pin;
    VectorView view;
};

/// A graph of n x k in host memory, pinned: ids, then distances.
struct PinnedGraph {
    Cache::Pin pin;
    std::int64_t n, k;
    Metric metric;
    int id_bytes = sizeof(std::int32_t);  ///< of lists those of the manifest

    template <class Id = std::int32_t>
    Id* ids() const {
        return reinterpret_cast<Id*>(pin.data());
    }
    float* distances() const { return reinterpret_cast<float*>(pin.data() + n * k * id_bytes); }
    KnnGraphView view() const { return {n, k, metric, ids(), distances()}; }
};

/// Most bytes of host memory that workers have pinned at a time.
struct HostBudget {
    std::uint64_t least = 0;       ///< when a worker does one thing after the other
    std::uint64_t overlapped = 0;  ///< when it reads the next shard and folds the last result while it merges
};
HostBudget host_budget(const Manifest& manifest, int workers);

/// All member functions may be called from several threads, for different shards.
class Store {
  public:
    /// \param folder      open, of this base
    /// \param host_bytes  bound of what is held, at least host_budget().least
    /// \param recall      gets finished lists; null: no recall is measured
    Store(const io::VectorReader& base, Folder& folder, std::uint64_t host_bytes, int threads, Resources& resources,
          RecallSample* recall = nullptr);

    const Manifest& manifest() const { return manifest_; }
    std::int64_t rows(int shard) const { return manifest_.rows(shard); }
    /// Null where no recall is measured.
    RecallSample* recall() const { return recall_; }
    /// See Folder.
    void note_samples(int samples) { folder_.note_samples(samples); }
    /// True if both shards' lists, as an earlier run has left them, have seen the other.
    bool merged(const Task& merge) const;

    PinnedVectors vectors(int shard);
    PinnedGraph local(int shard);
    /// Memory for the shard's local graph, content undefined. The worker that has filled it marks it dirty.
    PinnedGraph new_local(int shard);
    /// A graph of that many rows in memory of its own, content undefined.
    PinnedGraph scratch(std::int64_t rows);

    /// Lists have one holder at a time: the store, or who took them.
    /// \param merged  their partners so far
    PinnedGraph take_lists(int shard, std::vector<int>& merged);
    /// Forgets the copy that the holder has read.
    void taken(PinnedGraph&& lists);
    /// Memory for the lists that a holder gives back, content undefined; given() then says that they are there. The
    /// holder may keep its own and give them again.
    PinnedGraph new_lists(int shard);
    void given(int shard, const PinnedGraph& lists, const std::vector<int>& merged);

    /// Memory in which the shard's own graph is to be built, with local ids, content undefined: that of its lists, if
    /// there are none yet and their ids are as narrow.
    PinnedGraph new_graph(int shard);
    /// Makes the graph that was built there the shard's lists, unless it has some already, and its first columns the
    /// local graph, which merges can use at once.
    void split_build(int shard, const PinnedGraph& built);
    /// Folds the result of a pair merge, rows of task.first and then of task.second, into the lists of those of both
    /// that have not seen the other yet.
    void fold_pair(const Task& task, const KnnGraphView& result);

    /// Makes its lists durable, which nobody needs any more, and forgets them.
    void write_lists_of(int shard);
    /// Makes everything durable that the store has, but lists only where nobody has them in hands.
    void flush();
    /// The same for the lists, which are all that counts in the end.
    void flush_lists();

    std::size_t host_bytes() const { return cache_.held(); }
    std::size_t peak_host_bytes() const { return cache_.peak(); }

  private:
    int readers() const;
    PinnedGraph lists(int shard);
    PinnedGraph graph(Cache::Kind kind, int shard, std::int64_t k, int id_bytes, const Cache::Fill& fill);
    void fold_into(int shard, int partner, const KnnGraphView& found, std::int32_t first);
    void flush(const std::function<bool(const Cache::Key&)>& wanted, int threads);
    void write(const Cache::Key& key, const std::byte* data);
    template <class Id>
    void write_lists(int shard, const std::byte* data);

    const io::VectorReader base_;
    Folder& folder_;
    const Manifest manifest_;  ///< as it was when the folder was opened
    const int threads_;
    RecallSample* const recall_;
    std::vector<std::vector<int>> merged_;  ///< partners in the store's lists; belongs to who has these pinned
    std::atomic<int> flushes_{0};           ///< going on
    Cache cache_;
};

}  // namespace gnnd::shards

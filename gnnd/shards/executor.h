// SPDX-License-Identifier: MIT
#pragma once
/// \file executor.h
/// The interface by which a worker builds and merges shards, on the CPU or a GPU.

#include <functional>
#include <memory>
#include <vector>

#include "gnnd/builder.h"
#include "gnnd/detail/input.h"
#include "gnnd/shards/background.h"
#include "gnnd/shards/schedule.h"
#include "gnnd/shards/store.h"

namespace gnnd::shards {

/// Carries out tasks on what a Store holds. Their results may stay with the executor until they are delivered.
///
/// build() and merge() are called by the worker, one after the other. Meanwhile other threads may call prepare() for
/// the task that follows, and deliver() for shards that no task needs any more. prepare() is also called by the worker
/// itself, before its first task.
class Executor {
  public:
    virtual ~Executor() = default;
    /// Introduces the executors of all workers, this one among them, to each other; called once, before any task. As
    /// long as tasks run they may take over from each other what they hold.
    virtual void meet(const std::vector<Executor*>&) {}
    /// The shard's own graph, which becomes its local graph and, unless it has some from an earlier run, its lists.
    virtual BuildStats build(int shard, const Callbacks& callbacks) = 0;
    /// GGM. What either shard finds in the other goes into its lists, unless these have seen the other before.
    virtual BuildStats merge(const Task& pair, const Callbacks& callbacks) = 0;
    /// Gets what the next task needs and the present one does not use. The next may be of the worker's next round if it
    /// is a build, which needs nothing that others change.
    /// \return an owner of what was got, to be kept until the next task has begun
    virtual std::shared_ptr<const void> prepare(const Task& present, const Task& next) = 0;
    /// Compares the recall's sample with the shard, unless that has been done. Tasks do it with the shards that they
    /// use; this is for the others. No task may be running.
    virtual void measure(int shard, const Callbacks& callbacks) = 0;
    /// Puts the lists of this shard, which no task will change any more, into the store.
    virtual void deliver(int finished) = 0;
    /// Puts all results into the store. No task may be running.
    virtual void deliver() = 0;
    /// Ends a round, after which other workers may use the shards: puts what the executor holds into the store, or
    /// leaves it for them to take over.
    virtual void release() = 0;

    /// Holds merges from now on to another recall than that of the parameters, which stays that of builds. No task may
    /// be running.
    void hold_merges_to(float recall) { merge_recall_ = recall; }

  protected:
    /// Those of a merge.
    BuildParams merge_params(BuildParams params) const {
        if (merge_recall_ > 0) params.recall = merge_recall_;
        return params;
    }

  private:
    float merge_recall_ = 0;  ///< 0: as the parameters say
};

/// Compares the recall's sample, if there is one, with the shard's vectors, unless that has been done.
void compare_sample(const Store& store, int shard, const VectorView& vectors, const BuildParams& params,
                    const Callbacks& callbacks, Resources& resources);

/// The circumstances of a worker's executor.
struct ExecutorOptions {
    int workers;   ///< that use the same device
    int waiting;   ///< of these, the ones without an executor yet, which share the memory that is free; itself included
    bool overlap;  ///< host memory is enough for results that wait and for inputs of the next task
};

/// Makes the executor of a worker; params.device is the worker's.
using ExecutorFactory =
    std::function<std::unique_ptr<Executor>(Store&, const BuildParams& params, const ExecutorOptions&)>;

/// True if a device has room to keep shards while all workers use it; of one shard, room to build its graph. The CPU
/// has.
/// \param options  with all workers waiting
bool has_room(const Manifest& manifest, const BuildParams& params, const ExecutorOptions& options);

/// On a GPU with room for it, one that keeps shards there; else a HostExecutor.
std::unique_ptr<Executor> make_executor(Store& store, const BuildParams& params, const ExecutorOptions& options);

/// Works from and to the store's memory, on whatever device. What a merge found goes into the lists while the next task
/// runs.
class HostExecutor : public Executor {
  public:
    HostExecutor(Store& store, const BuildParams& params, const ExecutorOptions& options)
        : params_(params), store_(store), overlap_(options.overlap) {}

    BuildStats build(int shard, const Callbacks& callbacks) override;
    BuildStats merge(const Task& pair, const Callbacks& callbacks) override;
    std::shared_ptr<const void> prepare(const Task& present, const Task& next) override;
    void measure(int shard, const Callbacks& callbacks) override;
    void deliver(int) override { folding_.wait(); }
    void deliver() override { folding_.wait(); }
    void release() override { folding_.wait(); }

  protected:
    /// One side of a pair.
    struct Side {
        VectorView vectors;
        KnnGraphView local;
    };
    /// The vectors' graph, n x k.
    virtual BuildStats build_graph(const VectorView& vectors, std::int32_t* ids, float* distances,
                                   const Callbacks& callbacks);
    /// Neighbours in the union, rows of a and then of b, (a.n + b.n) x k; ids are rows. Objects of the own side are
    /// passed over by who takes it.
    virtual BuildStats merge_graphs(const Side& a, const Side& b, std::int32_t* ids, float* distances,
                                    const Callbacks& callbacks);
    BuildParams params_;

  private:
    BuildStats run(const detail::Input& input, const BuildParams& params, std::int32_t* ids, float* distances,
                   const Callbacks& callbacks) const;

    /// Inputs of the next task, pinned.
    struct Inputs {
        std::vector<PinnedVectors> vectors;
        std::vector<PinnedGraph> locals;  ///< none for a build
    };

    Store& store_;
    const bool overlap_;
    Background folding_;  ///< last: it uses the others
};

}  // namespace gnnd::shards

#pragma once
/// \file executor.h
/// What a worker computes with.

#include <cstdint>
#include <functional>
#include <memory>

#include "gnnd/builder.h"

namespace gnnd::shards {

/// One side of a pair: the shard's vectors and the local graph, in host memory.
struct Side {
    int shard;
    VectorView vectors;
    KnnGraphView local;
};

/// The largest task of a worker.
struct TaskSize {
    std::int64_t rows;  ///< of a shard, at most
    std::int64_t d;
    DType dtype;
    std::int64_t local_columns;
    bool merges;  ///< there is more than one shard
};

/// build(), merge() and, once a merge has begun, fetch() and prepare() each run in a thread of their own; none of them
/// twice at a time.
class Executor {
  public:
    virtual ~Executor() = default;
    /// The shard's own graph, n x k, ids local.
    virtual BuildStats build(int shard, const VectorView& vectors, std::int32_t* ids, float* distances,
                             const Callbacks& callbacks) = 0;
    /// GGM: neighbours in the union, rows of a and then of b, (a.n + b.n) x k; ids are rows. Objects of the own side
    /// are passed over by who takes it.
    /// \param fetch  set to what brings the result to ids and distances. To be called before the next merge but one
    virtual BuildStats merge(const Side& a, const Side& b, std::int32_t* ids, float* distances,
                             const Callbacks& callbacks, std::function<void()>& fetch) = 0;
    /// The side will be merged next, with one of the present task's.
    virtual void prepare(const Side&, const std::function<bool(int)>& in_use) = 0;
};

/// Makes the executor of a worker; params.device is the worker's.
using ExecutorFactory = std::function<std::unique_ptr<Executor>(const BuildParams& params, const TaskSize& size)>;

/// On a GPU with room for it, one that keeps shards there from one task to the next and brings results back while the
/// next merge runs; else one that works from and to host memory.
std::unique_ptr<Executor> make_executor(const BuildParams& params, const TaskSize& size);

}  // namespace gnnd::shards

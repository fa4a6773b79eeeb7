#pragma once
/// \file executor.h
/// What a worker computes with. The one here calls the public builders on host memory; another may keep shards on its
/// device from one task to the next.

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

/// Used by one thread at a time.
class Executor {
  public:
    virtual ~Executor() = default;
    /// The shard's own graph, n x k, ids local.
    virtual BuildStats build(int shard, const VectorView& vectors, std::int32_t* ids, float* distances,
                             const Callbacks& callbacks) = 0;
    /// GGM: neighbours in the union, rows of a and then of b, (a.n + b.n) x k; ids are rows. Objects of the own side
    /// are passed over by who takes it.
    virtual BuildStats merge(const Side& a, const Side& b, std::int32_t* ids, float* distances,
                             const Callbacks& callbacks) = 0;
};

/// Makes the executor of a worker; params.device is the worker's.
using ExecutorFactory = std::function<std::unique_ptr<Executor>(const BuildParams& params)>;

/// On host memory.
std::unique_ptr<Executor> make_host_executor(const BuildParams& params);

}  // namespace gnnd::shards

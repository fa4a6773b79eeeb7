// SPDX-License-Identifier: MIT
#pragma once
/// \file device_graph.h
/// A graph that stays in the memory of a GPU with its vectors, so that what is done to it there moves only what
/// changes.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "gnnd/builder.h"
#include "gnnd/detail/append_rows.h"

namespace gnnd::detail {

/// float32 vectors and their k-NN graph on a GPU. cuda::make_device_graph() makes one of no objects, of which the GPU's
/// memory, gnnd's own, holds at most so many bytes: 4 d + 16 k an object, before the first append() 4 d + 8 k. After
/// what was thrown it is of no more use.
///
/// `params` have k, metric and device of the graph; `resources` are for the time of the call.
class DeviceGraph {
  public:
    virtual ~DeviceGraph() = default;

    virtual int device() const = 0;         ///< the GPU's number
    virtual std::int64_t n() const = 0;     ///< objects
    virtual std::int64_t room() const = 0;  ///< objects that the bytes hold which it may take
    virtual std::size_t bytes() const = 0;  ///< taken now
    virtual VectorView vectors() const = 0;
    virtual KnnGraphView graph() const = 0;

    /// A graph that was built elsewhere, and its vectors, both in host memory.
    virtual void load(const VectorView& vectors, const KnnGraphView& graph, Resources& resources) = 0;
    /// gnnd::build() of vectors in host memory.
    virtual BuildStats build(const VectorView& vectors, const BuildParams& params, const Callbacks& callbacks,
                             Resources& resources) = 0;
    /// gnnd::merge() of two sets of vectors in host memory, whose graphs lie there, too.
    virtual BuildStats merge(const VectorView& x1, const KnnGraphView& g1, const VectorView& x2, const KnnGraphView& g2,
                             const BuildParams& params, const Callbacks& callbacks, Resources& resources) = 0;
    /// gnnd::append() of vectors in host memory.
    virtual BuildStats append(const VectorView& added, std::int64_t unmeasured, const BuildParams& params,
                              const Callbacks& callbacks, Resources& resources) = 0;
    /// The changes of the last append(), without statistics; none if these are more than `most` old rows.
    virtual std::optional<AppendedRows> changed(std::int64_t most, Resources& resources) = 0;
    /// The graph to host memory, n x k each. Another thread may read the graph meanwhile.
    virtual void copy_graph(std::int32_t* ids, float* distances) = 0;
};

}  // namespace gnnd::detail

// SPDX-License-Identifier: MIT
#pragma once
/// \file device_graph.h
/// A graph that stays in the memory of a GPU with its vectors, so that what is done to it there moves only what
/// changes.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gnnd/builder.h"
#include "gnnd/detail/append_rows.h"

namespace gnnd::detail {

/// Objects whose links an append() concerns, and what step 1 of search_links() leaves of their rows.
struct PrunedObjects {
    std::int64_t count = 0;
    std::shared_ptr<const std::int32_t[]> memory;  ///< both

    /// The added ones, then old ones, by number.
    const std::int32_t* objects() const { return memory.get(); }
    /// count x degree, -1 at the end of shorter ones.
    const std::int32_t* links() const { return memory.get() + count; }
};

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
    /// Step 1 of search_links() for the objects of the last append(), for these old ones, whose rows it has changed,
    /// and for those that the first are linked to by it.
    virtual PrunedObjects prune_around(const std::vector<std::int32_t>& changed, int degree,
                                       Resources& resources) const = 0;
    /// The graph to host memory, n x k each. Another thread may read the graph meanwhile.
    virtual void copy_graph(std::int32_t* ids, float* distances) = 0;
};

}  // namespace gnnd::detail

// SPDX-License-Identifier: MIT
#pragma once
/// \file recall.h
/// The recall of a graph in the making, measured on a sample of its objects.

#include <cstdint>
#include <functional>
#include <vector>

#include "gnnd/cpu/space.h"
#include "gnnd/detail/recall.h"
#include "gnnd/params.h"
#include "gnnd/stats.h"

namespace gnnd::cpu {

/// Knows the true neighbours of a sample of objects. The sample and its truth do not depend on the graph: they are made
/// once, and every further measurement costs a few comparisons only.
class Measurement {
  public:
    /// Writes the ids of the nearest `count` that the graph has for an object, -1 for those that it lacks.
    using FirstIds = std::function<void(std::int32_t object, int count, std::int32_t* ids)>;

    /// \param part  the objects that are measured; they are compared with all
    /// \param most  of them, at most so many are sampled, and no more than show the recall that is asked for
    Measurement(const Space& space, const Team& team, const BuildParams& params, const detail::ObjectRange& part,
                Resources& resources, std::int64_t most = 2 * detail::kRecallObjects);

    /// The recall of the graph now.
    /// \param worth  take more objects where no more than so many promise to show that the recall asked for is reached;
    ///               infinitely many: until it is certain on which side of it the graph is
    RecallEstimate measure(const FirstIds& first_ids, double worth);
    double target() const { return target_; }    ///< the recall that its parameters ask for
    double seconds() const { return seconds_; }  ///< wall time that it took so far

  private:
    void add_truth(std::size_t end);
    detail::RecallCount count(const FirstIds& first_ids);

    const Space& space_;
    const Team& team_;
    Resources& resources_;
    std::int64_t count_;
    int at_;
    double target_;
    std::vector<std::int32_t> objects_;  ///< in an order of chance
    std::vector<float> limits_;          ///< of the first objects: the key of the at-th nearest
    double seconds_ = 0;
};

}  // namespace gnnd::cpu

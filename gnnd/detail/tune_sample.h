// SPDX-License-Identifier: MIT
#pragma once
/// \file tune_sample.h
/// A sample of the vectors that are tuned for: its rows, and the true neighbours of some of them, which serve every
/// graph that is built of it.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gnnd/builder.h"

namespace gnnd::detail {

class TuneSample {
  public:
    /// \param vectors  in host memory
    /// \param rows     of the sample; all of the vectors are not copied
    /// \param seed     of the draw of rows, and of objects among them
    /// \throws InvalidArgument that names the first of its rows, by its number in `vectors`, that the metric cannot
    /// take
    TuneSample(const VectorView& vectors, std::int64_t rows, Metric metric, std::uint64_t seed);

    const VectorView& view() const { return view_; }

    /// Finds the true neighbours of so many objects. \param params  of build(): k, metric, device and recall_at matter
    /// \throws Interrupted
    void find_truth(std::int64_t objects, const BuildParams& params, const Callbacks& callbacks, Resources* resources);

    /// The share of the true neighbours that the graph of the sample has, with its interval; ties count whichever was
    /// taken.
    RecallEstimate recall_of(const KnnGraph& graph) const;

  private:
    VectorView view_;
    std::vector<std::byte> rows_;  ///< empty where the view is of the caller's memory
    Metric metric_;
    std::uint64_t seed_;
    int at_ = 0;                         ///< neighbours that count
    std::vector<std::int32_t> objects_;  ///< ascending
    std::vector<float> limits_;          ///< of each object: the metric's value of its at-th neighbour
};

}  // namespace gnnd::detail

// SPDX-License-Identifier: MIT
#pragma once
/// The right answers to a set of queries, from a file of ids or from a graph.

#include <faiss/MetricType.h>

#include <cstdint>
#include <string>
#include <vector>

#include "faiss_ext/compat.h"
#include "gnnd/graph.h"
#include "gnnd/io/vector_file.h"

namespace cli {

class Truth {
  public:
    /// \param queries  that were searched for
    /// \param metric   of the search whose results are judged
    /// \throws gnnd::Error when the file does not hold a row of at least k neighbours for each of the queries, or is a
    ///         graph of other vectors
    Truth(const std::string& path, const gnnd::io::VectorFile& queries, int k, faiss::MetricType metric);

    /// Graphs do not list an object as its own neighbour.
    bool leaves_self_out() const { return from_graph_; }

    /// True where id is among the first k of the query's row. Where the file tells distances that can be compared,
    /// everything that is no farther than the k-th is right too.
    bool holds(std::int64_t query, faiss_ext::idx_t id, float distance) const;

  private:
    int k_;
    bool from_graph_, similarity_ = false;
    std::vector<std::int32_t> ids_;  ///< n x k
    std::vector<float> last_;        ///< the k-th distances; empty where they cannot be compared
};

}  // namespace cli

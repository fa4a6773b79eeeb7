// SPDX-License-Identifier: MIT
#pragma once
/// Graphs of ids that somebody else has computed.

#include "gnnd/graph.h"
#include "gnnd/io/vector_file.h"
#include "gnnd/metric.h"

namespace cli {

/// The graph of neighbours whose ids are in a file, one row per vector, in any order. The vector itself, -1 and what
/// stands twice are left out, distances computed, rows sorted and cut to as many neighbours as each row has.
/// \throws gnnd::InvalidArgument unless the file holds ids of the base, a row for each vector, and one neighbour at
/// least
gnnd::KnnGraph import_ids(const gnnd::io::VectorFile& ids, const gnnd::io::VectorFile& base, gnnd::Metric metric);

}  // namespace cli

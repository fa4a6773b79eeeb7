// SPDX-License-Identifier: MIT
#pragma once
/// \file backend.h
/// The CPU's side of builder.h, merge.h and search_links.h. The caller has checked the arguments.

#include <string>

#include "gnnd/builder.h"
#include "gnnd/detail/input.h"
#include "gnnd/search_links.h"

namespace gnnd::cpu {

/// build(), refine(), merge() or append() by searching, as the input says. Host memory only.
/// \param choices  of resolve()
/// \param ids, distances  the graph, n x k each
BuildStats run(const detail::Input& input, const BuildParams& params, const Choices& choices,
               const Callbacks& callbacks, Resources& resources, std::int32_t* ids, float* distances);

/// Memory that a run takes beside vectors and graph, at its peak. The pointers of the input may be null.
MemoryPlan plan(const detail::Input& input, const BuildParams& params, const Choices& choices);

KnnGraph exact_neighbors(const VectorView& vectors, const std::int32_t* queries, std::int64_t count, int k,
                         Metric metric, int threads, const Callbacks& callbacks, Resources& resources);

/// See detail/run.h.
KnnGraph nearest_of(const VectorView& vectors, const VectorView& sample, const std::int32_t* selves, int k,
                    Metric metric, int threads, const Callbacks& callbacks, Resources& resources);

void pair_distances(const VectorView& vectors, Metric metric, const std::int32_t* a, const std::int32_t* b,
                    std::int64_t count, float* out, Resources& resources);

void search_links(const VectorView& vectors, const KnnGraphView& graph, const LinkParams& params, std::int32_t* links,
                  const Callbacks& callbacks, Resources& resources);

void prune_rows(const VectorView& vectors, const KnnGraphView& graph, const std::int32_t* objects, std::int64_t count,
                const LinkParams& params, std::int32_t* links, const Callbacks& callbacks, Resources& resources);

/// Refuses vectors with NaN, infinite or overflowing components, zero vectors where the metric normalises, negative
/// components under chi2.
/// \param first  the number by which an error calls the first of them
/// \throws InvalidArgument that names the row
void check_vectors(const VectorView& vectors, Metric metric, int threads, const Callbacks& callbacks,
                   std::int64_t first = 0);

/// Says for a message why the metric cannot work with the first of the rows; empty where it can.
std::string fault_of_row(const VectorView& vectors, Metric metric);

}  // namespace gnnd::cpu

// SPDX-License-Identifier: MIT
#pragma once
/// \file projection.h
/// Long rows of floats as short rows of codes: their projections onto the few directions in which they vary most, as
/// int8. The directions come from some of the rows by a randomized range finder with one power iteration (Halko,
/// Martinsson, Tropp: "Finding structure with randomness", 2011, algorithms 4.3 and 4.4), so that they are near the
/// first principal components. What vectors differ by in other directions is lost: lists of projections hold most
/// true neighbours, or not, as the build measures (recall/recall.h). A projection makes no distance longer, but
/// for its rounding, so that a sweep may rule out pairs by it (sweep/bounds.h).

#include <cuda_runtime_api.h>

#include <cstdint>

#include "gnnd/cuda/space/space.h"
#include "gnnd/params.h"

namespace gnnd::cuda {

struct Points;

inline constexpr int kComponents = 128;  ///< of a projection, a byte each
/// From so many components on projections are much shorter than codes of all, and from so many of all rows together
/// the time that is saved is more than what projecting takes (benchs/NOTEBOOK.md).
inline constexpr std::int64_t kLeastProjected = 4 * kComponents, kLeastInAll = std::int64_t(1) << 26;

/// Projections that keep less of the variance rule out too few pairs to be compared (benchs/NOTEBOOK.md).
inline constexpr float kKeepsMost = 0.75F;

/// True where a build may project n rows of d components.
inline bool may_project(Codes codes, std::int64_t n, std::int64_t d) {
    return codes == Codes::pca || (codes == Codes::automatic && d >= kLeastProjected && n * d >= kLeastInAll);
}

/// Bytes that a projection of rows of row_bytes is kept in, and those that finding it and project() for n rows work in.
std::int64_t projection_bytes(std::int64_t row_bytes);
std::int64_t projection_work_bytes(std::int64_t n, std::int64_t row_bytes);

/// Finds the directions and the step of the codes. The same rows and seed give the same bits. Waits for the stream.
/// \param halves      the rows as prepare_space() packs them to float16, under l2 or cosine
/// \param seed        of the range finder
/// \param projection  projection_bytes(), written
/// \param work        projection_work_bytes()
/// \return the share of the rows' variance that the projection keeps
float find_projection(const Points& halves, std::uint32_t seed, std::byte* projection, std::byte* work,
                      cudaStream_t stream);

/// Replaces the rows by their projections' codes.
/// \param normalized  rows were divided by their norms
/// \param projection  that of find_projection()
/// \param rows        n x kComponents, written: where the rows of `halves` are
/// \param bias        n: squared norms of these rows, and then of the codes
/// \param errors      n, written: what a row's projection, times the scale, differs from its code by at most; the
///                    largest goes into info
/// \param info        that of the float16; scale, unit and code_error are written, as pack_codes() does
/// \param work        projection_work_bytes()
void project(const Points& halves, bool normalized, const std::byte* projection, std::uint8_t* rows,
             std::uint32_t* bias, float* errors, SpaceInfo* info, std::byte* work, cudaStream_t stream);

}  // namespace gnnd::cuda

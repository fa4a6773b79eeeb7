// SPDX-License-Identifier: MIT
#pragma once
/// \file space.h
/// The vectors on the device: checked and packed for the kernels, and as they came for exact distances.

#include <cuda_runtime_api.h>

#include "gnnd/cuda/memory/plan.h"
#include "gnnd/detail/input.h"
#include "gnnd/resources.h"

namespace gnnd::cuda {

/// Found out on the device while packing.
struct SpaceInfo {
    unsigned long long first_bad;  ///< smallest number of a row that no build can work with; ~0: none
    unsigned largest;              ///< bits of the largest |component| after centring
    float mean_square;             ///< squared norm of a row, on average over some
    float scale;                   ///< components were multiplied by this, a power of two unless they became codes
    float unit, offset;            ///< a list's distance times unit plus offset is the metric's value
    unsigned coarse;               ///< of codes: objects whose neighbours they can hardly tell from others
    float code_error;              ///< of codes: what a row differs from its code by, squared, on average over some
    unsigned largest_error;        ///< of codes whose errors were written: bits of the largest
    float longest;                 ///< of projections: distances are so many times as long, beside the scale, at most
};

/// The vectors as they came, on the device.
struct RawVectors {
    const std::byte* data;
    std::int64_t n, d, stride;
    DType dtype;
};

/// The vectors where they lie, else copied to `copy`. In place: on the device, and those of two sets adjoining.
RawVectors upload(const detail::Input& input, bool in_place, std::byte* copy, Resources& resources,
                  cudaStream_t stream);

/// Floats are often integers in disguise, as SIFT descriptors in fvecs files and FAISS indexes are. Where all
/// components are from 0 to 255 or from -128 to 127, the form becomes that of u8 or i8: exact, and half the bytes.
/// Waits for the stream, unless there is nothing to be found.
/// \param misfits  a word to work in
void find_integers(const RawVectors& vectors, Metric metric, VectorForm& form, unsigned* misfits, cudaStream_t stream);

/// Starts checking and packing the vectors: fills rows (unless the form leaves them in place), bias and info.
/// \param mean  2 d floats to work in
void prepare_space(const RawVectors& vectors, Metric metric, const VectorForm& form, std::uint8_t* rows,
                   std::uint32_t* bias, float* mean, SpaceInfo* info, cudaStream_t stream);

/// Floats that prepare_space() has packed to float16, once more, to float16 or to codes.
/// \param mean    2 d floats and kCodeErrorBytes (codes.h) to work in
/// \param errors  n, written for codes, see pack_codes(); null: nobody wants them
void pack_again(const RawVectors& vectors, Metric metric, const VectorForm& form, std::uint8_t* rows,
                std::uint32_t* bias, float* errors, float* mean, SpaceInfo* info, cudaStream_t stream);

/// The same rows once more, each component as the sum of two float16, which together are as fine as a float32: the
/// first ones of a row in its first half, the second ones behind it. After prepare_space() in the form of f16.
/// \param row_bytes  of both halves
/// \param norms      n: squared norms of the sums, as bits of float
/// \param mean       2 d floats to work in
void split_space(const RawVectors& vectors, Metric metric, const SpaceInfo* info, std::uint8_t* rows, int row_bytes,
                 std::uint32_t* norms, float* mean, cudaStream_t stream);

}  // namespace gnnd::cuda

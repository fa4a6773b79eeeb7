// SPDX-License-Identifier: MIT
// From the norms of rows and the bounds of their lists to what sums of products have to pass, as bounds.h says.
#include <cfloat>
#include <cmath>

#include "gnnd/cuda/device/launch.cuh"
#include "gnnd/cuda/device/warp.cuh"
#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/cuda/space/row_error.h"
#include "gnnd/cuda/sweep/bounds.h"

namespace gnnd::cuda {
namespace {

constexpr int kThreads = 256;

// No pair is a hit where one of these is a threshold. Products of integers are less than 2^29 (kMaxSweptBytes).
constexpr int kNever = -(1 << 30), kAlways = 1 << 29;

/// \param norms   n, int or bits of float, none of them negative, so that both have the order of u32
/// \param errors  n, of codes, whose norms are int; null: of float16
/// \param out     1, zeros before
__global__ void norms_kernel(const u32* norms, const float* errors, std::int64_t n, RowNorms* out) {
    u32 mine = 0;
    u64 sum = 0;
    double squares = 0, fourths = 0;
    for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
         i += std::int64_t(gridDim.x) * blockDim.x) {
        mine = max(mine, norms[i]);
        if (errors == nullptr) continue;
        const double square = double(errors[i]) * double(errors[i]);
        sum += norms[i];
        squares += square;
        fourths += square * square;
    }
    for (int step = kWarp / 2; step > 0; step /= 2) {
        mine = max(mine, __shfl_xor_sync(kAllLanes, mine, step));
        sum += __shfl_xor_sync(kAllLanes, sum, step);
        squares += __shfl_xor_sync(kAllLanes, squares, step);
        fourths += __shfl_xor_sync(kAllLanes, fourths, step);
    }
    if (lane_id() != 0) return;
    atomicMax(&out->largest, mine);
    if (errors == nullptr) return;
    atomicAdd(reinterpret_cast<unsigned long long*>(&out->sum), sum);
    atomicAdd(&out->errors, squares);
    atomicAdd(&out->squared_errors, fourths);
}

__device__ Threshold of_integers(bool l2, int norm, float bound) {
    const int offset = l2 ? -(norm >> 1) : 0;
    if (bound == INFINITY) return {u32(offset), u32(kAlways)};
    // From 2^24 on the bound may have been rounded.
    const double wide = double(bound) + (fabsf(bound) < 0x1p24f ? 0.0 : fabs(double(bound)) * 0x1p-23);
    return {u32(offset), u32(int(ceil(l2 ? (wide - double(norm)) / 2 : wide)))};
}

struct Terms {
    bool l2, normalized;
    float scale;
    float underflow;  ///< error of a bound whose terms are
    float largest;    ///< norm

    /// The squared distance of a bound under l2, or at most so much. Of vectors of norm 1 it is 2 - 2 cos.
    __device__ float distance(float bound) const {
        return normalized ? fmaxf(2 + 2 * bound, 0.0f) + 0x1p-19f : bound * (1 + 0x1p-18f) + underflow;
    }
};

struct CodeTerms : Terms {
    double usual, largest_error;  ///< of codes
    double far;                   ///< the distance R of bounds.h
};

/// \param above  as integers are compared: what the sum has to pass is one less
__device__ u32 as_threshold(double above) {
    return u32(int(fmax(double(-kAlways), fmin(double(kAlways), above))));
}

/// \param square  of the code's norm
__device__ Threshold of_codes(const CodeTerms& terms, int square, double error, float bound) {
    constexpr double kSlack = 1 + 1e-12;  // for what is computed here
    const double scale = double(terms.scale);
    if (!terms.l2) {
        const double margin =
            error * (double(terms.largest) + terms.largest_error) + sqrt(double(square)) * terms.largest_error;
        const double least = (double(bound) + fabs(double(bound)) * 0x1p-18 + double(terms.underflow)) * scale * scale;
        return {0, bound == INFINITY ? u32(kAlways) : as_threshold(floor(least + margin * kSlack) + 1)};
    }
    const double more = fmax(error - terms.usual, 0.0);
    const double less = more > 0 ? (2 * (terms.far + terms.usual) + more) * more * kSlack : 0.0;
    const u32 offset = as_threshold(ceil((less - double(square)) / 2));
    if (bound == INFINITY) return {offset, u32(kAlways)};
    if (!terms.normalized && bound <= 0) return {offset, u32(kNever)};  // nothing is nearer
    const double own = sqrt(double(terms.distance(bound))) * scale + error;
    const double radius = own + (own <= terms.far ? terms.usual : terms.largest_error);
    return {offset, as_threshold(floor((radius * radius * kSlack - double(square)) / 2) + 1)};
}

struct HalfTerms : Terms, HalfError {
    __device__ float error(float norm) const {
        return rounding * norm + subnormal + (normalized ? kNormalizing * scale : 0.0f);
    }
    /// The norm that rows have at most whose vectors are so near to that of a row with this norm.
    __device__ float largest_within(float distance, float norm) const {
        return fminf(largest, (norm + error(norm) + distance + error(0)) * (1 + 0x1p-9f));
    }
};

__device__ Threshold of_halves(const HalfTerms& terms, float square, float bound) {
    const float norm = sqrtf(square), summing = terms.summing(), square_scale = terms.scale * terms.scale;
    if (!terms.l2) {
        if (bound == INFINITY) return {0, __float_as_uint(INFINITY)};
        const float margin = terms.error(norm) * terms.largest + norm * terms.error(terms.largest) +
                             terms.error(norm) * terms.error(terms.largest) + summing * norm * terms.largest;
        return {0, __float_as_uint((bound + terms.underflow) * square_scale + fabsf(bound) * square_scale * 0x1p-18f +
                                   margin)};
    }
    const float offset = -0.5f * square * (1 - summing);
    if (bound == INFINITY) return {__float_as_uint(offset), __float_as_uint(INFINITY)};
    if (!terms.normalized && bound <= 0)
        return {__float_as_uint(offset), __float_as_uint(-INFINITY)};  // nothing is nearer
    const float scaled = sqrtf(terms.distance(bound)) * terms.scale * (1 + 0x1p-20f);
    const float radius = scaled + terms.error(norm) + terms.error(terms.largest_within(scaled, norm));
    return {__float_as_uint(offset), __float_as_uint(offset + 0.5f * radius * radius * (1 + 0x1p-20f))};
}

__device__ Threshold of_floats(float bound) {
    return {0, __float_as_uint(bound + fabsf(bound) * 0x1p-18f)};
}

__device__ CodeTerms code_terms(const HalfTerms& terms, const SpaceInfo& info, const RowNorms& norms, std::int64_t n) {
    constexpr double kDeviations = 2;
    const double mean = norms.errors / double(n), variance = norms.squared_errors / double(n) - mean * mean;
    CodeTerms codes{};
    static_cast<Terms&>(codes) = terms;
    codes.scale *= info.longest;
    codes.largest = sqrtf(float(norms.largest)) * (1 + 0x1p-20f);
    codes.usual = sqrt(mean + kDeviations * sqrt(fmax(variance, 0.0)));
    codes.largest_error = double(__uint_as_float(info.largest_error));
    codes.far = sqrt(2 * double(norms.sum) / double(n));
    return codes;
}

/// A thread a place. \param norms, errors  n, see SweepSpace
__global__ void thresholds_kernel(SweepForm form, BoundArgs args, const u32* norms, const float* errors, std::int64_t n,
                                  const SpaceInfo* info, HalfTerms terms) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= args.padded) return;
    const bool integers = form == SweepForm::integers || is_codes(form);
    const u32 never = integers ? u32(kNever) : __float_as_uint(-INFINITY);
    Threshold made{never, never};
    if (i < args.count) {
        const u32 object = args.objects != nullptr ? args.objects[i] : i;
        float bound = INFINITY;
        const Lists& lists = args.lists;
        if (lists.bounds != nullptr)
            bound = i < args.wanted.whole ? lists.bounds[i]
                                          : lists.distances[std::int64_t(i) * lists.length + args.wanted.at - 1];
        if (args.ceilings != nullptr) bound = fminf(bound, args.ceilings[object]);
        terms.scale = info->scale;
        if (form == SweepForm::integers) {
            made = of_integers(terms.l2, int(norms[object]), bound);
        } else if (is_codes(form)) {
            made =
                of_codes(code_terms(terms, *info, *args.norms, n), int(norms[object]), double(errors[object]), bound);
        } else if (form != SweepForm::floats) {
            terms.largest = sqrtf(__uint_as_float(args.norms->largest));
            made = of_halves(terms, __uint_as_float(norms[object]), bound);
        } else {
            made = of_floats(bound);
        }
    }
    args.out[i] = made;
}

/// Numbers with the order of sums, and back.
__device__ u32 ordered(u32 sum, bool floats) {
    return sum ^ (floats && sum >> 31 != 0 ? ~0u : 1u << 31);
}
__device__ u32 from_ordered(u32 key, bool floats) {
    return key ^ (floats && key >> 31 == 0 ? ~0u : 1u << 31);
}

/// The distance (negated similarity) of a row and a column whose sum with its offset is this, and a little more, so
/// that the column is nearer. What it says of halves is as wrong as these are: it need not be right.
__device__ float ceiling_of(const Terms& terms, bool integers, u32 norm, u32 sum) {
    constexpr float kMore = 0x1p-16f;
    if (integers) {
        const double with_offset = double(int(sum));
        const double distance = terms.l2 ? fmax(double(int(norm)) - 2 * with_offset, 0.0) + 2 : 1 - with_offset;
        return float(distance + fabs(distance) * double(kMore));
    }
    const float square_scale = terms.scale * terms.scale, with_offset = __uint_as_float(sum);
    if (!terms.l2) {
        const float distance = -with_offset / square_scale;
        return distance + fabsf(distance) * kMore + terms.underflow;
    }
    const float squared = fmaxf(__uint_as_float(norm) - 2 * with_offset, 0.0f) / square_scale * (1 + kMore);
    return terms.normalized ? squared / 2 - 1 + kMore : squared + FLT_MIN;
}

/// A warp a row: its rank-th largest maximum bit by bit.
__global__ void ceilings_kernel(CeilingArgs args, const u32* norms, const SpaceInfo* info, Terms terms, bool integers) {
    const u32 i = blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp;
    if (i >= args.count) return;
    const u32* maxima = args.maxima + u64(i) * args.groups * kMaxima;
    u32 keys[kMostGroups];
#pragma unroll
    for (u32 g = 0; g < kMostGroups; ++g)
        keys[g] = g < args.groups ? ordered(maxima[g * kMaxima + lane_id()], !integers) : 0;
    u32 least = 0;
    for (u32 bit = 1u << 31; bit != 0; bit >>= 1) {
        u32 larger = 0;
#pragma unroll
        for (u32 g = 0; g < kMostGroups; ++g) larger += __popc(__ballot_sync(kAllLanes, keys[g] >= (least | bit)));
        if (larger >= args.rank) least |= bit;
    }
    if (lane_id() != 0) return;
    terms.scale = info->scale;
    args.out[i] = ceiling_of(terms, integers, norms[i], from_ordered(least, !integers));
}

/// Without the scale and the largest norm, which are on the device.
HalfTerms terms_of(SweepForm form, const SweepSpace& space) {
    HalfTerms terms{{}, HalfError(space.raw.d)};
    visit(space.metric, [&]<class M>(M) {
        terms.l2 = !M::similarity || M::normalized;
        terms.normalized = M::normalized;
    });
    terms.underflow = float(space.raw.d) * 0x1p-149f;
    if (form == SweepForm::split) {
        terms.rounding = 0x1.7p-22f;
        terms.subnormal /= 2;
    }
    return terms;
}

}  // namespace

void sum_up_norms(SweepForm form, const SweepSpace& space, RowNorms* norms, cudaStream_t stream) {
    GNND_CUDA(cudaMemsetAsync(norms, 0, sizeof(RowNorms), stream));
    norms_kernel<<<512, kThreads, 0, stream>>>(space.norms, is_codes(form) ? space.errors : nullptr, space.raw.n,
                                               norms);
    GNND_LAUNCHED("norms_kernel");
}

void make_thresholds(SweepForm form, const SweepSpace& space, const BoundArgs& args, cudaStream_t stream) {
    thresholds_kernel<<<blocks_for(args.padded, kThreads), kThreads, 0, stream>>>(
        form, args, space.norms, space.errors, space.raw.n, space.info, terms_of(form, space));
    GNND_LAUNCHED("thresholds_kernel");
}

void make_ceilings(SweepForm form, const SweepSpace& space, const CeilingArgs& args, cudaStream_t stream) {
    ceilings_kernel<<<blocks_for(args.count, kThreads / kWarp), kThreads, 0, stream>>>(
        args, space.norms, space.info, terms_of(form, space), form == SweepForm::integers);
    GNND_LAUNCHED("ceilings_kernel");
}

}  // namespace gnnd::cuda

// SPDX-License-Identifier: MIT
#pragma once
/// \file fuzzy_row.h
/// UMAP's weights of one row, for both backends.

#include <cmath>
#include <cstdint>

#include "gnnd/metric.h"

namespace gnnd::detail {

// umap-learn's SMOOTH_K_TOLERANCE and MIN_K_DIST_SCALE, and the steps of its search.
inline constexpr double kTolerance = 1e-5, kLeastScale = 1e-3;
inline constexpr int kMostSteps = 64;

/// Rows whose sums are added up one after the other, for the mean of all distances.
inline constexpr std::int64_t kSummedRows = 2048;

/// The parameters of all rows.
struct FuzzyScale {
    double connectivity;  ///< FuzzyParams::local_connectivity
    double target;        ///< what the weights of a row add up to
    double mean;          ///< of all distances and, for the object itself, a 0 in every row
};

GNND_HOST_DEVICE inline double sum_of_row(const float* distances, int count) {
    double sum = 0;
    for (int j = 0; j < count; ++j) sum += distances[j];
    return sum;
}

/// e^x as float32. A GPU's own has another last bit now and then; float64 rounded does not.
GNND_HOST_DEVICE inline float exponential(float x) {
#ifdef __CUDA_ARCH__
    return float(exp(double(x)));
#else
    return std::exp(x);
#endif
}

/// The distance up to which neighbours have weight 1: of the `connectivity`-th one that is no copy, linear in between.
GNND_HOST_DEVICE inline double nearest_of_row(const float* distances, int count, double connectivity) {
    int copies = 0;
    while (copies < count && distances[copies] <= 0) ++copies;
    const float* other = distances + copies;
    const int others = count - copies;
    if (others == 0) return 0;
    if (double(others) < connectivity) return distances[count - 1];
    const int index = int(connectivity);
    const double share = connectivity - double(index);
    if (index == 0) return share * other[0];
    if (share <= kTolerance) return other[index - 1];
    return other[index - 1] + share * (double(other[index]) - other[index - 1]);
}

/// The sigma with which the row adds up to `target`; 0 where it is as much with any or too much with the least,
/// infinity where it is too little with the largest.
GNND_HOST_DEVICE inline double smooth_row(const float* distances, int count, double rho, double target) {
    int near = 0;
    double mean = 0;
    for (int j = 0; j < count; ++j) {
        const double beyond = distances[j] - rho;
        near += int(beyond <= 0);
        mean += beyond > 0 ? beyond : 0;
    }
    if (near == count || near - target >= kTolerance) return 0;
    if (target - count > kTolerance) return HUGE_VAL;
    // The sum grows with sigma. Newton's steps where they stay between what is known to be too little and too much,
    // otherwise umap's own, half or double.
    double low = 0, high = HUGE_VAL, sigma = mean / count;
    for (int step = 0; step < kMostSteps; ++step) {
        double sum = near, slope = 0;
        for (int j = near; j < count; ++j) {
            const double beyond = (distances[j] - rho) / sigma, weight = exponential(float(-beyond));
            sum += weight;
            slope += weight * beyond;
        }
        if (std::abs(sum - target) < kTolerance) break;
        (sum > target ? high : low) = sigma;
        const double newton = sigma - (sum - target) * sigma / slope;
        if (newton > low && newton < high)
            sigma = newton;
        else
            sigma = high == HUGE_VAL ? 2 * sigma : (low + high) / 2;
    }
    return sigma;
}

/// Turns the row's distances into weights.
GNND_HOST_DEVICE inline void weigh_row(float* values, int count, const FuzzyScale& scale) {
    if (count == 0) return;
    const double rho = nearest_of_row(values, count, scale.connectivity);
    const double least = kLeastScale * (rho > 0 ? sum_of_row(values, count) / (count + 1) : scale.mean);
    const double smooth = smooth_row(values, count, rho, scale.target), sigma = smooth < least ? least : smooth;
    for (int j = 0; j < count; ++j) {
        const double beyond = values[j] - rho;
        values[j] = beyond <= 0 || sigma == 0 ? 1.f : exponential(float(-beyond / sigma));
    }
}

}  // namespace gnnd::detail

// SPDX-License-Identifier: MIT
// UMAP's fuzzy simplicial set.
#include <vector>

#include "gnnd/cpu/operations/join.h"
#include "gnnd/detail/checks.h"

namespace gnnd {
namespace {

using cpu::Edges;
using cpu::OwnedEdges;
using cpu::Team;

// umap-learn's SMOOTH_K_TOLERANCE and MIN_K_DIST_SCALE, and the steps of its search.
constexpr double kTolerance = 1e-5, kLeastScale = 1e-3;
constexpr int kMostSteps = 64;

/// Memberships of both directions, a and b, as one.
struct FuzzyRule {
    static constexpr bool keeps_one = true;
    float mix;
    float one(float a) const { return mix * a; }
    float both(float a, float b) const {
        const float product = a * b;
        return mix * (a + b - product) + (1 - mix) * product;
    }
    bool keeps(float value) const { return value != 0; }
};

/// The distance up to which neighbours have weight 1: of the `connectivity`-th one that is no copy, linear in between.
double nearest_of_row(const float* distances, int count, double connectivity) {
    const float* other = std::upper_bound(distances, distances + count, 0.f);
    const auto others = std::int64_t(distances + count - other);
    if (others == 0) return 0;
    if (double(others) < connectivity) return distances[count - 1];
    const auto index = std::int64_t(std::floor(connectivity));
    const double share = connectivity - double(index);
    if (index == 0) return share * other[0];
    if (share <= kTolerance) return other[index - 1];
    return other[index - 1] + share * (double(other[index]) - other[index - 1]);
}

/// The sigma with which the row adds up to `target`; 0 where it is as much with any or too much with the least,
/// infinity where it is too little with the largest.
double smooth_row(const float* distances, int count, double rho, double target) {
    int near = 0;
    double mean = 0;
    for (int j = 0; j < count; ++j) {
        const double beyond = distances[j] - rho;
        near += int(beyond <= 0);
        mean += std::max(beyond, 0.0);
    }
    if (near == count || near - target >= kTolerance) return 0;
    if (target - count > kTolerance) return HUGE_VAL;
    // The sum grows with sigma. Newton's steps where they stay between what is known to be too little and too much,
    // otherwise umap's own, half or double.
    double low = 0, high = HUGE_VAL, sigma = mean / count;
    for (int step = 0; step < kMostSteps; ++step) {
        double sum = near, slope = 0;
        for (int j = near; j < count; ++j) {
            const double beyond = (distances[j] - rho) / sigma, weight = std::exp(float(-beyond));
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

/// The mean of all distances and, for the object itself, a 0 in every row, added up in an order that threads do not
/// change.
double mean_distance(const Edges& edges, const Team& team) {
    std::vector<double> sums(std::size_t(edges.n / cpu::kRowsAtOnce + 1));
    std::vector<std::int64_t> counts(sums.size());
    team.for_chunks(edges.n, cpu::kRowsAtOnce, [&](int, std::int64_t begin, std::int64_t end) {
        double sum = 0;
        std::int64_t count = end - begin;
        for (std::int64_t i = begin; i < end; ++i) {
            const int length = edges.length_of(i);
            for (int j = 0; j < length; ++j) sum += edges.values_of(i)[j];
            count += length;
        }
        sums[std::size_t(begin / cpu::kRowsAtOnce)] = sum;
        counts[std::size_t(begin / cpu::kRowsAtOnce)] = count;
    });
    double sum = 0;
    std::int64_t count = 0;
    for (std::size_t c = 0; c < sums.size(); ++c) sum += sums[c], count += counts[c];
    return count == 0 ? 0 : sum / double(count);
}

}  // namespace

CsrGraph fuzzy_simplicial_set(const KnnGraphView& graph, const FuzzyParams& params, const Callbacks& callbacks) {
    const Team team = cpu::team_of(params.threads, &callbacks.interrupt);
    OwnedEdges own =
        edges_of("fuzzy_simplicial_set", graph, {params.neighbors, GraphValues::distance, {}, params.threads}, team);
    Edges& edges = own.edges;
    const auto columns = float(graph.n == 0 ? kMaxColumns : edges.columns);
    detail::check_range("FuzzyParams", "local_connectivity", params.local_connectivity, 0.f, columns);
    detail::check_range("FuzzyParams", "set_op_mix_ratio", params.set_op_mix_ratio, 0.f, 1.f);
    detail::check_range("FuzzyParams", "bandwidth", params.bandwidth, std::numeric_limits<float>::min(),
                        std::numeric_limits<float>::max());
    const double target = std::log2(double(edges.columns) + 1) * params.bandwidth;
    const double mean = mean_distance(edges, team);
    team.for_chunks(edges.n, 512, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            float* values = own.values.data() + i * edges.k;
            const int count = edges.length_of(i);
            if (count == 0) continue;
            const double rho = nearest_of_row(values, count, params.local_connectivity);
            double sum = 0;
            for (int j = 0; j < count; ++j) sum += values[j];
            const double least = kLeastScale * (rho > 0 ? sum / (count + 1) : mean);
            const double sigma = std::max(smooth_row(values, count, rho, target), least);
            for (int j = 0; j < count; ++j) {
                const double beyond = values[j] - rho;
                values[j] = beyond <= 0 || sigma == 0 ? 1.f : std::exp(float(-beyond / sigma));
            }
        }
    });
    edges.low = std::numeric_limits<float>::denorm_min();  // a weight of 0 is none
    return cpu::join_directions(edges, FuzzyRule{params.set_op_mix_ratio}, team);
}

}  // namespace gnnd

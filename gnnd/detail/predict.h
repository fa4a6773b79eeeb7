// SPDX-License-Identifier: MIT
#pragma once
/// \file predict.h
/// Predicts the choice of a build, and the time of both of its ways, before it starts.

#include <cstdint>
#include <string>
#include <string_view>

#include "gnnd/cpu/kernels.h"
#include "gnnd/detail/input.h"
#include "gnnd/stats.h"

namespace gnnd::detail {

/// A set whose pairs are compared.
struct ComparedSet {
    std::int64_t n = 0;
    std::int64_t row_bytes = 0;   ///< of a row as it is compared: of floats as float16 on a GPU, as float32 on the CPU
    bool bytes = false;           ///< of components that are bytes; otherwise floats
    bool codes = false;           ///< all pairs of floats may be compared as codes, on a GPU
    bool from_sample = false;     ///< all pairs may be compared with bounds from a sample, on a GPU (bound_sample.h)
    std::int64_t list_bytes = 0;  ///< of a row as lists are built of it, where floats are codes on a GPU; 0: row_bytes
    int k = 0;
    int list_size = 0;  ///< while GNND runs
    int samples = 0;    ///< likewise, of a list
    int parts = 1;      ///< in which all pairs are compared, each with each
};

/// The properties that a GPU reports, from which its rates follow.
struct GpuTraits {
    std::string name;             ///< as CUDA has it
    int major = 0, minor = 0;     ///< its compute capability
    bool wgmma = false;           ///< its kernels have Hopper's instruction for products; otherwise mma.sync
    double multiprocessors = 0;   ///< their number
    double clock = 0;             ///< the highest of its multiprocessors, in Hz; 0: it does not tell
    double bytes_per_second = 0;  ///< of its memory; 0: it does not tell
};

/// For metrics that are sums of products, euclidean distances among them; of others no rates were measured.
bool is_predictable(Metric metric);

/// On a GPU: iterations after which lists are good enough to compare all pairs against their last distances: better
/// ones cost more time than they save (benchs/NOTEBOOK.md).
inline int iterations_for_bounds(int k) {
    return k > 32 ? 2 : 1;
}

struct GpuPrediction : Prediction {
    bool from_sample = false;  ///< all pairs take least with bounds from a sample, not against lists
};
GpuPrediction predict_on_gpu(const GpuTraits& gpu, const ComparedSet& set);
/// \param threads  among which the work is divided evenly
/// \param isa      whose kernels are used
Prediction predict_on_cpu(int threads, const ComparedSet& set, cpu::Isa isa = cpu::supported_isas().back());

/// Seconds that a thread of the CPU spends on each object of a set.
struct ObjectCosts {
    double all_pairs;  ///< where all pairs are compared
    double round;      ///< in an iteration with the samples that are chosen, or in the trees, which take about as long
};
/// What decides between both. Under products the same seed gives the same graph of bytes on all processors: for them
/// the costs are those with AVX2, where all pairs gain least. Metrics that are no sums of products, whose components
/// are floats then, cost about what products do with older instructions: for them AVX2's are taken, or without AVX-512
/// those before.
ObjectCosts object_costs(ComparedSet set, Metric metric, cpu::Isa isa = cpu::supported_isas().back());

/// True where all pairs are predicted to cost less than the least that iterations take to reach the recall of `params`,
/// as far as it is known before any ran. The target counts by the lists and samples that resolve() has chosen for it;
/// and where even a sample that lacks nothing does not show it, so that the lists have to settle. Sets for which three
/// iterations are not enough, as sentence embeddings at 0.9988, are not known from easier ones of the same size, as
/// descriptors at 0.999, before two iterations have said what they find (NOTEBOOK.md): a build decides again then.
/// \param prediction  of the choices for these parameters; where nothing is predicted the answer is false
bool all_pairs_cost_less(const Prediction& prediction, std::int64_t n, const BuildParams& params);

/// Says whether all pairs are compared, and what decides it: a clause for people.
/// \param choices  of resolve()
/// \param room     the memory holds what all pairs take
std::string explain(const Choices& choices, const BuildParams& params, bool gpu, bool room);

}  // namespace gnnd::detail

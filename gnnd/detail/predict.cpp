// SPDX-License-Identifier: MIT
#include "gnnd/detail/predict.h"

#include <algorithm>
#include <cmath>

#include "gnnd/detail/resolve.h"

namespace gnnd::detail {
namespace {

/// Seconds that a machine needs, for components of one kind.
struct Rates {
    std::string_view machine;  ///< whose they are
    std::string_view gpu;      ///< part of the names of GPUs that have them; empty: a thread of the CPU
    bool bytes;                ///< components are bytes; otherwise floats

    // All pairs: start, of each object, of each pair.
    double start, object, object_byte, object_neighbor;  ///< per byte of a row, per neighbour that is wanted
    double pair, pair_step;                              ///< for a pair and for each step of its rows
    double step_bytes;
    double resident_steps;    ///< rows of more of them do not stay in shared memory
    double pair_step_beyond;  ///< for all steps of these, and nothing for the pair

    // Three iterations of GNND.
    double gnnd_start;
    double gnnd_object, gnnd_byte, gnnd_place;  ///< of each object, per byte of a row, per place of its list
    double gnnd_many_samples;                   ///< so many times as long with more than kManySamples
};

constexpr int kManySamples = 32;
constexpr double kMicro = 1e-6, kNano = 1e-9, kPico = 1e-12;

/// With vectors in its memory; of bytes measured with rows of 128 and taken for floats of as many bytes beyond.
constexpr Rates of_h200(bool bytes, double pair) {
    return {.machine = "an H200",
            .gpu = "H200",
            .bytes = bytes,
            .start = 1.3e-3,
            .object = 20 * kNano,
            .object_byte = 0.075 * kNano,
            .object_neighbor = 0.7 * kNano,
            .pair = pair,
            .pair_step = 0.15 * kPico,
            .step_bytes = 128,
            .resident_steps = 5,
            .pair_step_beyond = 0.27 * kPico,
            .gnnd_start = 1.6e-3,
            .gnnd_object = 0,
            .gnnd_byte = 0.16 * kNano,
            .gnnd_place = 0.4 * kNano,
            .gnnd_many_samples = 1.4};
}

/// One thread, rows of 32 and 128 components; a step is a component.
constexpr Rates of_xeon(bool bytes, double pair, double pair_step, double gnnd_byte) {
    return {.machine = "an AVX-512 Xeon",
            .gpu = "",
            .bytes = bytes,
            .start = 0,
            .object = 0,
            .object_byte = 0,
            .object_neighbor = 0.4 * kMicro,
            .pair = pair,
            .pair_step = pair_step,
            .step_bytes = bytes ? 1.0 : 4.0,
            .resident_steps = HUGE_VAL,
            .pair_step_beyond = 0,
            .gnnd_start = 0,
            .gnnd_object = 0,
            .gnnd_byte = gnnd_byte,
            .gnnd_place = 0.85 * kMicro,
            .gnnd_many_samples = 1};
}

/// Measured (benchs/NOTEBOOK.md).
constexpr Rates kRates[] = {of_h200(false, 0.25 * kPico), of_h200(true, 0.15 * kPico),
                            of_xeon(false, 1.5 * kNano, 0.022 * kNano, 0.033 * kMicro),
                            of_xeon(true, 1.65 * kNano, 0.014 * kNano, 0.08 * kMicro)};

/// \return the rates of that GPU, or those of the first one
const Rates& rates_of_gpu(std::string_view name, bool bytes) {
    const Rates* first = nullptr;
    for (const Rates& rates : kRates) {
        if (rates.gpu.empty() || rates.bytes != bytes) continue;
        if (name.find(rates.gpu) != name.npos) return rates;
        if (first == nullptr) first = &rates;
    }
    return *first;
}

const Rates& rates_of_cpu(bool bytes) {
    return *std::find_if(std::begin(kRates), std::end(kRates),
                         [=](const Rates& rates) { return rates.gpu.empty() && rates.bytes == bytes; });
}

double seconds_of_all_pairs(const Rates& rates, const ComparedSet& set) {
    const double n = double(set.n), steps = std::ceil(double(set.row_bytes) / rates.step_bytes);
    const double of_object =
        rates.object + rates.object_byte * double(set.row_bytes) + rates.object_neighbor * double(set.k);
    const double of_pair =
        steps <= rates.resident_steps ? rates.pair + rates.pair_step * steps : rates.pair_step_beyond * steps;
    return rates.start + set.parts * n * of_object + n * (n - 1) / 2 * of_pair;
}

double seconds_of_iterations(const Rates& rates, const ComparedSet& set) {
    const double of_object =
        rates.gnnd_object + rates.gnnd_byte * double(set.row_bytes) + rates.gnnd_place * set.list_size;
    return rates.gnnd_start + double(set.n) * of_object * (set.samples > kManySamples ? rates.gnnd_many_samples : 1);
}

}  // namespace

bool is_predictable(Metric metric) {
    return visit(metric, [](auto m) { return m.is_product; });
}

Prediction predict_on_gpu(std::string_view gpu, const ComparedSet& set) {
    const Rates& rates = rates_of_gpu(gpu, set.bytes);
    Prediction prediction{seconds_of_all_pairs(rates, set), seconds_of_iterations(rates, set),
                          "rates of " + std::string(rates.machine)};
    if (gpu.find(rates.gpu) == gpu.npos) prediction.rates += ", there are none of " + std::string(gpu);
    return prediction;
}

Prediction predict_on_cpu(int threads, const ComparedSet& set) {
    const Rates& rates = rates_of_cpu(set.bytes);
    return {seconds_of_all_pairs(rates, set) / threads, seconds_of_iterations(rates, set) / threads,
            "rates of " + std::string(rates.machine) + ", " + std::to_string(threads) +
                (threads == 1 ? " thread" : " threads")};
}

std::string explain(const Choices& choices, const BuildParams& params, bool gpu, bool room) {
    if (params.recall == 1) return "all pairs, as was asked for";
    if (choices.exhaustive) return "all pairs, which cost less with so few objects";
    if (params.recall == 0) return "iterations until few entries change, as no recall was asked for";
    if (limits_work(params)) return "iterations within the limits that were set by hand, never all pairs";
    if (!room) return "iterations, as the memory does not hold what all pairs take";
    if (!gpu)
        return "iterations until the recall is there; where they settle below it all pairs, if longer lists cost more";
    if (params.deterministic)
        return "iterations until the recall is there; all pairs only where longer lists do not reach it";
    return "the build measures after its first iteration and takes all pairs if that is cheaper";
}

}  // namespace gnnd::detail

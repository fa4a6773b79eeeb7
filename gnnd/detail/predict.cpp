// SPDX-License-Identifier: MIT
#include "gnnd/detail/predict.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gnnd/detail/bound_sample.h"
#include "gnnd/detail/recall.h"
#include "gnnd/detail/resolve.h"

namespace gnnd::detail {
namespace {

/// Seconds that a machine needs, for components of one kind.
struct Rates {
    std::string_view machine;  ///< whose they are

    // All pairs: start, of each object, of each pair.
    double start, object, object_byte, object_neighbor;  ///< per byte of a row, per neighbour that is wanted
    double pair, pair_step;                              ///< for a pair and for each step of its rows
    double step_bytes;
    double resident_steps;    ///< rows of more of them do not stay in shared memory
    double pair_step_beyond;  ///< for all steps of these, and nothing for the pair

    // The same with bounds from a sample: start, of each object, and for each neighbour.
    double sampled_start;
    double sampled_object, sampled_byte;             ///< per byte of a row
    double sampled_neighbor, sampled_neighbor_byte;  ///< likewise

    // Three iterations of GNND.
    double gnnd_start;
    double gnnd_object, gnnd_byte, gnnd_place;  ///< of each object, per byte of a row, per place of its list
    double gnnd_many_samples;                   ///< so many times as long with more than kManySamples
};

constexpr int kManySamples = 32;
/// Lists settle after about six iterations, of which the later ones take less: so many times as long as after three.
constexpr double kUntilSettled = 1.5;
/// From kHighRecall on three iterations are the least, and all pairs may take so many times as long.
constexpr double kAtLeast = 1.15;
/// Seconds of a build of few objects that measures itself, which one that compares all pairs does not.
constexpr double kMeasuring = 0.7e-3;
constexpr double kMicro = 1e-6, kNano = 1e-9, kPico = 1e-12;

/// With vectors in its memory; of bytes measured with rows of 128 and taken for floats of as many bytes beyond.
constexpr Rates of_h200(double pair, double many_samples) {
    return {.machine = "an H200",
            .start = 1.3e-3,
            .object = 20 * kNano,
            .object_byte = 0.075 * kNano,
            .object_neighbor = 0.7 * kNano,
            .pair = pair,
            .pair_step = 0.15 * kPico,
            .step_bytes = 128,
            .resident_steps = 5,
            .pair_step_beyond = 0.27 * kPico,
            .sampled_start = 0.45e-3,
            .sampled_object = 8 * kNano,
            .sampled_byte = 0.027 * kNano,
            .sampled_neighbor = 0.28 * kNano,
            .sampled_neighbor_byte = 0.0004 * kNano,
            .gnnd_start = 1.6e-3,
            .gnnd_object = 0,
            .gnnd_byte = 0.16 * kNano,
            .gnnd_place = 0.4 * kNano,
            .gnnd_many_samples = many_samples};
}

/// One thread; a step is a component. Iterations' rates hold for as many samples as are chosen.
constexpr Rates of_cpu(std::string_view machine, bool bytes, double neighbor, double pair, double pair_step,
                       double gnnd_place, double gnnd_byte) {
    return {.machine = machine,
            .start = 0,
            .object = 0,
            .object_byte = 0,
            .object_neighbor = neighbor * kMicro,
            .pair = pair * kNano,
            .pair_step = pair_step * kNano,
            .step_bytes = bytes ? 1.0 : 4.0,
            .resident_steps = HUGE_VAL,
            .pair_step_beyond = 0,
            .sampled_start = 0,
            .sampled_object = 0,
            .sampled_byte = 0,
            .sampled_neighbor = 0,
            .sampled_neighbor_byte = 0,
            .gnnd_start = 0,
            .gnnd_object = 0,
            .gnnd_byte = gnnd_byte * kMicro,
            .gnnd_place = gnnd_place * kMicro,
            .gnnd_many_samples = 1};
}

/// Measured (benchs/NOTEBOOK.md): of floats, and of bytes.
constexpr Rates kGpuRates[] = {of_h200(0.25 * kPico, 2.1), of_h200(0.15 * kPico, 1.4)};

/// All pairs of codes, beside those of bytes: what an object takes, by byte, and for each neighbour, of which there are
/// more that may be one.
constexpr double kCodeByte = 0.8, kCodeNeighbor = 2.1;
/// Lists of codes: what each byte of a float16 takes once and for each neighbour, for vectors are packed, perhaps
/// projected, measured and finished.
constexpr double kPacking = 0.008 * kNano, kFinishing = 0.0006 * kNano;

/// Of one EPYC with its kernels of each instruction set, floats and bytes.
struct CpuRates {
    cpu::Isa isa;
    Rates floats, bytes;
};
constexpr std::string_view kBaseline = "an EPYC with SSE2", kAvx2 = "an EPYC with AVX2",
                           kAvx512 = "an EPYC with AVX-512", kVnni = "an EPYC with AVX-512 VNNI";
constexpr CpuRates kCpuRates[] = {{cpu::Isa::baseline, of_cpu(kBaseline, false, 0.3, 0.4, 0.067, 0.53, 0.0625),
                                   of_cpu(kBaseline, true, 0.3, 0.6, 0.02, 0.53, 0.1)},
                                  {cpu::Isa::avx2, of_cpu(kAvx2, false, 0.25, 0.5, 0.024, 0.56, 0.03),
                                   of_cpu(kAvx2, true, 0.25, 0.5, 0.0115, 0.56, 0.045)},
                                  {cpu::Isa::avx512, of_cpu(kAvx512, false, 0.15, 0.4, 0.0115, 0.425, 0.02),
                                   of_cpu(kAvx512, true, 0.15, 0.4, 0.0055, 0.425, 0.037)},
                                  {cpu::Isa::avx512vnni, of_cpu(kVnni, false, 0.27, 0.36, 0.0058, 0.4, 0.02),
                                   of_cpu(kVnni, true, 0.14, 0.27, 0.0019, 0.4, 0.022)}};

const Rates& gpu_rates(bool bytes) {
    return kGpuRates[bytes];
}
const Rates& cpu_rates(cpu::Isa isa, bool bytes) {
    const CpuRates& rates =
        *std::find_if(std::begin(kCpuRates), std::end(kCpuRates), [=](const CpuRates& r) { return r.isa == isa; });
    return bytes ? rates.bytes : rates.floats;
}

/// The GPU whose rates were measured, as it tells.
constexpr std::string_view kMeasured = "NVIDIA H200";
constexpr double kMultiprocessors = 132, kClock = 1.98e9, kBytesPerSecond = 4.9e12;

/// Products that the tensor cores of a multiprocessor can add up in a clock by mma.sync (NVIDIA's white papers of
/// GA100, GA102 and AD102), of float16 and of bytes. Hopper's, of which that instruction reaches about 62% (Luo et al.,
/// 2024), are more than the kernel gets to either way, and so are taken to be those of the data center's GPUs after it.
struct TensorCores {
    int major, minor;  ///< from this compute capability on
    double halves, bytes;
};
constexpr TensorCores kTensorCores[] = {{8, 0, 1024, 2048}, {8, 6, 512, 1024}, {9, 0, 1270, 2540}, {12, 0, 512, 1024}};

/// Of a step by mma.sync on an H200, whatever the components: rows and columns come from shared memory, of which every
/// GPU's multiprocessor reads as much in a clock. Measured with a plain kernel of that instruction (NOTEBOOK.md).
constexpr double kSharedStep = 0.45 * kPico;
/// Of what tensor cores can do the part that a sweep gets to, which is an H200's by its own instruction.
constexpr double kReached = 0.8;

double products_per_clock(const GpuTraits& gpu, bool bytes) {
    const TensorCores* cores = std::begin(kTensorCores);
    for (const TensorCores& later : kTensorCores)
        if (std::pair(later.major, later.minor) <= std::pair(gpu.major, gpu.minor)) cores = &later;
    if (bytes) return cores->bytes;
    const bool halved = gpu.name.find("GeForce") != gpu.name.npos;  // where sums are float32
    return halved ? cores->halves / 2 : cores->halves;
}

/// The H200's, as far as they depend on instructions by multiprocessors and clock, and by the memory's bandwidth where
/// rows are read in no order; iterations by the slower of both.
Rates derived(const GpuTraits& gpu, bool bytes) {
    Rates rates = gpu_rates(bytes);
    const double clock = gpu.clock > 0 ? gpu.clock : kClock, per_second = gpu.multiprocessors * clock;
    const double of_clocks = kMultiprocessors * kClock / per_second;
    const double of_memory =
        gpu.bytes_per_second > 0 ? kBytesPerSecond / gpu.bytes_per_second : kMultiprocessors / gpu.multiprocessors;
    for (double* rate : {&rates.object, &rates.object_byte, &rates.object_neighbor, &rates.sampled_object,
                         &rates.sampled_byte, &rates.sampled_neighbor, &rates.sampled_neighbor_byte})
        *rate *= of_memory;
    for (double* rate : {&rates.pair, &rates.pair_step, &rates.pair_step_beyond}) *rate *= of_clocks;
    for (double* rate : {&rates.gnnd_byte, &rates.gnnd_place}) *rate *= std::max(of_clocks, of_memory);
    if (!gpu.wgmma) {
        const double products = bytes ? rates.step_bytes : rates.step_bytes / 2;
        rates.pair_step =
            std::max(kSharedStep * of_clocks, products / (kReached * products_per_clock(gpu, bytes) * per_second));
        rates.resident_steps = HUGE_VAL;
    }
    return rates;
}

double seconds_of_pair(const Rates& rates, const ComparedSet& set) {
    const double steps = std::ceil(double(set.row_bytes) / rates.step_bytes);
    return steps <= rates.resident_steps ? rates.pair + rates.pair_step * steps : rates.pair_step_beyond * steps;
}

double seconds_of_all_pairs(const Rates& rates, const ComparedSet& set) {
    const double n = double(set.n);
    const double of_object =
        rates.object + rates.object_byte * double(set.row_bytes) + rates.object_neighbor * double(set.k);
    return rates.start + set.parts * n * of_object + n * (n - 1) / 2 * seconds_of_pair(rates, set);
}

double seconds_of_sample(const Rates& rates, const ComparedSet& set) {
    return double(set.n) * double(set.n) / sample_stride(set.k) * seconds_of_pair(rates, set);
}

double seconds_from_sample(const Rates& rates, const ComparedSet& set) {
    const double n = double(set.n), bytes = double(set.row_bytes);
    const double of_object = rates.sampled_object + rates.sampled_byte * bytes +
                             (rates.sampled_neighbor + rates.sampled_neighbor_byte * bytes) * set.k;
    return rates.sampled_start + n * of_object + n * (n - 1) / 2 * seconds_of_pair(rates, set) +
           seconds_of_sample(rates, set);
}

double seconds_of_iterations(const Rates& rates, const ComparedSet& set) {
    const bool codes = set.list_bytes != 0;
    const double bytes = double(codes ? set.list_bytes : set.row_bytes);
    const double beside = codes ? double(set.row_bytes) * (kPacking + kFinishing * set.k) : 0;
    const double of_object = rates.gnnd_object + rates.gnnd_byte * bytes + rates.gnnd_place * set.list_size + beside;
    return rates.gnnd_start + double(set.n) * of_object * (set.samples > kManySamples ? rates.gnnd_many_samples : 1);
}

}  // namespace

bool is_predictable(Metric metric) {
    return is_product(metric);
}

GpuPrediction predict_on_gpu(const GpuTraits& gpu, const ComparedSet& set) {
    const bool measured = gpu.name.starts_with(kMeasured) && gpu.wgmma &&
                          gpu.multiprocessors == kMultiprocessors;  // not so of a part of one
    const Rates rates = measured ? gpu_rates(set.bytes) : derived(gpu, set.bytes);
    double all_pairs = seconds_of_all_pairs(rates, set);
    if (set.codes) {
        Rates codes = measured ? gpu_rates(true) : derived(gpu, true);
        codes.object_byte *= kCodeByte;
        codes.object_neighbor *= kCodeNeighbor;
        ComparedSet coded = set;
        coded.row_bytes /= 2;
        all_pairs = std::min(all_pairs, seconds_of_all_pairs(codes, coded));
    }
    // Lists that all pairs are compared against take so much of the time of three iterations, and bounds that are
    // better.
    const double iterations = seconds_of_iterations(rates, set),
                 share = iterations_for_bounds(set.k) == 1 ? 0.33 : 0.75;
    const double from_sample = seconds_from_sample(rates, set);
    const bool sampled = set.from_sample && set.parts == 1 && from_sample <= all_pairs &&
                         seconds_of_sample(rates, set) <= share * iterations;
    const std::string whose = std::string(rates.machine);
    return {{sampled ? from_sample : all_pairs, iterations,
             measured ? "rates of " + whose : "rates derived from those of " + whose + " for " + gpu.name},
            sampled};
}

Prediction predict_on_cpu(int threads, const ComparedSet& set, cpu::Isa isa) {
    const Rates& rates = cpu_rates(isa, set.bytes);
    return {seconds_of_all_pairs(rates, set) / threads, seconds_of_iterations(rates, set) / threads,
            "rates of " + std::string(rates.machine) + ", " + std::to_string(threads) +
                (threads == 1 ? " thread" : " threads")};
}

ObjectCosts object_costs(ComparedSet set, Metric metric, cpu::Isa isa) {
    constexpr double kRounds = 4;  // three iterations, and the trees
    if (!is_predictable(metric)) {
        isa = isa >= cpu::Isa::avx512 ? cpu::Isa::avx2 : cpu::Isa::baseline;
        if (set.bytes) set.row_bytes *= std::int64_t(sizeof(float));
        set.bytes = false;
    }
    const Rates& rates = cpu_rates(set.bytes ? cpu::Isa::avx2 : isa, set.bytes);
    const auto n = double(set.n);
    return {seconds_of_all_pairs(rates, set) / n, seconds_of_iterations(rates, set) / n / kRounds};
}

bool all_pairs_cost_less(const Prediction& prediction, std::int64_t n, const BuildParams& params) {
    if (prediction.all_pairs == 0) return false;
    const std::int64_t objects = std::min(n, objects_to_measure(n, double(params.recall)));
    const bool shown = shows({n, objects, recall_at_of(params)}, double(params.recall), kSamplesOfGpu);
    const double least = params.recall >= kHighRecall ? kAtLeast : 1;
    return prediction.all_pairs <= prediction.iterations * (shown ? least : kUntilSettled) + kMeasuring;
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

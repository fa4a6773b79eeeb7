// SPDX-License-Identifier: MIT
#include "gnnd/detail/resolve.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "gnnd/detail/recall.h"
#include "gnnd/error.h"

namespace gnnd::detail {

bool limits_lists(const BuildParams& params) {
    return params.iterations != BuildParams{}.iterations || params.samples != 0 || params.list_size != 0;
}

bool limits_work(const BuildParams& params) {
    return limits_lists(params) || params.trees != 0;
}

ObjectRange held_apart(const Input& input) {
    const std::int64_t first = input.vectors[0].n, second = input.vectors[1].n;
    if (!input.merges() || input.across) return {};
    if (2 * second < first) return {first, second};
    return {0, 2 * first < second ? first : 0};
}

namespace {

// Chosen by measurement (benchs/NOTEBOOK.md).
/// Half as many samples take more iterations, more only more memory.
constexpr int kCpuSamples = 22, kGpuSamples = 32;
/// From kHighRecall on a GPU's lists and samples are that long.
constexpr int kHighLength = 64;
/// And from a good one on they are that long, where the memory is not bounded by hand: they find in three iterations
/// what 32 places find in seven.
constexpr float kGoodRecall = 0.985F;
constexpr int kGoodLength = 48;
/// More trees cost more than the iterations that they save.
constexpr int kCpuTrees = 6, kCpuMergeTrees = 4, kGpuTrees = 12, kGpuMergeTrees = 8;
/// Candidates that an object is offered in a batch and that fit with few losses, beside one a sample.
constexpr int kSpareCapacity = 4;
/// Up to so many objects all pairs cost less than sampling, and up to so many times the lists' length; less than
/// searching for some of them, on the CPU where the recall decides, and there otherwise.
constexpr std::int64_t kExhaustive = 1024, kLists = 2, kCpuRecallLists = 256, kCpuLists = 16;
/// Where the recall decides a build on the CPU, twice as many of at most so many places, unless rows are so short that
/// trees alone find nearly all neighbours.
constexpr std::int64_t kManyLists = 512, kManyPlaces = 64, kShortRows = 16;

std::int64_t most_for_all_pairs(const BuildParams& params, const Input& input, bool gpu) {
    const std::int64_t length = list_size_of(params);
    if (gpu || input.inserts) return std::max(kExhaustive, kLists * length);
    if (params.recall == 0 || limits_work(params)) return std::max(kExhaustive, kCpuLists * length);
    const std::int64_t some = std::max(kExhaustive, kCpuRecallLists * length);
    if (input.merges() || input.refines() || input.d() < kShortRows) return some;
    return std::max(some, kManyLists * std::min(length, kManyPlaces));
}

/// Lists are so much longer, at least, than the neighbours that count, where codes are to choose them.
constexpr double kCodedLists = 4.0 / 3;
/// From so many components on rows of codes are shorter than those of float16.
constexpr std::int64_t kLeastCoded = 17;

void check_codes(const BuildParams& params, const Input& input, bool gpu) {
    const auto refuse = [&](const std::string& where) {
        throw InvalidArgument("BuildParams::codes = " + std::string(name_of(params.codes)) + " " + where +
                              ", allowed are auto and none");
    };
    if (params.codes != Codes::int8 && params.codes != Codes::pca) return;
    if (!gpu) refuse("on the CPU");
    if (!is_product(params.metric)) refuse("under " + std::string(name_of(params.metric)));
    if (input.d() > kMaxIntegerDim) refuse("with d = " + std::to_string(input.d()));
    // Projections keep differences, where the length of a vector decides a value they do not keep it.
    if (params.codes == Codes::pca && !std::isfinite(best_value(params.metric)))
        refuse("under " + std::string(name_of(params.metric)));
}

/// \param length  of the lists
Codes codes_of(const BuildParams& params, const Input& input, bool gpu, int length) {
    const bool allowed = gpu && !is_byte(input.dtype()) && is_product(params.metric) && input.d() <= kMaxIntegerDim &&
                         !input.merges() && !input.refines();
    if (!allowed || params.codes != Codes::automatic) return allowed ? params.codes : Codes::none;
    // Of values without a best one codes cannot tell whether they are coarse.
    const bool pays = params.recall > 0 && kCodedLists * recall_at_of(params) <= length &&
                      std::isfinite(best_value(params.metric)) && grows_trees(params.init) && input.d() >= kLeastCoded;
    return pays ? Codes::automatic : Codes::none;
}

}  // namespace

Choices resolve(const BuildParams& params, const Input& input, const Device& device) {
    const bool gpu = device.kind == Device::Kind::cuda;
    check_codes(params, input, gpu);
    Choices choices;
    const int length = list_size_of(params);
    choices.exhaustive = input.exact || params.recall == 1 || input.n() <= most_for_all_pairs(params, input, gpu);
    if (choices.exhaustive || input.inserts) return choices;
    if (gpu && params.samples > kMaxGpuSamples)
        throw InvalidArgument("BuildParams::samples = " + std::to_string(params.samples) +
                              ", on a GPU allowed are 1 to " + std::to_string(kMaxGpuSamples));
    const bool high = gpu && params.recall >= kHighRecall;
    const bool good = gpu && params.recall >= kGoodRecall && params.device_memory == 0;
    const bool is_open = params.list_size == 0 && !input.merges();
    choices.list_size = is_open ? std::max(length, high ? kHighLength : good ? kGoodLength : 0) : length;
    const int samples = high ? kHighLength : gpu ? kGpuSamples : kCpuSamples;
    choices.samples = params.samples != 0 ? params.samples : std::min(choices.list_size, samples);
    if (!input.refines() && grows_trees(params.init))
        choices.trees = params.trees != 0 ? params.trees
                        : input.merges()  ? (gpu ? kGpuMergeTrees : kCpuMergeTrees)
                                          : (gpu ? kGpuTrees : kCpuTrees);
    choices.codes = codes_of(params, input, gpu, choices.list_size);
    choices.capacity = gpu ? choices.samples + kSpareCapacity : 0;
    return choices;
}

}  // namespace gnnd::detail

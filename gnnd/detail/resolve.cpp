// SPDX-License-Identifier: MIT
#include "gnnd/detail/resolve.h"

#include <algorithm>
#include <string>

#include "gnnd/error.h"

namespace gnnd::detail {
namespace {

// Chosen by measurement (benchs/NOTEBOOK.md).
/// Half as many samples take more iterations, more only more memory.
constexpr int kCpuSamples = 22, kGpuSamples = 32;
/// More trees cost more than the iterations that they save.
constexpr int kCpuTrees = 6, kGpuTrees = 10, kGpuMergeTrees = 8;
/// Candidates that an object is offered in a batch and that fit with few losses, beside one a sample.
constexpr int kSpareCapacity = 4;
/// Up to so many objects all pairs cost less than sampling, and up to so many times the lists' length.
constexpr std::int64_t kExhaustive = 1024, kExhaustiveLists = 2;

}  // namespace

Choices resolve(const BuildParams& params, const Input& input, const Device& device) {
    const bool gpu = device.kind == Device::Kind::cuda;
    Choices choices;
    const int length = list_size_of(params);
    choices.exhaustive = input.exact || input.n() <= std::max(kExhaustive, kExhaustiveLists * length);
    if (choices.exhaustive || input.inserts) return choices;
    if (gpu && params.samples > kMaxGpuSamples)
        throw InvalidArgument("BuildParams::samples = " + std::to_string(params.samples) +
                              ", on a GPU allowed are 1 to " + std::to_string(kMaxGpuSamples));
    choices.list_size = length;
    choices.samples = params.samples != 0 ? params.samples : std::min(length, gpu ? kGpuSamples : kCpuSamples);
    if (!input.refines() && grows_trees(params.init))
        choices.trees = params.trees != 0 ? params.trees
                        : !gpu            ? kCpuTrees
                        : input.merges()  ? kGpuMergeTrees
                                          : kGpuTrees;
    choices.capacity = gpu ? choices.samples + kSpareCapacity : 0;
    return choices;
}

}  // namespace gnnd::detail

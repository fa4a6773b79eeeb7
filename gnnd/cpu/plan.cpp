// SPDX-License-Identifier: MIT
// Memory of a run on the CPU, as build.cpp and the steps take it.
#include <unistd.h>

#include <algorithm>

#include "gnnd/cpu/backend.h"
#include "gnnd/cpu/codes.h"
#include "gnnd/cpu/insert.h"
#include "gnnd/cpu/pack.h"
#include "gnnd/cpu/steps.h"
#include "gnnd/detail/insert.h"
#include "gnnd/detail/predict.h"

namespace gnnd::cpu {

namespace {

/// Codes of the objects, and what threads compare them with.
std::size_t bytes_of_sieve(const detail::Input& input, Metric metric, std::size_t threads) {
    if (!CodedRows::pay(metric, input.dtype(), input.d())) return 0;
    const bool normalized = is_normalized(metric);
    return CodedRows::bytes(input.n(), input.d(), normalized) +
           threads * (Block::bytes(kTile, kTile, normalized) + PairBlock::bytes(kPairsAtOnce));
}

}  // namespace

MemoryPlan plan(const detail::Input& input, const BuildParams& params, const Choices& choices) {
    const auto n = std::size_t(input.n()), d = std::size_t(input.d());
    const auto threads = std::size_t(Team::resolve(params.threads));
    const bool normalized = is_normalized(params.metric);
    const auto blocks = [&](int rows, int columns) { return threads * Block::bytes(rows, columns, normalized); };

    std::size_t held = normalized ? n * sizeof(float) : 0, peak = 0;
    if (!input.adjoining())
        held += n * d * size_of(input.dtype());
    else if (may_pack(input, params.metric))
        held += n * d;
    const auto reach = [&](std::size_t more) { peak = std::max(peak, held + more); };
    if (normalized) reach(threads * d * sizeof(float));

    if (choices.exhaustive) {
        held += Lists::bytes(input.n(), params.k) + n * sizeof(std::int32_t);
        reach(blocks(kTile, kTile) + bytes_of_sieve(input, params.metric, threads));
    } else if (input.inserts) {
        const std::int64_t old = input.vectors[0].n;
        if (detail::links_back(old, input.vectors[1].n)) held += std::size_t(old) * detail::kBackLinks * 4;
        held += blocks(1, detail::kBranches);
        reach(blocks(kQueries, kColumns));
    } else {  // with lists as they are at first
        held += Lists::bytes(input.n(), choices.list_size) + n * sizeof(std::int32_t);
        const std::size_t trees = std::size_t(std::min(choices.trees, kTreesAtOnce)) * n * kTreeBytes;
        reach(trees != 0 ? trees + blocks(kLeaf, kLeaf) : blocks(1, std::max(choices.list_size, 1)));
        const std::size_t measuring = params.recall > 0 ? blocks(kQueries, kColumns) : 0;
        reach(Samples::bytes(input.n(), choices.samples) + blocks(2 * choices.samples, 4 * choices.samples) +
              measuring);
    }
    MemoryPlan plan;
    plan.choices = choices;
    plan.why = detail::explain(choices, params, false, true);
    if (detail::is_predictable(params.metric)) {
        const bool bytes = is_byte(input.dtype());
        plan.predicted = detail::predict_on_cpu(
            int(threads), {.n = input.n(),
                           .row_bytes = input.d() * (bytes ? 1 : 4),
                           .bytes = bytes,
                           .k = params.k,
                           .list_size = std::max(choices.list_size, detail::list_size_of(params))});
    }
    plan.graph = n * std::size_t(params.k) * (sizeof(std::int32_t) + sizeof(float));
    plan.work = peak;
    plan.free = std::size_t(sysconf(_SC_AVPHYS_PAGES)) * std::size_t(sysconf(_SC_PAGESIZE));
    return plan;
}

}  // namespace gnnd::cpu

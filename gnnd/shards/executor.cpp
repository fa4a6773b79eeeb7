// SPDX-License-Identifier: MIT
#include "gnnd/shards/executor.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "gnnd/detail/checks.h"
#include "gnnd/detail/run.h"
#include "gnnd/shards/cuda/executor.h"

namespace gnnd::shards {

void compare_sample(const Store& store, int shard, const VectorView& vectors, const BuildParams& params,
                    const Callbacks& callbacks, Resources& resources) {
    RecallSample* const recall = store.recall();
    if (recall == nullptr || recall->compared_with(shard)) return;
    const auto start = std::chrono::steady_clock::now();
    const KnnGraph nearest = detail::nearest_of(vectors, recall->vectors(), recall->numbers_in(shard).data(),
                                                recall->at(), params, callbacks, resources);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    recall->take_nearest(shard, nearest, took.count());
}

BuildStats HostExecutor::build(int shard, const Callbacks& callbacks) {
    const PinnedVectors vectors = store_.vectors(shard);
    const PinnedGraph built = store_.new_graph(shard);
    BuildStats stats;
    if (built.n == 1) {  // which build() refuses
        std::fill_n(built.ids(), built.k, -1);
        std::fill_n(built.distances(), built.k, worst_value(built.metric));
    } else {
        stats = build_graph(vectors.view, built.ids(), built.distances(), callbacks);
    }
    store_.split_build(shard, built);
    compare_sample(store_, shard, vectors.view, params_, callbacks, detail::or_heap(nullptr));
    return stats;
}

BuildStats HostExecutor::merge(const Task& pair, const Callbacks& callbacks) {
    const PinnedVectors first = store_.vectors(pair.first), second = store_.vectors(pair.second);
    const PinnedGraph first_local = store_.local(pair.first), second_local = store_.local(pair.second);
    auto result = std::make_shared<PinnedGraph>(store_.scratch(first.view.n + second.view.n));
    const BuildStats stats = merge_graphs({first.view, first_local.view()}, {second.view, second_local.view()},
                                          result->ids(), result->distances(), callbacks);
    compare_sample(store_, pair.first, first.view, params_, callbacks, detail::or_heap(nullptr));
    compare_sample(store_, pair.second, second.view, params_, callbacks, detail::or_heap(nullptr));
    folding_.wait();  // for no more than two results are there at a time
    folding_.start(counted([this, pair, result = std::move(result)]() mutable {
        store_.fold_pair(pair, result->view());
        result.reset();
    }));
    if (!overlap_) folding_.wait();
    return stats;
}

void HostExecutor::measure(int shard, const Callbacks& callbacks) {
    compare_sample(store_, shard, store_.vectors(shard).view, params_, callbacks, detail::or_heap(nullptr));
}

/// One shard at most, for more there may be no room. It has a local graph if it is to be merged, since builds stand
/// directly before the merge that needs them.
std::shared_ptr<const void> HostExecutor::prepare(const Task& present, const Task& next) {
    for (const int shard : {next.first, next.second}) {
        if (present.uses(shard)) continue;
        auto inputs = std::make_shared<Inputs>();
        inputs->vectors.push_back(store_.vectors(shard));
        if (next.kind == Task::Kind::merge) inputs->locals.push_back(store_.local(shard));
        return inputs;
    }
    return nullptr;
}

BuildStats HostExecutor::build_graph(const VectorView& vectors, std::int32_t* ids, float* distances,
                                     const Callbacks& callbacks) {
    return run({{vectors}, {}}, params_, ids, distances, callbacks);
}

BuildStats HostExecutor::merge_graphs(const Side& a, const Side& b, std::int32_t* ids, float* distances,
                                      const Callbacks& callbacks) {
    detail::Input pair{{a.vectors, b.vectors}, {a.local, b.local}};
    pair.across = true;  // the shards' own lists have seen what is inside of each
    return run(pair, merge_params(params_), ids, distances, callbacks);
}

/// Arguments were checked when the build in shards began.
BuildStats HostExecutor::run(const detail::Input& input, const BuildParams& params, std::int32_t* ids, float* distances,
                             const Callbacks& callbacks) const {
    return detail::run_checked(input, params, callbacks, detail::or_heap(nullptr), ids, distances);
}

bool has_room(const Manifest& manifest, const BuildParams& params, const ExecutorOptions& options) {
    return params.device.kind == Device::Kind::cpu || cuda::has_room(manifest, params, options);
}

std::unique_ptr<Executor> make_executor(Store& store, const BuildParams& params, const ExecutorOptions& options) {
    if (params.device.kind == Device::Kind::cuda)
        if (auto executor = cuda::make_executor(store, params, options)) return executor;
    return std::make_unique<HostExecutor>(store, params, options);
}

}  // namespace gnnd::shards

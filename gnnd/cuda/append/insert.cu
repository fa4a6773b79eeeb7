// SPDX-License-Identifier: MIT
// append() by searching on the GPU: the batches, see detail/insert.h.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "gnnd/cuda/append/exchange.cuh"
#include "gnnd/cuda/append/insert.h"
#include "gnnd/cuda/append/plan.h"
#include "gnnd/cuda/append/raise_recall.h"
#include "gnnd/cuda/append/rows.cuh"
#include "gnnd/cuda/append/search.cuh"
#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/device/launch.cuh"
#include "gnnd/cuda/memory/memory.h"
#include "gnnd/cuda/memory/transfer.h"
#include "gnnd/cuda/runtime/wait.h"
#include "gnnd/cuda/space/bad_row.h"
#include "gnnd/detail/report.h"
#include "gnnd/error.h"

namespace gnnd::cuda {
namespace {

constexpr int kThreads = kInsertWarps * kWarp;

/// The part of a batch that the host reads.
struct InsertRecord {
    InsertCounters counters;
    SpaceInfo info;
};

/// True if kernels read the vectors where they lie.
bool read_in_place(const VectorView& vectors) {
    return on_device(vectors.data) && vectors.row_bytes() <= std::int64_t(~u32(0));  // Sets::stride
}

class Insertion {
  public:
    Insertion(const detail::Input& input, const BuildParams& params, const AppendPlan& plan, Resources& resources,
              std::byte* kept, std::byte* memory, std::int32_t* ids, float* distances, cudaStream_t stream)
        : input_(input), params_(params), plan_(plan), resources_(resources), memory_(memory), stream_(stream) {
        const std::int64_t row = input.d() * std::int64_t(size_of(input.dtype()));
        sets_ = {{}, {}, u32(input.vectors[0].n), input.d(), row % 16 == 0};
        for (int set = 0; set < 2; ++set) {
            const VectorView& vectors = input.vectors[set];
            const Part& copy = plan.vectors[set];  // empty where they are read in place
            const RawVectors raw = upload({{vectors}, {}}, copy.bytes == 0, kept + copy.offset, resources, stream);
            sets_.data[set] = raw.data - (set == 0 ? 0 : input.vectors[0].n) * raw.stride;
            sets_.stride[set] = u32(raw.stride);
            sets_.whole &= reinterpret_cast<std::uintptr_t>(raw.data) % 16 == 0 && raw.stride % 16 == 0;
        }
        rows_ = {ids, distances, params.k, is_similarity(params.metric)};
        if (plan.back.bytes != 0) back_ = {at<std::int32_t>(plan.back), at<float>(plan.reach), sets_.second};
        load_graph();
        link_back();
    }

    /// Inserts the objects [begin, begin + count) of the second set.
    void insert(std::int64_t begin, std::int64_t count) {
        const auto known = u32(input_.vectors[0].n + begin);
        const Pivots pivots{u32(std::min(input_.vectors[0].n, kInsertPivots)), known,
                            mix(u32(params_.seed) ^ mix(u32(params_.seed >> 32) + known))};
        const Quota starts = quota_for(pivots.count, kStarts), peers = quota_for(count, kPeers);
        const Batch batch{.first = known,
                          .count = u32(count),
                          .starts = at<u32>(plan_.starts),
                          .peers = at<u32>(plan_.peers),
                          .start_count = starts.all,
                          .peer_count = peers.all,
                          .length = plan_.length,
                          .met = at<u64>(plan_.met),
                          .offers_each = plan_.offers_each,
                          .offer_numbers = at<u32>(plan_.offer_numbers),
                          .counts = at<u32>(plan_.counts),
                          .offsets = at<u64>(plan_.offsets),
                          .offers = at<u64>(plan_.offers)};
        GNND_CUDA(cudaMemsetAsync(counters(), 0, sizeof(InsertCounters), stream_));
        compare_all(batch, pivots, starts.of_group, peers.of_group);
        search(batch);
        exchange(batch);
    }

    /// The work of the last batch, once the stream is done.
    const InsertRecord& record() { return record_[0]; }
    void fetch_record() {
        GNND_CUDA(
            cudaMemcpyAsync(&record_[0].counters, counters(), sizeof(InsertCounters), cudaMemcpyDeviceToHost, stream_));
        GNND_CUDA(cudaMemcpyAsync(&record_[0].info, info(), sizeof(SpaceInfo), cudaMemcpyDeviceToHost, stream_));
    }

    void fill() {
        const std::int64_t n = input_.n();
        const int wanted = int(std::min<std::int64_t>(params_.k, n - 1));
        visit_both([&]<class T, class M>(T, M) {
            launch("fill", fill_kernel<T, M>, blocks_for(n, kThreads), kThreads,
                   kInsertWarps * SortedList::bytes(params_.k), stream_, sets_, rows_, n, wanted,
                   mix(u32(params_.seed)));
        });
    }

  private:
    template <class T>
    T* at(const Part& part) const {
        return reinterpret_cast<T*>(memory_ + part.offset);
    }
    SpaceInfo* info() const { return at<SpaceInfo>(plan_.small); }
    InsertCounters* counters() const { return reinterpret_cast<InsertCounters*>(at<std::byte>(plan_.small) + 256); }

    template <class F>
    void visit_both(const F& f) const {
        visit_dtype(input_.dtype(), [&](auto component) { visit(params_.metric, [&](auto m) { f(component, m); }); });
    }

    void load_graph() {
        const KnnGraphView& graph = input_.graphs[0];
        const std::int64_t kept = std::min<std::int64_t>(graph.k, params_.k);
        Columns columns{graph.ids, graph.distances, graph.n, graph.k, 0, kept, 0};
        if (!on_device(graph.ids)) {
            auto* ids = kept == params_.k ? rows_.ids : at<std::int32_t>(plan_.given);
            auto* distances = kept == params_.k ? rows_.distances : reinterpret_cast<float*>(ids + graph.n * kept);
            const std::size_t row = std::size_t(kept) * 4, stride = std::size_t(graph.k) * 4;
            copy_in(ids, graph.ids, graph.n, row, stride, resources_, stream_);
            copy_in(distances, graph.distances, graph.n, row, stride, resources_, stream_);
            columns = {ids, distances, graph.n, kept, 0, kept, 0};
        }
        load_rows_kernel<<<blocks_for(graph.n, kInsertWarps), kThreads, 0, stream_>>>(columns, rows_, back_);
        GNND_LAUNCHED("load_rows_kernel");
    }

    void link_back() {
        if (back_.n == 0) return;
        GNND_CUDA(cudaMemsetAsync(back_.ids, 0xff, plan_.back.bytes, stream_));
        constexpr int kRows = kInsertWarps * kWarp / detail::kLinkedColumns;
        link_back_kernel<<<blocks_for(back_.n, kRows), kThreads, 0, stream_>>>(rows_, back_);
        GNND_LAUNCHED("link_back_kernel");
    }

    /// Step 1 of detail/insert.h; checks the vectors, too.
    void compare_all(const Batch& batch, const Pivots& pivots, int starts, int peers) {
        const std::int64_t d = input_.d(), all = std::int64_t(batch.count) + pivots.count;
        const RawVectors gathered{at<std::byte>(plan_.gathered), all, d, d * std::int64_t(size_of(input_.dtype())),
                                  input_.dtype()};
        u32* objects = at<u32>(plan_.objects);
        visit_dtype(input_.dtype(), [&](auto component) {
            using T = decltype(component);
            gather_kernel<T><<<blocks_for(all, kInsertWarps), kThreads, 0, stream_>>>(sets_, batch, pivots, objects,
                                                                                      at<T>(plan_.gathered));
            GNND_LAUNCHED("gather_kernel");
        });
        std::uint8_t* rows = plan_.sample.vectors_in_place ? nullptr : at<std::uint8_t>(plan_.rows);
        u32* bias = at<u32>(plan_.bias);
        prepare_space(gathered, params_.metric, plan_.sample, rows, bias, at<float>(plan_.mean), info(), stream_);
        const Points points = points_of(gathered, params_.metric, plan_.sample, rows, bias);
        const Engine& engine = engine_for(plan_.sample.packed, params_.metric);
        engine.find_nearest(points,
                            {.first_row = 0,
                             .rows = batch.count,
                             .first_column = batch.count,
                             .columns = pivots.count,
                             .objects = objects,
                             .take = starts,
                             .nearest = at<u32>(plan_.starts)},
                            stream_);
        engine.find_nearest(points,
                            {.first_row = 0,
                             .rows = batch.count,
                             .first_column = 0,
                             .columns = batch.count,
                             .objects = objects,
                             .take = peers,
                             .nearest = at<u32>(plan_.peers)},
                            stream_);
    }

    /// Step 2.
    void search(const Batch& batch) {
        const int beam = detail::beam_for(input_.vectors[0].n, input_.vectors[1].n);
        visit_both([&]<class T, class M>(T, M) {
            launch("search", search_kernel<T, M>, blocks_for(batch.count, kSearchWarps), kSearchWarps * kWarp,
                   kSearchWarps * search_bytes(batch.length), stream_, sets_, rows_, back_, batch, beam, counters());
        });
    }

    /// Step 3.
    void exchange(const Batch& batch) {
        const unsigned blocks = blocks_for(std::int64_t(batch.count) * batch.offers_each, kOfferThreads);
        const std::int64_t known = std::int64_t(batch.first) + batch.count;
        GNND_CUDA(cudaMemsetAsync(batch.counts, 0, plan_.counts.bytes, stream_));
        offer_kernel<<<blocks, kOfferThreads, 0, stream_>>>(rows_, batch, counters());
        GNND_LAUNCHED("offer_kernel");
        allocate_offsets(batch.counts, batch.offsets, known, nullptr, stream_);
        scatter_offers_kernel<<<blocks, kOfferThreads, 0, stream_>>>(batch);
        GNND_LAUNCHED("scatter_offers_kernel");
        launch("take_in", take_in_kernel, blocks_for(known, kInsertWarps * kRowsToTakeIn), kThreads,
               kInsertWarps * SortedList::bytes(params_.k), stream_, rows_, batch, counters());
    }

    const detail::Input& input_;
    const BuildParams& params_;
    const AppendPlan& plan_;
    Resources& resources_;
    std::byte* memory_;
    cudaStream_t stream_;
    Sets sets_{};
    Rows rows_{};
    BackLinks back_{};
    PinnedArray<InsertRecord, 1> record_;
    Drain drain_{stream_};  // the last member: copies into the page-locked one end first
};

/// Batch after batch.
void insert_all(Insertion& insertion, const detail::Input& input, std::int64_t at_once, const BuildParams& params,
                const Callbacks& callbacks, cudaStream_t stream, BuildStats& stats) {
    const VectorView& added = input.vectors[1];
    for (std::int64_t begin = 0; begin < added.n; begin += at_once) {
        const auto start = std::chrono::steady_clock::now();
        const std::int64_t count = std::min(at_once, added.n - begin);
        insertion.insert(begin, count);
        if (begin + count == added.n) insertion.fill();
        insertion.fetch_record();
        await(stream, callbacks);
        GNND_CUDA(cudaStreamSynchronize(stream));
        const auto& [counters, info] = insertion.record();
        if (info.first_bad < u64(count)) {
            const std::int64_t row = begin + std::int64_t(info.first_bad);
            throw_bad_row("append: of the added vectors: ", added, row, row, params.metric);
        }
        IterationStats here;
        here.iteration = int(begin / at_once);
        here.objects = count;
        here.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        here.phi = counters.phi;
        here.changed = std::int64_t(counters.entries);
        here.offered = std::int64_t(counters.offered);
        here.accepted = std::int64_t(counters.accepted);
        here.distances =
            std::int64_t(counters.distances) + count * (count - 1 + std::min(input.vectors[0].n, kInsertPivots));
        detail::report(here, stats, callbacks);
    }
}

}  // namespace

void insert(const detail::Input& input, const BuildParams& params, const Callbacks& callbacks, Resources& resources,
            std::int32_t* ids, float* distances, BuildStats& stats) {
    const OwnedStream stream(resources);
    const bool measures = params.recall > 0;
    InsertInPlace in_place{{read_in_place(input.vectors[0]), read_in_place(input.vectors[1])},
                           on_device(input.graphs[0].ids),
                           on_device(ids)};
    // The objects of one set are measured, so both lie in one array.
    const bool adjoin = in_place.vectors[0] && in_place.vectors[1] && input.adjoining();
    if (measures && !adjoin) in_place.vectors[0] = in_place.vectors[1] = false;
    VectorView all{nullptr, input.n(), input.d(), input.dtype(), 0};
    if (adjoin) {
        all = input.vectors[0];
        all.n = input.n();
    }
    const AppendPlan plan = make_append_plan(
        input, in_place, params, measures ? bytes_of_measuring(all, input.measured_as_inserted(), params) : 0,
        resources.free_device_memory());
    const DeviceMemory kept(resources, plan.kept, stream);
    const Drain drain(stream);
    auto* device_ids = in_place.result ? ids : reinterpret_cast<std::int32_t*>(kept.data() + plan.graph_ids.offset);
    auto* device_distances =
        in_place.result ? distances : reinterpret_cast<float*>(kept.data() + plan.graph_distances.offset);
    {
        const DeviceMemory memory(resources, plan.work, stream);
        Insertion insertion(input, params, plan, resources, kept.data(), memory.data(), device_ids, device_distances,
                            stream);
        insert_all(insertion, input, plan.batch, params, callbacks, stream, stats);
    }
    stats.stop = StopReason::searched;
    stats.peak_work_bytes = std::int64_t(plan.work_bytes());
    if (measures) {
        if (!adjoin) all.data = kept.data() + plan.vectors[0].offset;
        const detail::Input whole{{all}, {{all.n, params.k, params.metric, device_ids, device_distances}}};
        raise_recall(whole, input.measured_as_inserted(), device_ids, device_distances, plan.kept, params, callbacks,
                     resources, stream, stats);
    }
    if (!in_place.result)
        copy_graph_out(ids, distances, device_ids, device_distances, input.n() * params.k, resources, stream);
    GNND_CUDA(cudaStreamSynchronize(stream));
}

}  // namespace gnnd::cuda

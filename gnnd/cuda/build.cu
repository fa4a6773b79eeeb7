// GNND and GGM on the GPU: the loop.
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "gnnd/cpu/backend.h"
#include "gnnd/cuda/algorithm.h"
#include "gnnd/cuda/append/insert.h"
#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/init.cuh"
#include "gnnd/cuda/memory/memory.h"
#include "gnnd/cuda/memory/transfer.h"
#include "gnnd/detail/checks.h"
#include "gnnd/detail/report.h"
#include "gnnd/error.h"

namespace gnnd::cuda {
namespace {

/// Neighbours that an object takes from each of its leaves.
constexpr int kPerLeaf = 8;
/// Iterations are split into batches with a merge after each, so that candidates find room. How many the first ones
/// need was measured: the first finds least, the second most; a merge that starts from trees finds little enough.
constexpr int kBatchedIterations = 3;
constexpr int kBatches[kBatchedIterations] = {1, 3, 2};
/// Iterations that the host is ahead of the device. One keeps it busy; after the last, each is launched for nothing.
constexpr int kAhead = 1;

/// Everything of a build that stays on the device.
struct State {
    std::int64_t n;
    const detail::Input& input;
    const BuildParams& params;
    const Choices& choices;
    const Plan& plan;
    Resources& resources;
    std::byte* memory;
    cudaStream_t stream;
    const Engine& engine;
    RawVectors raw;
    Points points, dividing;
    Lists lists;
    Samples samples;
    Variant variant;
    u32 *keys[2], *order[2];
    u32* visit;  ///< the order of the last tree; null without trees
    void* sort_work;
    Control* control;
    Counters* counters;
    Record* records;  // kAhead + 1
    SpaceInfo* info;

    u32 seed_of(u32 purpose) const { return mix(u32(params.seed) ^ mix(u32(params.seed >> 32) + purpose)); }
    void merge_candidates() { merge(lists, variant.candidates, n, control, counters, stream); }
};

int bits_for(std::uint64_t values) {
    int bits = 1;
    while (values > std::uint64_t(1) << bits) ++bits;
    return bits;
}

/// Orders all objects so that those of a leaf stand together: a random-projection tree, level by level.
void grow_tree(State& state, u32 seed) {
    const std::int64_t leaf = state.engine.leaf(state.points);
    number(state.order[0], state.n, state.stream);
    for (std::int64_t node = state.n, level = 0; node > leaf; ++level) {
        const int pivots = int(std::min<std::int64_t>(kMaxPivots, (node + kBlockRows - 1) / kBlockRows));
        const std::int64_t nodes = (state.n + node - 1) / node;
        dividing_engine_for(state.plan.cell)
            .divide(state.dividing, state.order[0], node, pivots, mix(seed + u32(level)), state.keys[0], state.stream);
        sort(state.keys, state.order, state.n, bits_for(std::uint64_t(nodes) * pivots), state.sort_work,
             state.plan.sort.bytes, state.stream);
        const std::int64_t smaller = node / pivots;
        node = std::max(leaf, (smaller + leaf - 1) / leaf * leaf);
    }
}

/// Columns [begin, end) of one of the two graphs of a merge: where they lie, or copied to the part of the work memory.
Columns columns_of(const State& state, int set, std::int64_t begin, std::int64_t end, const Part& part) {
    const KnnGraphView& graph = state.input.graphs[set];
    const u32 first = set == 0 ? 0 : u32(state.input.graphs[0].n);
    if (on_device(graph.ids)) return {graph.ids, graph.distances, graph.n, graph.k, begin, end, first};
    auto* ids = reinterpret_cast<std::int32_t*>(state.memory + part.offset);
    auto* distances = reinterpret_cast<float*>(ids + graph.n * (end - begin));
    const std::size_t row = std::size_t(end - begin) * 4, stride = std::size_t(graph.k) * 4;
    if (row != 0) {
        copy_in(ids, graph.ids + begin, graph.n, row, stride, state.resources, state.stream);
        copy_in(distances, graph.distances + begin, graph.n, row, stride, state.resources, state.stream);
    }
    return {ids, distances, graph.n, end - begin, 0, end - begin, first};
}

/// Before step 1 of a merge: what stays in the lists.
void adopt_both(const State& state) {
    for (int set = 0; set < 2; ++set) {
        const std::int64_t kept = detail::kept_columns(state.input.graphs[set], state.params);
        adopt(columns_of(state, set, 0, kept, state.plan.given[set]), state.lists, state.info, state.stream);
    }
}

/// Step 1.
void initialize(State& state) {
    clear(state.lists, state.variant.candidates, state.n, state.stream);
    if (state.input.merges()) adopt_both(state);
    const int room = state.plan.capacity;
    if (!state.input.refines() && grows_trees(state.params.init)) {
        const int trees = state.choices.trees, take = std::min(kPerLeaf, room);
        int at = 0;
        for (int tree = 0; tree < trees; ++tree) {
            grow_tree(state, state.seed_of(0x10000u + u32(tree)));
            state.engine.meet(state.points, state.order[0], state.variant.candidates, at, take, state.stream);
            at += take;
            if (at + take > room || tree + 1 == trees) {
                state.merge_candidates();
                at = 0;
            }
        }
        GNND_CUDA(cudaMemcpyAsync(state.visit, state.order[0], std::size_t(state.n) * sizeof(u32),
                                  cudaMemcpyDeviceToDevice, state.stream));
        return;
    }
    state.visit = nullptr;
    const KnnGraphView& graph = state.input.graphs[0];
    const std::int32_t* ids = nullptr;
    int width = state.input.merges() ? state.plan.length / 2 : state.plan.samples;
    if (state.input.refines()) {
        width = int(graph.k);
        ids = graph.ids;
        if (!on_device(ids)) {
            auto* copy = reinterpret_cast<std::int32_t*>(state.memory + state.plan.given[0].offset);
            const std::size_t row = std::size_t(width) * sizeof(std::int32_t);
            copy_in(copy, ids, state.n, row, row, state.resources, state.stream);
            ids = copy;
        }
    }
    for (int first = 0; first < width; first += room) {
        state.engine.seed(state.points, state.variant.candidates, ids, width, first, std::min(room, width - first),
                          state.seed_of(0x20000u + u32(first)), state.params.deterministic, state.stream);
        state.merge_candidates();
    }
}

/// Steps 2 to 4.
void iterate(State& state, int iteration) {
    const u32 salt = state.variant.filter.salt = state.seed_of(u32(iteration));
    sample(state.lists, state.samples, state.variant.filter, salt, state.points.pairs, state.visit, state.n,
           state.control, state.stream);
    const bool append = state.variant.update == Update::automatic;  // the others update lists at once
    const bool less = state.input.merges() && grows_trees(state.params.init);
    const int first_ones = iteration <= kBatchedIterations && !less ? kBatches[iteration - 1] : 1;
    const int batches = append ? state.plan.batches * first_ones : 1;
    for (int batch = 0; batch < batches; ++batch) {
        state.engine.cross_match(state.points, state.samples, state.lists, state.variant, state.visit, batch, batches,
                                 state.control, state.counters, state.stream);
        if (append) state.merge_candidates();
    }
}

/// Runs the iterations: the host stays kAhead of the device and reads what it recorded in the meantime.
class Loop {
  public:
    Loop(State& state, const Callbacks& callbacks, BuildStats& stats)
        : state_(state), callbacks_(callbacks), stats_(stats) {}

    void run() {
        const double enough = detail::convergence_threshold(state_.params, state_.input);
        GNND_CUDA(cudaMemcpyAsync(&info_[0], state_.info, sizeof(SpaceInfo), cudaMemcpyDeviceToHost, state_.stream));
        initialize(state_);
        // Cross-matches read all places of an object before they know how many of them hold samples.
        GNND_CUDA(cudaMemsetAsync(state_.samples.ids, 0, state_.plan.sample_ids.bytes, state_.stream));
        if (state_.variant.locks != nullptr)
            GNND_CUDA(cudaMemsetAsync(state_.variant.locks, 0, state_.plan.locks.bytes, state_.stream));
        if (state_.plan.segments > 1) split(state_.lists, state_.plan.segments, state_.n, state_.stream);
        submit(0, 0);
        int iteration = 0;
        while (iteration < state_.params.iterations && !stopped_) {
            iterate(state_, ++iteration);
            submit(iteration, enough);
            if (iteration >= kAhead) await(iteration - kAhead);
        }
        for (int last = std::max(0, iteration - kAhead + 1); last <= iteration && !stopped_; ++last) await(last);
        stats_.stop = stopped_ ? StopReason::converged : StopReason::iterations;
    }

  private:
    void submit(int iteration, double enough) {
        const int slot = iteration % (kAhead + 1);
        Record* record = state_.records + slot;
        review(state_.lists, state_.params.k, state_.n, iteration, enough, state_.info, state_.control, state_.counters,
               record, state_.stream);
        GNND_CUDA(cudaMemcpyAsync(&records_[slot], record, sizeof(Record), cudaMemcpyDeviceToHost, state_.stream));
        GNND_CUDA(cudaEventRecord(events_[slot], state_.stream));
    }

    void await(int iteration) {
        const int slot = iteration % (kAhead + 1);
        while (callbacks_.interrupt) {
            const cudaError_t state = cudaEventQuery(events_[slot]);
            if (callbacks_.interrupt()) throw Interrupted("interrupted in iteration " + std::to_string(iteration));
            if (state == cudaSuccess) break;
            if (state != cudaErrorNotReady) check(state, "cudaEventQuery", __FILE__, __LINE__);
            std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
        GNND_CUDA(cudaEventSynchronize(events_[slot]));
        if (iteration == 0 && info_[0].first_bad != ~0ull) throw_bad_row(std::int64_t(info_[0].first_bad));
        const Record& record = records_[slot];
        IterationStats here;
        here.iteration = iteration;
        here.objects = state_.n;
        here.seconds = iteration == 0 ? seconds_since_start() : double(record.nanoseconds - last_) * 1e-9;
        here.phi = record.sum.phi;
        here.changed = std::int64_t(record.sum.fresh);
        here.offered = std::int64_t(record.sum.offered);
        here.accepted = std::int64_t(record.sum.accepted);
        here.distances = std::int64_t(record.sum.distances);
        last_ = record.nanoseconds;
        stopped_ = record.stopped;
        detail::report(here, stats_, callbacks_);
    }

    double seconds_since_start() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }

    /// The host's check says it in the same words as the CPU backend.
    [[noreturn]] void throw_bad_row(std::int64_t row) {
        const VectorView& set = state_.input.vectors[state_.input.set_of(row)];
        const std::size_t bytes = std::size_t(set.d) * size_of(set.dtype);
        std::vector<std::byte> copy(bytes);
        const std::int64_t at = state_.input.number_in(state_.input.set_of(row), row);
        GNND_CUDA(cudaMemcpy(copy.data(), set.row(at), bytes, cudaMemcpyDefault));
        throw InvalidArgument("vector " + std::to_string(row) + " " +
                              cpu::fault_of_row({copy.data(), 1, set.d, set.dtype, 0}, state_.params.metric));
    }

    State& state_;
    const Callbacks& callbacks_;
    BuildStats& stats_;
    PinnedArray<Record, kAhead + 1> records_;
    PinnedArray<SpaceInfo, 1> info_;
    Event events_[kAhead + 1];
    u64 last_ = 0;
    bool stopped_ = false;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    Drain drain_{state_.stream};  // the last member: copies into the page-locked ones end first
};

void check_places(const detail::Input& input, const void* ids, const void* distances, int device) {
    detail::check_reach({Device::Kind::cuda, device}, {input.vectors[0].data, input.vectors[1].data, ids, distances});
    if (device_of(ids) != device_of(distances))
        throw InvalidArgument("build_into: ids and distances lie in different memories");
}

/// So few objects that all pairs are cheap, on the host.
void run_exhaustively(const detail::Input& input, const BuildParams& params, const Callbacks& callbacks,
                      Resources& resources, std::int32_t* ids, float* distances) {
    const OwnedStream stream(resources);
    GNND_CUDA(cudaStreamSynchronize(stream));  // what the caller's stream still writes
    const std::size_t row = std::size_t(input.d()) * size_of(input.dtype());
    std::vector<std::byte> copy(row * std::size_t(input.n()));
    std::byte* to = copy.data();
    for (const VectorView& set : input.vectors) {
        if (set.n != 0) copy_to_host(set, to);
        to += row * std::size_t(set.n);
    }
    const VectorView here{copy.data(), input.n(), input.d(), input.dtype(), 0};
    cpu::check_vectors(here, params.metric, params.threads, callbacks);
    std::vector<std::int32_t> all(here.n);
    std::iota(all.begin(), all.end(), 0);
    const KnnGraph graph =
        cpu::exact_neighbors(here, all.data(), here.n, params.k, params.metric, params.threads, callbacks, resources);
    const std::size_t bytes = std::size_t(here.n) * params.k * 4;
    GNND_CUDA(cudaMemcpyAsync(ids, graph.ids(), bytes, cudaMemcpyDefault, stream));
    GNND_CUDA(cudaMemcpyAsync(distances, graph.distances(), bytes, cudaMemcpyDefault, stream));
    GNND_CUDA(cudaStreamSynchronize(stream));
}

}  // namespace

MemoryPlan plan(const detail::Input& input, const BuildParams& params, const Choices& choices) {
    const UseDevice device(params.device.index);
    MemoryPlan result;
    result.free = HeapResources().free_device_memory();
    const Plan plan = make_plan(input, {}, params, choices, sort_bytes(input.n()), result.free);
    result.choices = choices;
    result.choices.capacity = plan.capacity;
    result.choices.batches = plan.batches;
    result.vectors = plan.vector_bytes();
    result.graph = plan.graph_bytes();
    result.work = plan.work_bytes();
    return result;
}

BuildStats run(const detail::Input& input, const BuildParams& params, const Choices& choices,
               const Callbacks& callbacks, Resources& resources, std::int32_t* ids, float* distances) {
    const auto start = std::chrono::steady_clock::now();
    const auto seconds = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    const UseDevice device(params.device.index);
    check_places(input, ids, distances, params.device.index);
    BuildStats stats;
    stats.device = {Device::Kind::cuda, params.device.index};
    stats.choices = choices;
    if (choices.exhaustive) {
        run_exhaustively(input, params, callbacks, resources, ids, distances);
        stats.stop = StopReason::exhaustive;
        stats.seconds = seconds();
        return stats;
    }
    if (input.inserts) {
        insert(input, params, callbacks, resources, ids, distances, stats);
        stats.stop = StopReason::searched;
        stats.seconds = seconds();
        return stats;
    }
    const OwnedStream stream(resources);
    const InPlace in_place{on_device(input.vectors[0].data) && input.adjoining(),
                           {on_device(input.graphs[0].ids), on_device(input.graphs[1].ids)},
                           on_device(ids)};
    Plan plan = make_plan(input, in_place, params, choices, sort_bytes(input.n()), resources.free_device_memory());
    const DeviceMemory memory(resources, plan.total, stream);
    const Drain drain(stream);
    const auto at = [&]<class T>(const Part& part, T*) { return reinterpret_cast<T*>(memory.data() + part.offset); };
    const auto words = [&](const Part& part) { return at(part, static_cast<u32*>(nullptr)); };
    const auto floats = [&](const Part& part) { return at(part, static_cast<float*>(nullptr)); };

    const std::int64_t n = input.n();
    const RawVectors raw = upload(input, in_place.vectors, memory.data() + plan.vectors.offset, resources, stream);

    std::byte* small = memory.data() + plan.small.offset;
    Control* control = reinterpret_cast<Control*>(small);
    SpaceInfo* info = reinterpret_cast<SpaceInfo*>(small + 256);
    Record* records = reinterpret_cast<Record*>(small + 512);
    Counters* counters = reinterpret_cast<Counters*>(small + 4096);
    static_assert(512 + (kAhead + 1) * sizeof(Record) <= 4096 && 4096 + kSpread * sizeof(Counters) <= kSmallBytes);
    GNND_CUDA(cudaMemsetAsync(small, 0, plan.small.bytes, stream));

    find_integers(raw, params.metric, plan, &info->largest, stream);

    // The means are needed before the first list is, and no longer.
    float* mean = floats(plan.candidates);
    std::uint8_t* rows = plan.vectors_in_place ? nullptr : at(plan.rows, static_cast<std::uint8_t*>(nullptr));
    u32* bias = words(plan.bias);
    prepare_space(raw, params.metric, plan, rows, bias, mean, info, stream);

    std::int32_t* device_ids = in_place.result ? ids : at(plan.graph_ids, static_cast<std::int32_t*>(nullptr));
    float* device_distances = in_place.result ? distances : floats(plan.graph_distances);
    const bool in_result = plan.length == params.k;
    const bool append = params.update == Update::automatic;
    State state{n,
                input,
                params,
                choices,
                plan,
                resources,
                memory.data(),
                stream,
                engine_for(plan.cell, params.metric),
                raw,
                points_of(raw, params.metric, plan, rows, bias, input.pairs()),
                points_of(raw, Metric::L2, plan, rows, bias),
                {in_result ? reinterpret_cast<u32*>(device_ids) : words(plan.list_ids),
                 in_result ? device_distances : floats(plan.list_distances), floats(plan.bounds), plan.length, 1},
                {words(plan.sample_ids), words(plan.own), words(plan.reverse),
                 params.deterministic ? at(plan.ends, static_cast<u64*>(nullptr)) : nullptr,
                 params.deterministic ? words(plan.candidates) : nullptr, plan.samples},
                {params.update,
                 {append ? words(plan.filter) : nullptr, 0},
                 {at(plan.candidates, static_cast<u64*>(nullptr)), words(plan.counts), plan.capacity},
                 plan.locks.bytes != 0 ? words(plan.locks) : nullptr},
                {words(plan.keys[0]), words(plan.keys[1])},
                {words(plan.order[0]), words(plan.order[1])},
                words(plan.visit),
                memory.data() + plan.sort.offset,
                control,
                counters,
                records,
                info};
    Loop(state, callbacks, stats).run();
    Columns set_aside[2] = {};
    for (int set = 0; input.merges() && set < 2; ++set)
        set_aside[set] = columns_of(state, set, detail::kept_columns(input.graphs[set], params), input.graphs[set].k,
                                    plan.set_aside[set]);
    finish(raw, params.metric, plan.trusted, state.lists, set_aside, params.k, state.seed_of(0x30000u), info,
           device_ids, device_distances, stream);
    if (!in_place.result) {
        const std::size_t bytes = std::size_t(n) * params.k * 4;
        copy_out(ids, device_ids, bytes, resources, stream);
        copy_out(distances, device_distances, bytes, resources, stream);
    }
    GNND_CUDA(cudaStreamSynchronize(stream));
    stats.peak_work_bytes = std::int64_t(plan.work_bytes());
    stats.choices.capacity = plan.capacity;
    stats.choices.batches = plan.batches;
    stats.seconds = seconds();
    return stats;
}

}  // namespace gnnd::cuda

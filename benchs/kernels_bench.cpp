// SPDX-License-Identifier: MIT
// The CPU kernels alone: pairs per second of the blocks that a cross-match computes, rows gathered, entries taken into
// lists.
#include <benchmark/benchmark.h>

#include <cstring>
#include <numeric>
#include <random>
#include <string>

#include "gnnd/cpu/kernels.h"
#include "gnnd/cpu/lists.h"
#include "gnnd/random.h"

namespace gnnd::cpu {
namespace {

constexpr int kRows = 32, kColumns = 64;  // NEW and all samples with p = 16

/// Random rows that every dtype and metric accepts.
std::vector<std::byte> random_rows(std::int64_t n, std::int64_t d, DType dtype) {
    std::vector<std::byte> rows(n * d * size_of(dtype));
    Random random(1);
    for (std::int64_t i = 0; i < n * d; ++i) {
        const std::uint32_t value = random.below(128);
        const auto put = [at = rows.data() + i * size_of(dtype)](auto x) { std::memcpy(at, &x, sizeof x); };
        switch (dtype) {
            case DType::f32:
                put(float(value));
                break;
            case DType::f16:
                put(to_half(float(value)));
                break;
            case DType::bf16:
                put(to_bfloat16(float(value)));
                break;
            case DType::u8:
            case DType::i8:
                put(std::uint8_t(value));
                break;
            case DType::i32:
                throw_no_vectors(dtype);
        }
    }
    return rows;
}

void cross_match_block(benchmark::State& state, Metric metric, DType dtype, Isa isa) {
    const std::int64_t n = 10000, d = state.range(0);
    const Kernels k = kernels(metric, dtype, d, isa);
    const std::vector<std::byte> base = random_rows(n, d, dtype);
    std::vector<std::byte> tile(kColumns * kSlice), panels(kColumns / kPanelColumns * kPanelBytes);
    std::vector<float> out(kRows * kColumns);
    std::int32_t ids[kColumns];
    Random random(2);
    const int slice = int(kSlice / k.element);
    for (auto _ : state) {
        for (auto& id : ids) id = std::int32_t(random.below(std::uint32_t(n)));
        for (std::int64_t begin = 0; begin < d; begin += slice) {
            const int width = int(std::min<std::int64_t>(slice, d - begin));
            k.gather(base.data(), d * std::int64_t(size_of(dtype)), ids, kColumns, begin, width, tile.data());
            k.pack(tile.data(), kColumns, width, panels.data());
            k.block(tile.data(), kRows, panels.data(), kColumns, width, out.data(), kColumns,
                    {begin > 0, begin + width < d}, true);
        }
        benchmark::DoNotOptimize(out.data());
        benchmark::ClobberMemory();
    }
    const std::int64_t pairs = kRows * (kRows - 1) / 2 + kRows * (kColumns - kRows);
    state.counters["pairs"] = benchmark::Counter(double(pairs), benchmark::Counter::kIsIterationInvariantRate);
}

void take(benchmark::State& state) {
    HeapResources heap;
    const std::int64_t n = 1000;  // stays in the cache, and the lists fill up as in late iterations
    Lists lists(n, int(state.range(0)), heap);
    Random random(3);
    float scale = 1;
    std::int64_t entered = 0;
    for (auto _ : state) {
        const Entry offer = make_entry(scale * float(random.below(1 << 20)), std::int32_t(random.below(n)), true);
        entered += lists.take(random.below(n), &offer, 1);
    }
    state.counters["offers"] = benchmark::Counter(1, benchmark::Counter::kIsIterationInvariantRate);
    state.counters["entered"] = double(entered) / double(state.iterations());
}
BENCHMARK(take)->Arg(32)->Arg(64);

const int registered = [] {
    for (Isa isa : supported_isas())
        for (const auto& [metric, dtype] : {std::pair{Metric::L2, DType::u8},
                                            {Metric::L2, DType::f32},
                                            {Metric::L2, DType::f16},
                                            {Metric::InnerProduct, DType::f32},
                                            {Metric::L1, DType::f32},
                                            {Metric::ChiSquare, DType::f32}})
            benchmark::RegisterBenchmark(("cross_match_block/" + std::string(gnnd::name_of(metric)) + '/' +
                                          std::string(gnnd::name_of(dtype)) + '/' + name_of(isa))
                                             .c_str(),
                                         cross_match_block, metric, dtype, isa)
                ->Arg(128)
                ->Arg(960);
    return 0;
}();

}  // namespace
}  // namespace gnnd::cpu

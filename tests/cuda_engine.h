// SPDX-License-Identifier: MIT
#pragma once
/// \file cuda_engine.h
/// Vectors on which the kernels of an engine are tried: it computes their distances exactly, in its own form.

#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>
#include <random>
#include <set>
#include <vector>

#include "gnnd/cuda/device/tile.cuh"
#include "gnnd/cuda/engine/engine.h"
#include "tests/cuda_lists.h"
#include "tests/reference.h"

namespace gnnd::cuda {

/// The vectors of a test in the form of one engine, and their distances by definition.
struct Space {
    PackedType packed;
    Metric metric;
    int n, d;
    std::vector<float> components;
    std::vector<std::uint8_t> rows;
    std::vector<u32> bias;
    int row_bytes, scale;

    Space(PackedType packed_, Metric metric_, int n_, int d_, std::mt19937& random)
        : packed(packed_), metric(metric_), n(n_), d(d_), components(n * d) {
        const int bytes = packed == PackedType::f16 ? 2 : 1;
        row_bytes = (d * bytes + kStep - 1) / kStep * kStep;
        rows.resize(std::size_t(n) * row_bytes);
        scale = metric == Metric::L2 ? -2 : metric == Metric::InnerProduct ? -1 : 1;
        for (int i = 0; i < n; ++i) {
            int norm = 0;
            for (int c = 0; c < d; ++c) {
                const int x = component(c, random);
                components[i * d + c] = float(x);
                if (metric == Metric::L2) norm += x * x;
                if (packed == PackedType::f16)
                    reinterpret_cast<__half*>(&rows[std::size_t(i) * row_bytes])[c] = __float2half(float(x));
                else
                    rows[std::size_t(i) * row_bytes + c] = std::uint8_t(x);
            }
            bias.push_back(packed == PackedType::f16 ? __builtin_bit_cast(u32, float(norm)) : u32(norm));
        }
    }
    /// As many different distances as can be, so that few partners are equally near, and all of them exact.
    ///  - u8, i8: rows of more than one tile are so small that keys lose no bits.
    ///  - f16: sums are integers below 2^16, which survive the key's rounding.
    int component(int c, std::mt19937& random) const {
        if (packed != PackedType::f16) {
            const int x = int(random() % 256) - (packed == PackedType::i8 ? 128 : 0);
            return row_bytes > kTileBytes ? x / 4 : x;
        }
        if (metric == Metric::L1) return int(random() % 513);
        if (metric == Metric::Linf) return int(__half2float(__float2half(float(random() % 32768))));
        if (metric == Metric::ChiSquare)
            return int(random() % 2) * (1 + c * 37 % 256);  // x^2 / x is exact, and so is 0
        return int(random() % 17) - 8;
    }
    float distance(int a, int b) const {
        return float(
            test::order_of(metric, test::reference_distance(metric, &components[a * d], &components[b * d], d).value));
    }
    /// With this shift integer keys are exact, and those of the values above fit.
    int shift() const { return packed == PackedType::f16 ? 0 : kColumnBits; }
};

struct EngineCase {
    const char* name;
    PackedType packed;
    Metric metric;
    int d;
    detail::Pairs pairs = {};
    friend std::ostream& operator<<(std::ostream& out, const EngineCase& c) { return out << c.name; }
};

class CudaEngineTest : public CudaKernelTest, public testing::WithParamInterface<EngineCase> {
  protected:
    static constexpr int kN = 400;
    void SetUp() override {
        CudaKernelTest::SetUp();
        if (IsSkipped()) return;
        const EngineCase& c = GetParam();
        space = std::make_unique<Space>(c.packed, c.metric, kN, c.d, random);
        rows = std::make_unique<OnDevice<std::uint8_t>>(space->rows);
        bias = std::make_unique<OnDevice<u32>>(space->bias);
    }
    Points points() const {
        const bool l2 = space->metric == Metric::L2;
        return {*rows,           kN, space->row_bytes, l2 ? bias->get() : nullptr, space->scale, space->shift(),
                GetParam().pairs};
    }
    /// Expects that the list entries computed for `object` are right, and that none comes twice.
    /// \param lowered  sums of floats may be less by 2^-14 of the product and the norms
    void expect_distances(int object, const std::vector<Entry>& entries, bool lowered = false) const {
        std::set<u32> seen;
        for (const Entry& entry : entries) {
            ASSERT_TRUE(entry.id < kN && int(entry.id) != object && seen.insert(entry.id).second) << entry.id;
            const float exact = space->distance(object, int(entry.id));
            const float terms = space->metric == Metric::L2 ? 4.0f * 8 * 8 * float(space->d) : exact;
            const float below = lowered && space->packed == PackedType::f16 ? std::ldexp(terms, -13) : 0;
            ASSERT_LE(entry.distance, exact) << object << ' ' << entry.id;
            ASSERT_GE(entry.distance, exact - below) << object << ' ' << entry.id;
        }
    }

    std::unique_ptr<Space> space;
    std::unique_ptr<OnDevice<std::uint8_t>> rows;
    std::unique_ptr<OnDevice<u32>> bias;
};

inline const EngineCase kEngineCases[] = {
    {"l2_u8", PackedType::u8, Metric::L2, 100},
    {"l2_u8_short", PackedType::u8, Metric::L2, 40},
    {"l2_u8_two_tiles", PackedType::u8, Metric::L2, 256},
    {"l2_u8_three_tiles", PackedType::u8, Metric::L2, 300},
    {"l2_u8_long", PackedType::u8, Metric::L2, 400},
    {"ip_i8", PackedType::i8, Metric::InnerProduct, 128},
    {"ip_i8_two_tiles", PackedType::i8, Metric::InnerProduct, 129},
    {"l2_f16", PackedType::f16, Metric::L2, 64},
    {"l2_f16_two_tiles", PackedType::f16, Metric::L2, 100},
    {"l2_f16_three_tiles", PackedType::f16, Metric::L2, 130},
    {"l2_f16_long", PackedType::f16, Metric::L2, 200},
    {"l1", PackedType::f16, Metric::L1, 96},
    {"linf", PackedType::f16, Metric::Linf, 20},
    {"chi2", PackedType::f16, Metric::ChiSquare, 200},
    {"l2_u8_across", PackedType::u8, Metric::L2, 100, {150}},
    {"ip_i8_two_tiles_across", PackedType::i8, Metric::InnerProduct, 129, {1}},
    {"l2_f16_three_tiles_across", PackedType::f16, Metric::L2, 130, {250}},
    {"l1_across", PackedType::f16, Metric::L1, 96, {399}},
};

}  // namespace gnnd::cuda

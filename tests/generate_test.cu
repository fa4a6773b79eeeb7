// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "benchs/generate_on_device.h"
#include "gnnd/error.h"
#include "tests/gpu.h"

namespace {

using gnnd::benchs::Manifold;
using gnnd::benchs::Mix;
using gnnd::test::OnDevice;

/// A base set with lists that are valid, though not the nearest: the generator cannot tell.
struct Base {
    static constexpr std::int64_t kN = 1000, kD = 33, kK = 12;
    std::vector<std::uint8_t> rows = std::vector<std::uint8_t>(kN * kD);
    std::vector<std::int32_t> ids = std::vector<std::int32_t>(kN * kK);

    Base() {
        const gnnd::benchs::Draws draws(5, gnnd::benchs::Draws::kLatent, 0);
        for (std::size_t at = 0; at < rows.size(); ++at) rows[at] = std::uint8_t(draws.below(256, at));
        for (std::size_t at = 0; at < ids.size(); ++at) ids[at] = std::int32_t((at / kK * 7 + at % kK * 31 + 1) % kN);
    }
    Mix mix(std::uint64_t seed) const { return {rows.data(), ids.data(), kN, kD, kK, seed}; }
};

std::vector<std::uint8_t> on_host(const Mix& mix, std::int64_t begin, std::int64_t count) {
    std::vector<std::uint8_t> out;
    for (std::int64_t row = begin; row < begin + count; ++row) {
        const Mix::Recipe recipe = mix.recipe(row);
        for (std::int64_t c = 0; c < mix.d; ++c) out.push_back(mix.value(recipe, c));
    }
    return out;
}

std::vector<float> on_host(const Manifold& manifold, std::int64_t begin, std::int64_t count) {
    std::vector<float> parameters(manifold.parameters()), out(count * manifold.d);
    for (std::size_t at = 0; at < parameters.size(); ++at) parameters[at] = manifold.parameter(at);
    for (std::int64_t i = 0; i < count; ++i) manifold.row(parameters.data(), begin + i, &out[i * manifold.d]);
    return out;
}

template <class T, class Generator>
std::vector<T> on_device(const Generator& generator, std::int64_t begin, std::int64_t count) {
    const OnDevice<T> made(count * generator.d);
    gnnd::benchs::generate(generator, begin, count, made.get(), nullptr);
    return made.read();
}

/// Levina and Bickel's estimate of the intrinsic dimension from 100 neighbours of each of some rows.
double intrinsic_dimension(const std::vector<float>& x, std::int64_t d, std::int64_t queries) {
    constexpr int kNeighbours = 100;
    const std::int64_t n = std::int64_t(x.size()) / d;
    double sum = 0;
    for (std::int64_t q = 0; q < queries; ++q) {
        std::vector<float> squares;
        for (std::int64_t i = 0; i < n; ++i) {
            float square = 0;
            for (std::int64_t c = 0; c < d; ++c)
                square += (x[q * d + c] - x[i * d + c]) * (x[q * d + c] - x[i * d + c]);
            if (i != q) squares.push_back(square);
        }
        std::nth_element(squares.begin(), squares.begin() + kNeighbours - 1, squares.end());
        double logs = 0;
        for (int j = 0; j < kNeighbours - 1; ++j) logs += 0.5 * std::log(squares[kNeighbours - 1] / squares[j]);
        sum += (kNeighbours - 1) / logs;
    }
    return sum / double(queries);
}

TEST(Generate, MixDependsOnSeedAndRowAlone) {
    const Base base;
    const auto rows = on_host(base.mix(1), 0, 200);
    EXPECT_EQ(rows, on_host(base.mix(1), 0, 200));
    EXPECT_NE(rows, on_host(base.mix(2), 0, 200));
    const auto shard = on_host(base.mix(1), 150, 50);
    EXPECT_TRUE(std::equal(shard.begin(), shard.end(), rows.begin() + 150 * Base::kD));
    std::set<std::vector<std::uint8_t>> distinct;
    for (int i = 0; i < 200; ++i) {
        distinct.emplace(rows.begin() + i * Base::kD, rows.begin() + (i + 1) * Base::kD);
    }
    EXPECT_EQ(distinct.size(), 200u);
}

TEST(Generate, MixTakesTheTenNearestAndClamps) {
    const Base base;
    const Mix mix = base.mix(3);
    double sum = 0, squares = 0;
    std::set<std::int64_t> places;
    const int rows = 20000;
    for (int row = 0; row < rows; ++row) {
        const Mix::Recipe recipe = mix.recipe(row);
        ASSERT_LT(recipe.i, Base::kN);
        const auto list = base.ids.begin() + recipe.i * Base::kK;
        for (const std::int64_t near : {recipe.j, recipe.l})
            places.insert(std::find(list, list + Base::kK, near) - list);
        for (const float weight : {recipe.a, recipe.b}) sum += weight, squares += weight * weight;
    }
    EXPECT_EQ(places.size(), 10u);
    EXPECT_EQ(*places.rbegin(), 9);
    EXPECT_NEAR(sum / (2 * rows), 0, 0.01);
    EXPECT_NEAR(squares / (2 * rows), 0.25, 0.01);

    const std::uint8_t ends[] = {0, 255, 100, 103};
    const std::int32_t none[] = {0};
    const Mix pair{ends, none, 2, 2, 10, 0};  // rows (0, 255) and (100, 103)
    EXPECT_EQ(pair.value({0, 1, 1, -1.0f, 0.0f}, 0), 0);
    EXPECT_EQ(pair.value({0, 1, 1, -1.0f, 0.0f}, 1), 255);
    EXPECT_EQ(pair.value({0, 1, 1, 0.25f, 0.5f}, 0), 75);
    EXPECT_EQ(pair.value({0, 1, 0, 0.254f, 2.0f}, 0), 25);
    EXPECT_EQ(pair.value({0, 1, 0, 0.256f, 2.0f}, 0), 26);
}

TEST(Generate, ManifoldDependsOnSeedAndRowAlone) {
    const Manifold manifold{50, 20, 1};
    const auto rows = on_host(manifold, 0, 20);
    EXPECT_EQ(rows, on_host(manifold, 0, 20));
    EXPECT_NE(rows, on_host(Manifold{50, 20, 2}, 0, 20));
    const auto shard = on_host(manifold, 15, 5);
    EXPECT_TRUE(std::equal(shard.begin(), shard.end(), rows.begin() + 15 * 50));
    for (int i = 1; i < 20; ++i) EXPECT_NE(rows[0], rows[i * 50]);
}

TEST(Generate, ManifoldHasItsDimension) {
    EXPECT_NEAR(intrinsic_dimension(on_host(Manifold{50, 20, 1}, 0, 20000), 50, 100), 20, 2);
    EXPECT_NEAR(intrinsic_dimension(on_host(Manifold{50, 5, 1}, 0, 20000), 50, 100), 5, 1);
}

TEST(Generate, RefusesWhatIsOutOfRange) {
    const Base base;
    Mix mix = base.mix(1);
    mix.k = 9;
    EXPECT_THROW(gnnd::benchs::generate(mix, 0, 1, nullptr, nullptr), gnnd::InvalidArgument);
    EXPECT_THROW(gnnd::benchs::generate(Manifold{50, 65, 1}, 0, 1, nullptr, nullptr), gnnd::InvalidArgument);
    EXPECT_THROW(gnnd::benchs::generate(Manifold{50, 20, 1}, -1, 1, nullptr, nullptr), gnnd::InvalidArgument);
}

/// These tests only run where a GPU is.
class GenerateOnDevice : public testing::Test {
  protected:
    void SetUp() override { SKIP_WITHOUT_GPU(); }
};

TEST_F(GenerateOnDevice, MixIsTheHosts) {
    const Base base;
    const OnDevice<std::uint8_t> rows(base.rows);
    const OnDevice<std::int32_t> ids(base.ids);
    Mix mix = base.mix(1);
    const auto expected = on_host(mix, 12'345'678'901, 1001);
    mix.base = rows.get();
    mix.ids = ids.get();
    const auto made = on_device<std::uint8_t>(mix, 12'345'678'901, 1001);
    std::size_t unequal = 0;
    for (std::size_t at = 0; at < made.size(); ++at) {
        ASSERT_NEAR(made[at], expected[at], 1) << at;
        unequal += made[at] != expected[at];
    }
    EXPECT_LE(unequal, made.size() / 1000);
    EXPECT_EQ(on_device<std::uint8_t>(mix, 12'345'678'901, 1001), made);
}

TEST_F(GenerateOnDevice, ManifoldIsTheHosts) {
    for (const Manifold& manifold :
         {Manifold{50, 20, 1}, Manifold{960, 20, 2}, Manifold{1, 1, 3}, Manifold{257, 64, 4}}) {
        SCOPED_TRACE(manifold.d);
        const auto expected = on_host(manifold, 12'345'678'901, 37);
        const auto made = on_device<float>(manifold, 12'345'678'901, 37);
        for (std::size_t at = 0; at < made.size(); ++at) ASSERT_NEAR(made[at], expected[at], 1e-5) << at;
        const auto shard = on_device<float>(manifold, 12'345'678'901 + 30, 7);
        EXPECT_TRUE(std::equal(shard.begin(), shard.end(), made.begin() + 30 * manifold.d));
    }
}

}  // namespace

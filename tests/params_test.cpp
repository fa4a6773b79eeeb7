// SPDX-License-Identifier: MIT
#include "gnnd/params.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string_view>
#include <type_traits>
#include <vector>

#include "gnnd/detail/checks.h"
#include "gnnd/detail/params_table.h"
#include "gnnd/detail/resolve.h"
#include "gnnd/error.h"
#include "gnnd/stats.h"
#include "tests/io_conditions.h"

namespace gnnd {
namespace {

TEST(BuildParams, DefaultsAreValid) {
    EXPECT_NO_THROW(BuildParams{}.validate());
}

/// Values that a field must not have, by its line in the table.
template <class T>
std::vector<T> bad_values(const detail::Field<T>& field) {
    if constexpr (std::is_enum_v<T>) return {T(99)};
    if constexpr (std::is_same_v<T, Device>) return {{Device::Kind::cuda, -1}, {Device::Kind::cuda, 4097}};
    std::vector<T> bad;
    if constexpr (std::is_floating_point_v<T>) {
        bad = {field.low - T(0.1), field.high + T(0.1), std::numeric_limits<T>::quiet_NaN()};
    } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        if (field.low > std::numeric_limits<T>::min()) bad.push_back(field.zero != nullptr ? T(-1) : T(field.low - 1));
        if (field.high < std::numeric_limits<T>::max()) bad.push_back(T(field.high + 1));
    }
    return bad;
}

std::string refusal(const BuildParams& params) {
    return test::message_of<InvalidArgument>([&] { params.validate(); });
}

TEST(BuildParams, EveryFieldIsCheckedAndNamed) {
    detail::for_each_field([]<class T>(const detail::Field<T>& field) {
        const std::vector<T> bad = bad_values(field);
        EXPECT_EQ(bad.empty(), (std::is_same_v<T, bool>) || std::string_view(field.name) == "seed") << field.name;
        for (const T value : bad) {
            BuildParams params;
            params.*field.member = value;
            EXPECT_NE(refusal(params).find(field.name), std::string::npos) << field.name << ": " << refusal(params);
        }
    });
}

TEST(Checks, NumbersAreToldByTheShortestText) {
    const auto told = [](auto value, auto low, auto high) {
        return test::message_of<InvalidArgument>([&] { detail::check_range("P", "x", value, low, high); });
    };
    EXPECT_EQ(told(1.5f, 0.f, 0.1f), "P::x = 1.5, allowed are 0 to 0.1");
    EXPECT_EQ(told(-1.0, 1e-9, std::numeric_limits<double>::max()),
              "P::x = -1, allowed are 1e-09 to 1.7976931348623157e+308");
    EXPECT_EQ(told(std::numeric_limits<float>::quiet_NaN(), 0.f, std::numeric_limits<float>::infinity()),
              "P::x = nan, allowed are 0 to inf");
    EXPECT_EQ(told(std::int64_t(-5), std::int64_t(0), std::int64_t(1) << 50),
              "P::x = -5, allowed are 0 to 1125899906842624");
    EXPECT_NO_THROW(detail::check_range("P", "x", 0.1f, 0.f, 0.1f));
}

TEST(BuildParams, ListsHoldKAndSamples) {
    BuildParams params;
    params.list_size = params.k - 1;
    EXPECT_EQ(refusal(params), "BuildParams::list_size (0: chosen from k and samples) = 31, allowed are 32 to 1024");
    params = {};
    params.list_size = 32;
    params.samples = 33;
    EXPECT_EQ(refusal(params), "BuildParams::samples (0: chosen from k) = 33, allowed are 1 to 32");
}

TEST(BuildParams, RecallCountsNoMoreThanK) {
    BuildParams params;
    params.recall_at = params.k;
    EXPECT_NO_THROW(params.validate());
    params.recall_at = params.k + 1;
    EXPECT_EQ(refusal(params), "BuildParams::recall_at (0: 10, or k if that is less) = 33, allowed are 1 to 32");
}

TEST(BuildParams, AllPairsOnTheCpuWhereTheyCostLess) {
    BuildParams params;
    params.k = 10;
    const auto most = [&](std::int64_t d, auto... others) {  // objects whose pairs are all compared at once
        std::int64_t n = 1024;
        const auto exhaustive = [&](std::int64_t count) {
            const VectorView vectors{nullptr, count, d, DType::f32, 0};
            return detail::resolve(params, {{vectors}, {others...}}, {Device::Kind::cpu, 0}).exhaustive;
        };
        while (exhaustive(2 * n)) n *= 2;
        return n;
    };
    EXPECT_EQ(most(128), 16384);
    EXPECT_EQ(most(16), 16384);
    EXPECT_EQ(most(15), 8192) << "trees find what is near in few dimensions";
    const std::int32_t id = 0;
    EXPECT_EQ(most(128, KnnGraphView{1, 1, Metric::L2, &id, nullptr}), 8192) << "a graph to refine may be good";
    params.k = 64;
    EXPECT_EQ(most(128), 32768);
    params.k = 512;
    EXPECT_EQ(most(128), 131072) << "long lists settle slowly";
    params.recall = 0;
    EXPECT_EQ(most(128), 8192);
    params.recall = 0.99f;
    params.trees = 3;
    EXPECT_EQ(most(128), 8192);
}

TEST(BuildParams, ZeroStandsForAChoice) {
    const VectorView many{nullptr, 100000, 8, DType::f32, 0}, few{nullptr, 1024, 8, DType::f32, 0};
    const Device cpu{Device::Kind::cpu, 0}, gpu{Device::Kind::cuda, 0};
    const auto on = [&](const Device& device, const BuildParams& params) {
        return detail::resolve(params, {{many}, {}}, device);
    };
    BuildParams params;
    params.k = 10;
    EXPECT_EQ(on(cpu, params).list_size, 32);
    EXPECT_EQ(on(cpu, params).samples, 22);
    EXPECT_EQ(on(gpu, params).list_size, 48);
    EXPECT_EQ(on(gpu, params).samples, 32);
    EXPECT_EQ(detail::resolve(params, {{many, few}, {}}, gpu).list_size, 32);
    params.device_memory = std::int64_t(1) << 30;
    EXPECT_EQ(on(gpu, params).list_size, 32);
    params.device_memory = 0;
    params.recall = 0.98f;
    EXPECT_EQ(on(gpu, params).list_size, 32);
    params.recall = 0.99f;
    EXPECT_EQ(on(cpu, params).trees, 6);
    EXPECT_EQ(on(gpu, params).trees, 12);
    EXPECT_EQ(detail::resolve(params, {{many, few}, {}}, gpu).trees, 8);
    EXPECT_FALSE(on(cpu, params).exhaustive);
    EXPECT_TRUE(detail::resolve(params, {{few}, {}}, cpu).exhaustive);
    params.recall = 0.999f;
    EXPECT_EQ(on(cpu, params).list_size, 32);
    EXPECT_EQ(on(gpu, params).list_size, 64);
    EXPECT_EQ(on(gpu, params).samples, 64);
    EXPECT_EQ(detail::resolve(params, {{many, few}, {}}, gpu).list_size, 32);
    params.samples = 16;
    EXPECT_EQ(on(gpu, params).samples, 16);
    params = {};
    params.k = 100;
    EXPECT_EQ(on(cpu, params).list_size, 100);
    params.list_size = 120;
    EXPECT_EQ(on(cpu, params).list_size, 120);
    params.samples = 7;
    EXPECT_EQ(on(cpu, params).samples, 7);
    EXPECT_EQ(on(gpu, params).capacity, 11);
    params.list_size = 0;
    params.samples = 101;
    EXPECT_EQ(on(cpu, params).list_size, 101) << "lists hold the samples";
    EXPECT_EQ(on(cpu, params).samples, 101);
    params.samples = kMaxGpuSamples + 1;
    EXPECT_EQ(on(cpu, params).samples, kMaxGpuSamples + 1);
    EXPECT_THROW(on(gpu, params), InvalidArgument);
    params = {};
    params.init = Init::random;
    EXPECT_EQ(on(cpu, params).trees, 0);
    params.k = params.list_size = 3;
    EXPECT_EQ(on(cpu, params).samples, 3);
}

TEST(BuildParams, CodesAreOfFloatsOnAGpu) {
    const VectorView floats{nullptr, 100000, 256, DType::f32, 0};
    const Device cpu{Device::Kind::cpu, 0}, gpu{Device::Kind::cuda, 0};
    const auto chosen = [&](VectorView vectors, auto change, const Device& device) {
        BuildParams params;
        change(params);
        return std::string(name_of(detail::resolve(params, {{vectors}, {}}, device).codes));
    };
    const auto nothing = [](BuildParams&) {};
    const auto asked = [](BuildParams& params) { params.codes = Codes::int8; };
    EXPECT_EQ(chosen(floats, nothing, gpu), "auto");
    EXPECT_EQ(chosen(floats, asked, gpu), "int8");
    EXPECT_EQ(chosen(floats, nothing, cpu), "none");
    EXPECT_EQ(chosen({nullptr, 100000, 256, DType::u8, 0}, asked, gpu), "none");
    EXPECT_EQ(chosen({nullptr, 100000, 16, DType::f32, 0}, nothing, gpu), "none") << "no shorter than float16";
    const auto without = [&](auto change) { EXPECT_EQ(chosen(floats, change, gpu), "none"); };
    without([](BuildParams& params) { params.codes = Codes::none; });
    without([](BuildParams& params) { params.recall = 0; });
    without([](BuildParams& params) { params.metric = Metric::InnerProduct; });
    without([](BuildParams& params) { params.metric = Metric::L1; });
    without([](BuildParams& params) { params.init = Init::random; });
    without([](BuildParams& params) {
        params.list_size = 32;
        params.recall_at = 25;
    });
    EXPECT_EQ(chosen(
                  floats,
                  [](BuildParams& params) {
                      params.list_size = 32;
                      params.recall_at = 24;
                  },
                  gpu),
              "auto");
    BuildParams params;
    params.codes = Codes::int8;
    const VectorView few{nullptr, 2000, 256, DType::f32, 0};
    EXPECT_EQ(name_of(detail::resolve(params, {{floats, few}, {}}, gpu).codes), "none") << "merges";

    const auto refusal_of = [&](VectorView vectors, Metric metric, const Device& device) {
        params.metric = metric;
        return test::message_of<InvalidArgument>([&] { detail::resolve(params, {{vectors}, {}}, device); });
    };
    const std::string allowed = ", allowed are auto and none";
    EXPECT_EQ(refusal_of(floats, Metric::L2, cpu), "BuildParams::codes = int8 on the CPU" + allowed);
    EXPECT_EQ(refusal_of(floats, Metric::L1, gpu), "BuildParams::codes = int8 under l1" + allowed);
    EXPECT_EQ(refusal_of({nullptr, 100, 40000, DType::f32, 0}, Metric::L2, gpu),
              "BuildParams::codes = int8 with d = 40000" + allowed);
}

TEST(Device, ParsesWhatItPrints) {
    for (const char* text : {"auto", "cpu", "cuda:0", "cuda:12"}) EXPECT_EQ(Device::parse(text).name(), text);
    EXPECT_EQ(Device::parse("cuda").name(), "cuda:0");
    for (const char* text : {"", "gpu", "cuda:", "cuda:-1", "cuda:1x", "CPU"})
        EXPECT_THROW(Device::parse(text), InvalidArgument) << text;
}

TEST(Names, ParseInvertsNameOf) {
    for (const char* name : {"l2", "ip", "cosine", "l1", "linf", "chi2"}) EXPECT_EQ(name_of(parse_metric(name)), name);
    for (const char* name : {"auto", "selective", "all"}) EXPECT_EQ(name_of(parse_update(name)), name);
    for (const char* name : {"segment", "list"}) EXPECT_EQ(name_of(parse_locks(name)), name);
    for (const char* name : {"auto", "none", "int8"}) EXPECT_EQ(name_of(parse_codes(name)), name);
    for (const char* name : {"random", "projection"}) EXPECT_EQ(name_of(parse_init(name)), name);
    EXPECT_EQ(name_of(StopReason::converged), "converged");
    EXPECT_EQ(name_of(StopReason::recall), "recall");
    EXPECT_EQ(name_of(StopReason::exact), "exact");
    EXPECT_EQ(name_of(StopReason::recall_missed), "recall_missed");
    EXPECT_THROW(parse_update("none"), InvalidArgument);
    EXPECT_THROW(parse_locks("none"), InvalidArgument);
    EXPECT_THROW(parse_codes("int4"), InvalidArgument);
    EXPECT_THROW(parse_init("none"), InvalidArgument);
    EXPECT_THROW(name_of(Metric(99)), InvalidArgument);
    EXPECT_THROW(is_similarity(Metric(99)), InvalidArgument);
    try {
        parse_metric("euclid");
        ADD_FAILURE();
    } catch (const InvalidArgument& e) {
        EXPECT_STREQ(e.what(), "unknown metric 'euclid'; known are l2, ip, cosine, l1, linf, chi2");
    }
}

}  // namespace
}  // namespace gnnd

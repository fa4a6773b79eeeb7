#include "gnnd/params.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "gnnd/detail/resolve.h"
#include "gnnd/error.h"
#include "gnnd/stats.h"

namespace gnnd {
namespace {

TEST(BuildParams, DefaultsAreValid) {
    EXPECT_NO_THROW(BuildParams{}.validate());
}

TEST(BuildParams, EveryFieldIsCheckedAndNamed) {
    const struct {
        const char* field;
        std::function<void(BuildParams&)> spoil;
    } cases[] = {
        {"k", [](auto& p) { p.k = 0; }},
        {"k", [](auto& p) { p.k = kMaxK + 1; }},
        {"metric", [](auto& p) { p.metric = Metric(99); }},
        {"list_size", [](auto& p) { p.list_size = p.k - 1; }},
        {"list_size", [](auto& p) { p.list_size = kMaxK + 1; }},
        {"samples", [](auto& p) { p.samples = -1; }},
        {"samples", [](auto& p) { p.samples = 33; }},
        {"iterations", [](auto& p) { p.iterations = -1; }},
        {"delta", [](auto& p) { p.delta = -0.1f; }},
        {"delta", [](auto& p) { p.delta = std::numeric_limits<float>::quiet_NaN(); }},
        {"threads", [](auto& p) { p.threads = -1; }},
        {"device", [](auto& p) { p.device.index = -1; }},
        {"update", [](auto& p) { p.update = Update(9); }},
        {"init", [](auto& p) { p.init = Init(9); }},
        {"trees", [](auto& p) { p.trees = -1; }},
    };
    for (const auto& c : cases) {
        BuildParams params;
        c.spoil(params);
        try {
            params.validate();
            ADD_FAILURE() << c.field << " was accepted";
        } catch (const InvalidArgument& e) {
            EXPECT_NE(std::string(e.what()).find(c.field), std::string::npos) << e.what();
        }
    }
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
    EXPECT_EQ(on(gpu, params).samples, 32);
    EXPECT_EQ(on(cpu, params).trees, 6);
    EXPECT_EQ(on(gpu, params).trees, 10);
    EXPECT_EQ(detail::resolve(params, {{many, few}, {}}, gpu).trees, 8);
    EXPECT_FALSE(on(cpu, params).exhaustive);
    EXPECT_TRUE(detail::resolve(params, {{few}, {}}, cpu).exhaustive);
    params.k = 100;
    EXPECT_EQ(on(cpu, params).list_size, 100);
    params.list_size = 120;
    EXPECT_EQ(on(cpu, params).list_size, 120);
    params.samples = 7;
    EXPECT_EQ(on(cpu, params).samples, 7);
    EXPECT_EQ(on(gpu, params).capacity, 11);
    params.samples = kMaxGpuSamples + 1;
    EXPECT_EQ(on(cpu, params).samples, kMaxGpuSamples + 1);
    EXPECT_THROW(on(gpu, params), InvalidArgument);
    params = {};
    params.init = Init::random;
    EXPECT_EQ(on(cpu, params).trees, 0);
    params.k = params.list_size = 3;
    EXPECT_EQ(on(cpu, params).samples, 3);
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
    for (const char* name : {"random", "projection"}) EXPECT_EQ(name_of(parse_init(name)), name);
    EXPECT_EQ(name_of(StopReason::converged), "converged");
    EXPECT_THROW(parse_update("none"), InvalidArgument);
    EXPECT_THROW(parse_locks("none"), InvalidArgument);
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

// SPDX-License-Identifier: MIT
#pragma once
/// \file cpu.h
/// Helpers that tests of the CPU backend share. They name the device: `automatic` is a GPU where there is one.

#include <string>
#include <tuple>

#include "gnnd/params.h"

namespace gnnd::test {

inline constexpr Device kCpu{Device::Kind::cpu, 0};

/// GNND by the paper's stopping rule: with a recall to reach small sets would be compared exhaustively, and others
/// measured.
inline BuildParams cpu_params(int k, Metric metric = Metric::L2) {
    BuildParams params;
    params.k = k;
    params.metric = metric;
    params.device = kCpu;
    params.recall = 0;
    return params;
}

/// Of a test with two parameters, both of which have names.
inline constexpr auto name_of_both = [](const auto& info) {
    return std::string(name_of(std::get<0>(info.param))) + "_" + std::string(name_of(std::get<1>(info.param)));
};

}  // namespace gnnd::test

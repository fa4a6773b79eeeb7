// SPDX-License-Identifier: MIT
#pragma once
/// \file cpu.h
/// What tests of the CPU backend share. They name the device: `automatic` is a GPU where there is one.

#include "gnnd/params.h"

namespace gnnd::test {

inline constexpr Device kCpu{Device::Kind::cpu, 0};

inline BuildParams cpu_params(int k, Metric metric = Metric::L2) {
    BuildParams params;
    params.k = k;
    params.metric = metric;
    params.device = kCpu;
    return params;
}

}  // namespace gnnd::test

// SPDX-License-Identifier: MIT
#pragma once
/// Helpers that the tests of tune() share: parameters of small runs, hard sets, messages.

#include <functional>
#include <stdexcept>
#include <string>

#include "gnnd/error.h"
#include "gnnd/tune.h"
#include "tests/cpu.h"
#include "tests/hard_sets.h"

namespace gnnd::test {

inline BuildParams tuned_for(double recall, int k = 10) {
    BuildParams params = cpu_params(k);
    params.recall = float(recall);
    return params;
}

/// A limit on the iterations that is none keeps small sets from being compared pair by pair.
inline BuildParams in_lists(double recall, int k = 10) {
    BuildParams params = tuned_for(recall, k);
    params.iterations = 39;
    return params;
}

inline TuneParams few(int settings = 8) {
    TuneParams how;
    how.settings = settings;
    how.objects = 400;
    return how;
}

inline Vectors hard(std::int64_t n, const std::string& name = "gauss32") {
    for (const HardSet& set : hard_sets())
        if (set.name == name) return vectors_of(set, n, DType::f32);
    throw std::invalid_argument(name);
}

inline std::string error_of(const std::function<void()>& f) {
    try {
        f();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace gnnd::test

// SPDX-License-Identifier: MIT
#pragma once
/// \file predict.h
/// Predicts the choice of a build, and the time of both of its ways, before it starts.

#include <cstdint>
#include <string>
#include <string_view>

#include "gnnd/detail/input.h"
#include "gnnd/stats.h"

namespace gnnd::detail {

/// A set whose pairs are compared.
struct ComparedSet {
    std::int64_t n = 0;
    std::int64_t row_bytes = 0;  ///< of a row as it is compared: of floats as float16 on a GPU, as float32 on the CPU
    bool bytes = false;          ///< of components that are bytes; otherwise floats
    int k = 0;
    int list_size = 0;  ///< while GNND runs
    int samples = 0;    ///< likewise, of a list
    int parts = 1;      ///< in which all pairs are compared, each with each
};

/// For metrics that are sums of products, euclidean distances among them; of others no rates were measured.
bool is_predictable(Metric metric);

/// \param gpu  its name, as CUDA has it
Prediction predict_on_gpu(std::string_view gpu, const ComparedSet& set);
/// \param threads  among which the work is divided evenly
Prediction predict_on_cpu(int threads, const ComparedSet& set);

/// Says whether all pairs are compared, and what decides it: a clause for people.
/// \param choices  of resolve()
/// \param room     the memory holds what all pairs take
std::string explain(const Choices& choices, const BuildParams& params, bool gpu, bool room);

}  // namespace gnnd::detail

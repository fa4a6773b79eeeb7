// SPDX-License-Identifier: MIT
#pragma once
/// \file tune_predict.h
/// Predictions of tune() for all vectors, by what it has measured of two samples.

#include "gnnd/tune.h"

namespace gnnd::detail {

inline bool all_pairs(const TuneRecord& record) {
    return record.params.recall == 1;
}

/// Sets the exponents of the result and what they predict of its records; may be called again when there are more.
void predict(TuneResult& result);

}  // namespace gnnd::detail

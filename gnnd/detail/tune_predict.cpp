// SPDX-License-Identifier: MIT
#include "gnnd/detail/tune_predict.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gnnd/detail/tune_steps.h"

namespace gnnd::detail {
namespace {

/// All pairs are counted, not measured: small samples, of which other work is a large part, would tell less.
constexpr double kPowerOfPairs = 2;
/// The fewest entries that the larger sample's graph must miss for their growth to mean something.
constexpr double kFewestMissing = 20;

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double entries_missing(const RecallEstimate& recall) {
    return (1 - recall.value) * double(recall.objects) * recall.at;
}

/// Of single settings they are drowned in the noise of times and of samples: the median of all is taken.
void find_exponents(TuneResult& result) {
    const double rows = std::log(double(result.large_rows) / double(result.small_rows));
    std::vector<double> times, misses;
    for (const TuneRecord& record : result.records) {
        if (record.small.rows == 0 || record.large.rows == 0 || record.params.recall != 0) continue;
        times.push_back(std::log(record.large.seconds / record.small.seconds) / rows);
        if (entries_missing(record.large.recall) >= kFewestMissing)
            misses.push_back(std::log(missing_of(record.large.recall) / missing_of(record.small.recall)) / rows);
    }
    result.time_exponent = median(times);
    result.miss_exponent = std::max(0.0, median(misses));
}

}  // namespace

void predict(TuneResult& result) {
    const bool two = result.small_rows != 0;
    if (two) find_exponents(result);
    const double ratio = double(result.n) / double(result.large_rows);
    for (TuneRecord& record : result.records) {
        const TuneRun& large = record.large;
        if (large.rows == 0 || (!two && ratio > 1)) continue;
        record.predicted_seconds =
            large.seconds * std::pow(ratio, all_pairs(record) ? kPowerOfPairs : result.time_exponent);
        // A build that ends by its recall ends by it on all vectors, too.
        const double growth = large.stop == StopReason::recall ? 0 : result.miss_exponent;
        record.predicted_recall = std::max(0.0, 1 - (1 - large.recall.value) * std::pow(ratio, growth));
    }
}

}  // namespace gnnd::detail

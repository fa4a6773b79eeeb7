// SPDX-License-Identifier: MIT
#include "gnnd/detail/tune_choice.h"

#include <algorithm>

#include "gnnd/detail/tune_predict.h"
#include "gnnd/detail/tune_steps.h"

namespace gnnd::detail {
namespace {

/// True where such lists were to have the recall asked for, and had not.
bool refuted(const TuneResult& result, const TuneRecord& record) {
    return std::any_of(result.records.begin(), result.records.end(), [&](const TuneRecord& other) {
        return other.params.recall != 0 && other.large.stop == StopReason::recall_missed &&
               same_lists(other.params, record.params);
    });
}

double price(const TuneRecord& record) {
    return record.predicted_seconds != 0 ? record.predicted_seconds : record.run().seconds;
}
double recall_expected(const TuneRecord& record) {
    return record.predicted_recall != 0 ? record.predicted_recall : record.run().recall.value;
}

}  // namespace

bool same_lists(const BuildParams& a, const BuildParams& b) {
    BuildParams other = b;
    other.iterations = a.iterations;
    other.recall = a.recall;
    return same_setting(a, other);
}

std::vector<int> by_price(const TuneResult& result, float recall) {
    std::vector<int> positions;
    const bool large = std::any_of(result.records.begin(), result.records.end(),
                                   [](const TuneRecord& record) { return record.large.rows != 0; });
    // That no neighbour is missing is what a sample of objects cannot show.
    const auto promises = [&](const TuneRecord& record) {
        return recall < 1 ? recall_expected(record) >= double(recall) : all_pairs(record);
    };
    for (std::size_t i = 0; i < result.records.size(); ++i)
        if (const TuneRecord& record = result.records[i];
            (!large || record.large.rows != 0) && promises(record) && !refuted(result, record))
            positions.push_back(int(i));
    std::stable_sort(positions.begin(), positions.end(), [&](int a, int b) {
        return price(result.records[std::size_t(a)]) < price(result.records[std::size_t(b)]);
    });
    return positions;
}

void choose(TuneResult& result, const BuildParams& given) {
    result.params = given;
    if (given.recall == 0) return;
    std::vector<int> able = by_price(result, given.recall);
    // A record that was built as the result's params would build comes before one that was not.
    const auto asked = [&](int i) {
        const TuneRecord& record = result.records[std::size_t(i)];
        return record.params.recall != 0 && (all_pairs(record) || record.large.stop == StopReason::recall);
    };
    if (std::any_of(able.begin(), able.end(),
                    [&](int i) { return asked(i) && !all_pairs(result.records[std::size_t(i)]); }))
        std::erase_if(able, [&](int i) { return !asked(i); });
    result.reaches = !able.empty();
    if (able.empty()) {
        for (int i = 0; i < std::ssize(result.records); ++i) able.push_back(i);
        std::stable_sort(able.begin(), able.end(), [&](int a, int b) {
            return recall_expected(result.records[std::size_t(a)]) > recall_expected(result.records[std::size_t(b)]);
        });
    }
    result.chosen = able.front();
    const BuildParams& chosen = result.records[std::size_t(result.chosen)].params;
    if (chosen.recall == 1) {
        result.params.recall = 1;
    } else if (!same_lists(chosen, result.records.front().params)) {
        result.params.samples = chosen.samples;
        result.params.list_size = chosen.list_size;
        result.params.trees = grows_trees(chosen.init) ? chosen.trees : given.trees;
        result.params.init = chosen.init;
    }
}

void mark_front(TuneResult& result) {
    std::vector<TuneRun> all;
    for (const TuneRecord& record : result.records) all.push_back(record.large);
    const bool none = std::all_of(all.begin(), all.end(), [](const TuneRun& run) { return run.rows == 0; });
    for (std::size_t i = 0; none && i < all.size(); ++i) all[i] = result.records[i].small;
    for (const int i : front_of(all, [](const TuneRun& run) { return run.seconds; }))
        result.records[std::size_t(i)].front = true;
}

}  // namespace gnnd::detail

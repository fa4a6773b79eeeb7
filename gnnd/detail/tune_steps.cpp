// SPDX-License-Identifier: MIT
#include "gnnd/detail/tune_steps.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "gnnd/init.h"

namespace gnnd::detail {
namespace {

/// Samples and lists change by a half, trees by as much again: smaller steps drown in the noise of times.
constexpr double kStep = 1.5;
constexpr int kTreeStep = 2, kMostTrees = 64, kFewestSamples = 4;

int more(int value) {
    return int(std::lround(value * kStep));
}

int fewer(int value) {
    return int(std::lround(value / kStep));
}

}  // namespace

std::vector<BuildParams> steps_from(const BuildParams& setting, const TuneRun& run, const TuneLimits& limits,
                                    TuneSteps wanted) {
    std::vector<BuildParams> steps;
    const auto step = [&](auto change) {
        BuildParams next = setting;
        change(next);
        if (!limits.fixes_list_size())
            next.list_size = std::clamp(next.list_size, std::max(next.k, limits.given.samples), kMaxK);
        if (!limits.fixes_samples())
            next.samples =
                std::min(std::max(next.samples, kFewestSamples), std::min(limits.most_samples, next.list_size));
        next.iterations = std::clamp(next.iterations, std::min(1, limits.given.iterations), limits.given.iterations);
        steps.push_back(next);
    };
    const bool samples = !limits.fixes_samples(), lists = !limits.fixes_list_size();
    // A limit that is larger than the iterations that were run has no effect: the first smaller one is below these.
    const int iterations = std::min(setting.iterations, run.iterations);
    const auto both = [](int (*change)(int)) {
        return [change](BuildParams& next) {
            next.list_size = change(next.list_size);
            next.samples = change(next.samples);
        };
    };
    if (wanted != TuneSteps::less) {
        if (run.stop == StopReason::iterations) step([&](BuildParams& next) { next.iterations = iterations + 1; });
        if (samples && lists) step(both(more));
        if (samples) step([](BuildParams& next) { next.samples = more(next.samples); });
        if (lists) step([](BuildParams& next) { next.list_size = more(next.list_size); });
    }
    if (wanted != TuneSteps::more) {
        step([&](BuildParams& next) { next.iterations = iterations - 1; });
        if (samples) step([](BuildParams& next) { next.samples = fewer(next.samples); });
        if (lists) step([](BuildParams& next) { next.list_size = fewer(next.list_size); });
        if (samples && lists) step(both(fewer));
    }
    if (!limits.fixes_trees() && grows_trees(setting.init)) {
        step([](BuildParams& next) { next.trees = std::min(kMostTrees, next.trees * kTreeStep); });
        step([](BuildParams& next) { next.trees = std::max(1, next.trees / kTreeStep); });
    }
    for (const Init init : kInits)
        if (limits.inits && setting.init == BuildParams{}.init) step([&](BuildParams& next) { next.init = init; });
    return steps;
}

bool same_setting(const BuildParams& a, const BuildParams& b) {
    const auto key = [](const BuildParams& p) {
        return std::tuple(p.samples, p.list_size, grows_trees(p.init) ? p.trees : 0, p.init, p.iterations, p.recall);
    };
    return key(a) == key(b);
}

double missing_of(const RecallEstimate& recall) {
    return std::max(1 - recall.value, 0.5 / (double(recall.objects) * std::max(recall.at, 1)));
}

std::vector<int> front_of(const std::vector<TuneRun>& runs, const CostOf& cost) {
    std::vector<int> order;
    for (std::size_t i = 0; i < runs.size(); ++i)
        if (runs[i].rows != 0) order.push_back(int(i));
    const auto at = [&](int i) -> const TuneRun& { return runs[std::size_t(i)]; };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        const double first = cost(at(a)), second = cost(at(b));
        return first != second ? first < second : at(a).recall.value > at(b).recall.value;
    });
    std::vector<int> front;
    for (const int i : order)
        if (front.empty() || at(i).recall.value > at(front.back()).recall.value) front.push_back(i);
    return front;
}

void nearest_first(std::vector<int>& positions, const std::vector<TuneRun>& runs, double missing) {
    const auto distance = [&](int i) { return std::abs(std::log(missing_of(runs[std::size_t(i)].recall) / missing)); };
    std::stable_sort(positions.begin(), positions.end(), [&](int a, int b) { return distance(a) < distance(b); });
}

}  // namespace gnnd::detail

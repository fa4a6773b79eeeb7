// SPDX-License-Identifier: MIT
#include "gnnd/stats.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "gnnd/names.h"

namespace gnnd {
namespace {

constexpr std::string_view spell(StopReason value) {
    switch (value) {
        case StopReason::converged:
            return "converged";
        case StopReason::iterations:
            return "iterations";
        case StopReason::recall:
            return "recall";
        case StopReason::exact:
            return "exact";
        case StopReason::recall_missed:
            return "recall_missed";
        case StopReason::searched:
            return "searched";
    }
    return {};
}

}  // namespace

std::string_view name_of(StopReason reason) {
    static constexpr auto kNames = name_table<StopReason, spell>("stop reason");
    return kNames.name_of(reason);
}

std::string to_text(const IterationStats& iteration) {
    char text[160];
    std::snprintf(text, sizeof text, "GNND iteration %d: phi(G) %.6g, changed %lld, %.4f s", iteration.iteration,
                  iteration.phi, static_cast<long long>(iteration.changed), iteration.seconds);
    return text;
}

std::string unresolved_warning(double share, Metric metric) {
    if (share < 0.5) return "";
    const bool cosines = is_normalized(metric);
    char text[280];
    std::snprintf(text, sizeof text,
                  cosines
                      ? "the cosines of %.0f%% of the objects with their neighbours are so near 1 that float32 does "
                        "not tell who is nearer: l2 of the vectors divided by their lengths has the same "
                        "neighbours, and digits for them"
                      : "the components of %.0f%% of the objects are so small that nothing is left of their "
                        "products in float32, which do not tell who is nearer: the vectors times a large number "
                        "have the same neighbours, and digits for them",
                  100 * share);
    return text;
}

std::string to_text(const Prediction& prediction) {
    if (prediction.all_pairs == 0) return "not predicted";
    const auto seconds = [](double value) {  // with two digits that count
        char text[40];
        std::snprintf(text, sizeof text, "%.*f s", std::max(0, 1 - int(std::floor(std::log10(value)))), value);
        return std::string(text);
    };
    return "all pairs about " + seconds(prediction.all_pairs) + ", three iterations about " +
           seconds(prediction.iterations) + " (" + prediction.rates + ")";
}

std::string to_text(const RecallEstimate& recall) {
    char text[80];
    std::snprintf(text, sizeof text, "Recall@%d %.4f +- %.4f, measured on ", recall.at, recall.value,
                  std::max(recall.high - recall.value, recall.value - recall.low));
    const std::string digits = std::to_string(recall.objects);
    std::string all = text;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (i != 0 && (digits.size() - i) % 3 == 0) all += ',';
        all += digits[i];
    }
    return all + " objects";
}

}  // namespace gnnd

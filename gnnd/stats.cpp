// SPDX-License-Identifier: MIT
#include "gnnd/stats.h"

#include <cstdio>

#include "gnnd/names.h"

namespace gnnd {

std::string_view name_of(StopReason reason) {
    static constexpr NameTable<StopReason, 6> kNames{"stop reason",
                                                     {{{StopReason::converged, "converged"},
                                                       {StopReason::iterations, "iterations"},
                                                       {StopReason::recall, "recall"},
                                                       {StopReason::exact, "exact"},
                                                       {StopReason::recall_missed, "recall_missed"},
                                                       {StopReason::searched, "searched"}}}};
    return kNames.name_of(reason);
}

std::string to_text(const IterationStats& iteration) {
    char text[160];
    std::snprintf(text, sizeof text, "GNND iteration %d: phi(G) %.6g, changed %lld, %.4f s", iteration.iteration,
                  iteration.phi, static_cast<long long>(iteration.changed), iteration.seconds);
    return text;
}

}  // namespace gnnd

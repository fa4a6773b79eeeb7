#include "gnnd/stats.h"

#include "gnnd/names.h"

namespace gnnd {

std::string_view name_of(StopReason reason) {
    static constexpr NameTable<StopReason, 4> kNames{"stop reason",
                                                     {{{StopReason::converged, "converged"},
                                                       {StopReason::iterations, "iterations"},
                                                       {StopReason::exhaustive, "exhaustive"},
                                                       {StopReason::searched, "searched"}}}};
    return kNames.name_of(reason);
}

}  // namespace gnnd

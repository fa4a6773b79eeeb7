// SPDX-License-Identifier: MIT
#include "gnnd/cpu/kernels.h"

namespace gnnd::cpu {

namespace baseline {
Kernels kernels(Metric, DType, std::int64_t);
}
#ifdef GNND_X86
namespace avx2 {
Kernels kernels(Metric, DType, std::int64_t);
}
namespace avx512 {
Kernels kernels(Metric, DType, std::int64_t);
}
#endif

std::vector<Isa> supported_isas() {
    std::vector<Isa> isas{Isa::baseline};
#ifdef GNND_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) isas.push_back(Isa::avx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
        isas.push_back(Isa::avx512);
#endif
    return isas;
}

const char* name_of(Isa isa) {
    switch (isa) {
        case Isa::baseline:
            return "baseline";
        case Isa::avx2:
            return "avx2";
        case Isa::avx512:
            return "avx512";
    }
    return "unknown";
}

Kernels kernels(Metric metric, DType dtype, std::int64_t d, Isa isa) {
#ifdef GNND_X86
    if (isa == Isa::avx512) return avx512::kernels(metric, dtype, d);
    if (isa == Isa::avx2) return avx2::kernels(metric, dtype, d);
#endif
    (void)isa;
    return baseline::kernels(metric, dtype, d);
}

}  // namespace gnnd::cpu

// SPDX-License-Identifier: MIT
#include "gnnd/cpu/kernels.h"

namespace gnnd::cpu {

namespace baseline {
Kernels kernels(Metric, DType, std::int64_t);
TakeEntries taker();
}  // namespace baseline
#ifdef GNND_X86
namespace avx2 {
Kernels kernels(Metric, DType, std::int64_t);
TakeEntries taker();
}  // namespace avx2
namespace avx512 {
Kernels kernels(Metric, DType, std::int64_t);
TakeEntries taker();
}  // namespace avx512
namespace avx512vnni {
Kernels kernels(Metric, DType, std::int64_t);
TakeEntries taker();
}  // namespace avx512vnni
#endif

std::vector<Isa> supported_isas() {
    std::vector<Isa> isas{Isa::baseline};
#ifdef GNND_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) isas.push_back(Isa::avx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq")) {
        isas.push_back(Isa::avx512);
        if (__builtin_cpu_supports("avx512vnni")) isas.push_back(Isa::avx512vnni);
    }
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
        case Isa::avx512vnni:
            return "avx512vnni";
    }
    return "unknown";
}

Kernels kernels(Metric metric, DType dtype, std::int64_t d, Isa isa) {
#ifdef GNND_X86
    if (isa == Isa::avx512vnni) return avx512vnni::kernels(metric, dtype, d);
    if (isa == Isa::avx512) return avx512::kernels(metric, dtype, d);
    if (isa == Isa::avx2) return avx2::kernels(metric, dtype, d);
#endif
    (void)isa;
    return baseline::kernels(metric, dtype, d);
}

TakeEntries taker(Isa isa) {
#ifdef GNND_X86
    if (isa == Isa::avx512vnni) return avx512vnni::taker();
    if (isa == Isa::avx512) return avx512::taker();
    if (isa == Isa::avx2) return avx2::taker();
#endif
    (void)isa;
    return baseline::taker();
}

}  // namespace gnnd::cpu

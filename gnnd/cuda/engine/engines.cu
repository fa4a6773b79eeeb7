// SPDX-License-Identifier: MIT
// From packed types and metrics to engines.
#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/engine/instances.h"

namespace gnnd::cuda {

const Engine& assigning_engine_for(PackedType packed) {
    return visit(packed, [](auto type) -> const Engine& { return engine_of<TensorProducts<type.value>>(); });
}

const Engine& engine_for(PackedType packed, Metric metric) {
    return visit(metric, [&]<class M>(M) -> const Engine& {
        // Cosine is half the squared distance of normalised vectors, which is a product as well.
        if constexpr (M::is_product)
            return assigning_engine_for(packed);
        else
            return engine_of<ScalarSums<PackedType::f16, M>>();
    });
}

bool has_variants() {
#ifdef GNND_CUDA_VARIANTS
    return true;
#else
    return false;
#endif
}

}  // namespace gnnd::cuda

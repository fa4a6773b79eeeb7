// The engine for cells of f16: products on the tensor cores.
#include "gnnd/cuda/engine/engine.cuh"

namespace gnnd::cuda {

const Engine& engine_f16() {
    static const Engine engine = make_tensor_engine<TensorEngine<Cell::f16>>();
    return engine;
}

}  // namespace gnnd::cuda

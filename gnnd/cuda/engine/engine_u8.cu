// The engine for cells of u8: products on the tensor cores.
#include "gnnd/cuda/engine/engine.cuh"

namespace gnnd::cuda {

const Engine& engine_u8() {
    static const Engine engine = make_tensor_engine<TensorEngine<Cell::u8>>();
    return engine;
}

}  // namespace gnnd::cuda

// The engine for cells of i8: products on the tensor cores.
#include "gnnd/cuda/engine/engine.cuh"

namespace gnnd::cuda {

const Engine& engine_i8() {
    static const Engine engine = make_tensor_engine<TensorEngine<Cell::i8>>();
    return engine;
}

}  // namespace gnnd::cuda

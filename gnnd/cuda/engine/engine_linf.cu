// The engine for linf, a metric without a product: component by component, over f16 cells.
#include "gnnd/cuda/engine/engine.cuh"

namespace gnnd::cuda {

const Engine& engine_linf() {
    static const Engine engine = make_engine<ScalarEngine<Cell::f16, metrics::Linf>, false>();
    return engine;
}

}  // namespace gnnd::cuda

// The engine for l1, a metric without a product: component by component, over f16 cells.
#include "gnnd/cuda/engine/engine.cuh"

namespace gnnd::cuda {

const Engine& engine_l1() {
    static const Engine engine = make_engine<ScalarEngine<Cell::f16, metrics::L1>, false>();
    return engine;
}

}  // namespace gnnd::cuda

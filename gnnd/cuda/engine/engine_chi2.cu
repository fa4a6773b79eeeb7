// The engine for chi2, a metric without a product: component by component, over f16 cells.
#include "gnnd/cuda/engine/engine.cuh"

namespace gnnd::cuda {

const Engine& engine_chi2() {
    static const Engine engine = make_engine<ScalarEngine<Cell::f16, metrics::ChiSquare>, false>();
    return engine;
}

}  // namespace gnnd::cuda

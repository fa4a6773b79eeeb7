// The engines for metrics without a product: component by component, over f16 cells.
#include "gnnd/cuda/engine.cuh"

namespace gnnd::cuda {

const Engine& engine_l1() {
    static const Engine engine = make_engine<ScalarEngine<Cell::f16, metrics::L1>, false>();
    return engine;
}
const Engine& engine_linf() {
    static const Engine engine = make_engine<ScalarEngine<Cell::f16, metrics::Linf>, false>();
    return engine;
}
const Engine& engine_chi2() {
    static const Engine engine = make_engine<ScalarEngine<Cell::f16, metrics::ChiSquare>, false>();
    return engine;
}

}  // namespace gnnd::cuda

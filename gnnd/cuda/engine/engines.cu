// From cells and metric to kernels. A new metric without a product: a file like engine_l1.cu and a line here.
#include "gnnd/cuda/algorithm.h"

namespace gnnd::cuda {

const Engine& dividing_engine_for(Cell cell) {
    switch (cell) {
        case Cell::u8:
            return engine_u8();
        case Cell::i8:
            return engine_i8();
        case Cell::f16:
            break;
    }
    return engine_f16();
}

const Engine& engine_for(Cell cell, Metric metric) {
    switch (metric) {
        case Metric::L1:
            return engine_l1();
        case Metric::Linf:
            return engine_linf();
        case Metric::ChiSquare:
            return engine_chi2();
        default:
            return dividing_engine_for(cell);
    }
}

}  // namespace gnnd::cuda

// SPDX-License-Identifier: MIT
// Stands in for gpu_cagra.cpp where FAISS was built without cuVS.
#include "faiss_ext/adapters.h"
#include "faiss_ext/detail/errors.h"

namespace faiss_ext {

bool faiss_has_cagra() {
    return false;
}

std::shared_ptr<faiss::Index> to_gpu_cagra(const VectorSource&, const gnnd::KnnGraphView&, const HnswCagraParams&) {
    detail::fail("to_gpu_cagra: faiss_ext was built with a FAISS that has no GpuIndexCagra: 1.10 and later, with cuVS");
}

}  // namespace faiss_ext

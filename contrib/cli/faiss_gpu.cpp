// SPDX-License-Identifier: MIT
#include "faiss_gpu.h"

#include <faiss/impl/FaissException.h>

#include "faiss_ext/faiss_resources.h"
#include "gnnd/device.h"
#include "gnnd/error.h"

namespace cli {

FaissGpu::FaissGpu(const gnnd::Device& device) : index_(device.index) {
    if (device.kind == gnnd::Device::Kind::cpu) return;
    std::string why = "FAISS was built without GPU support";
    if (faiss_ext::faiss_has_gpu() && gnnd::device_usable(index_, why)) {
        resources_ = faiss_ext::standard_gpu_resources();
        try {
            const faiss_ext::FaissResources probe(get());  // takes what FAISS keeps for itself
            return;
        } catch (const faiss::FaissException& error) {
            why = error.what();
        }
        resources_.reset();
    }
    if (device.kind == gnnd::Device::Kind::cuda) throw gnnd::Unavailable("device " + device.name() + ": " + why);
}

std::string FaissGpu::name(bool used) const {
    return resources_ && used ? "cuda:" + std::to_string(index_) : "cpu";
}

}  // namespace cli

// SPDX-License-Identifier: MIT
#pragma once
/// \file gpu.h
/// Helpers that tests that use a GPU share.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/runtime/errors.h"

#define SKIP_WITHOUT_GPU() \
    if (std::string why; gnnd::cuda::device_count(&why) == 0) GTEST_SKIP() << "no GPU: " << why

#define SKIP_WITHOUT_UPDATE(update) \
    if (!gnnd::test::has_update(update)) GTEST_SKIP() << "not compiled: " << name_of(update)

namespace gnnd::test {

/// GNND_CUDA_VARIANTS=OFF leaves all but one out.
inline bool has_update(Update update) {
    return update == Update::automatic || cuda::has_variants();
}

inline BuildParams gpu_params(int k, Metric metric = Metric::L2) {
    BuildParams params;
    params.k = k;
    params.metric = metric;
    params.device = {Device::Kind::cuda, 0};
    return params;
}

/// Lists as merges have them, for what a union's build would compare all pairs of takes other memory.
inline BuildParams as_merged(BuildParams params) {
    params.list_size = params.k;
    return params;
}

/// With the paper's stopping rule alone: what is tested must not depend on the recall that was reached.
inline BuildParams converging(BuildParams params) {
    params.recall = 0;
    return params;
}

/// An array on the current device.
template <class T>
class OnDevice {
  public:
    /// A copy of what `from` points to, poison without.
    explicit OnDevice(std::size_t size, const T* from = nullptr) : size_(size) {
        void* data = nullptr;
        GNND_CUDA(cudaMalloc(&data, std::max<std::size_t>(1, size) * sizeof(T)));
        data_ = static_cast<T*>(data);
        GNND_CUDA(from != nullptr ? cudaMemcpy(data_, from, size * sizeof(T), cudaMemcpyHostToDevice)
                                  : cudaMemset(data_, 0xa5, size * sizeof(T)));
    }
    explicit OnDevice(const std::vector<T>& from) : OnDevice(from.size(), from.data()) {}
    ~OnDevice() { cuda::ignore(cudaFree(data_)); }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;
    operator T*() const { return data_; }
    T* get() const { return data_; }
    std::vector<T> read() const {
        std::vector<T> copy(size_);
        GNND_CUDA(cudaMemcpy(copy.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
        return copy;
    }

  private:
    T* data_ = nullptr;
    std::size_t size_;
};

}  // namespace gnnd::test

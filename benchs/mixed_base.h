// SPDX-License-Identifier: MIT
#pragma once
/// \file mixed_base.h
/// The rows that generate.h's Mix makes of a file's as a base that nothing holds: devices make them whenever they are
/// read.

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "benchs/device_array.h"
#include "benchs/generate_on_device.h"
#include "gnnd/builder.h"
#include "gnnd/cuda/memory/memory.h"
#include "gnnd/io/vector_reader.h"

namespace gnnd::benchs {

/// Any number of threads may read it.
class MixedBase {
  public:
    /// \param file     uint8
    /// \param devices  GPUs by their numbers, each of which makes as many rows as any other
    MixedBase(const io::VectorFile& file, std::int64_t n, const std::vector<int>& devices) : n_(n), d_(file.d()) {
        BuildParams params;
        params.device = {Device::Kind::cuda, devices.front()};
        const KnnGraph graph = build(file.view(), params).graph;  // once: another GPU would make other rows of another
        for (const int device : devices) {
            const cuda::UseDevice use(device);
            makers_.push_back(std::make_unique<Maker>(file, graph, device));
            for (int i = 0; i < kLanes; ++i) lanes_.push_back(std::make_unique<Lane>(*makers_.back(), kRows * d_));
        }
        for (int i = 0; i < kLanes; ++i)
            for (std::size_t device = 0; device < devices.size(); ++device)
                free_.push_back(lanes_[device * kLanes + std::size_t(i)].get());
    }

    /// The rows, as long as this is there.
    io::VectorReader reader() {
        return {n_, d_, DType::u8,
                [this](std::int64_t begin, std::int64_t count, void* out) { read(begin, count, out); }};
    }

  private:
    static constexpr int kLanes = 16;
    static constexpr std::int64_t kRows = 1 << 16;

    /// The file's rows and their neighbours on a device.
    struct Maker {
        Maker(const io::VectorFile& file, const KnnGraph& graph, int device)
            : device(device), n(file.n()), d(file.d()), k(graph.k()), x(std::size_t(n * d)), ids(std::size_t(n * k)) {
            GNND_CUDA(cudaMemcpy(x, file.view().data, std::size_t(n * d), cudaMemcpyHostToDevice));
            GNND_CUDA(cudaMemcpy(ids, graph.ids(), std::size_t(n * k) * sizeof(std::int32_t), cudaMemcpyHostToDevice));
        }
        Mix mix() const { return {x, ids, n, d, k, 1}; }
        int device;
        std::int64_t n, d, k;
        DeviceArray<std::uint8_t> x;
        DeviceArray<std::int32_t> ids;
    };

    /// A stream and memory to make rows in, for one thread at a time.
    struct Lane {
        Lane(const Maker& maker, std::int64_t bytes) : maker(maker), made(std::size_t(bytes)) {
            GNND_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        }
        ~Lane() { cuda::ignore(cudaStreamDestroy(stream)); }
        const Maker& maker;
        DeviceArray<std::uint8_t> made;
        cudaStream_t stream = nullptr;
    };

    struct GiveBack {
        MixedBase& base;
        void operator()(Lane* lane) const {
            const std::lock_guard lock(base.mutex_);
            base.free_.push_back(lane);  // within its capacity: it has been there before
            base.changed_.notify_one();
        }
    };

    std::unique_ptr<Lane, GiveBack> take() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !free_.empty(); });
        Lane* const lane = free_.back();
        free_.pop_back();
        return {lane, GiveBack{*this}};
    }

    void read(std::int64_t begin, std::int64_t count, void* out) {
        const auto lane = take();
        const cuda::UseDevice use(lane->maker.device);
        for (std::int64_t done = 0; done < count; done += kRows) {
            const std::int64_t rows = std::min(kRows, count - done);
            generate(lane->maker.mix(), begin + done, rows, lane->made, lane->stream);
            GNND_CUDA(cudaMemcpyAsync(static_cast<std::byte*>(out) + done * d_, lane->made, std::size_t(rows * d_),
                                      cudaMemcpyDeviceToHost, lane->stream));
            GNND_CUDA(cudaStreamSynchronize(lane->stream));
        }
    }

    std::int64_t n_, d_;
    std::vector<std::unique_ptr<Maker>> makers_;
    std::vector<std::unique_ptr<Lane>> lanes_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Lane*> free_;
};

}  // namespace gnnd::benchs

// SPDX-License-Identifier: MIT
#include "gnnd/cuda/memory/transfer.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "gnnd/cuda/memory/memory.h"
#include "gnnd/error.h"

namespace gnnd::cuda {
namespace {

constexpr int kRingParts = 4;
constexpr std::size_t kPartBytes = 8 << 20;      // at most
constexpr std::size_t kWorthwhile = 1 << 20;     // less is copied as fast by the driver
constexpr std::size_t kLeastStaging = 1 << 20;   // smaller buffers slow down
constexpr std::size_t kWorthLocking = 64 << 20;  // less does not pay for a buffer of our own, unless one lies there
constexpr int kThreads = 8;                      // more do not copy faster

bool page_locked(const void* host) {
    cudaPointerAttributes attributes{};
    GNND_CUDA(cudaPointerGetAttributes(&attributes, host));
    return attributes.type != cudaMemoryTypeUnregistered;
}

/// f(begin, end) for parts of [0, count) by several threads; f does not throw. OpenMP's team stays as large as it is:
/// a smaller one would end the threads that it does not need, and the next larger one make them again, in a
/// millisecond.
template <class F>
void in_parts(std::int64_t count, const F& f) {
    const int parts = int(std::min<std::int64_t>({kThreads, omp_get_max_threads(), count}));
#pragma omp parallel for schedule(static, 1)
    for (int part = 0; part < parts; ++part) f(count * part / parts, count * (part + 1) / parts);
}

/// The page-locked buffer for a copy of so many bytes; none where the driver does as well.
class StagingBuffer {
  public:
    StagingBuffer(Resources& resources, const void* host, std::size_t bytes) {
        if (bytes < kWorthwhile || page_locked(host)) return;
        staging_ = resources.staging();
        if (staging_.bytes >= kLeastStaging) return;
        staging_ = {};
        if (bytes < kWorthLocking && !PinnedMemory::is_kept(kRingParts * kPartBytes)) return;
        try {
            own_.emplace(kRingParts * kPartBytes);
        } catch (const DeviceError&) {
            return;  // then as the driver does it
        }
        staging_ = {own_->data(), kRingParts * kPartBytes, nullptr};
    }
    const Staging& staging() const { return staging_; }

  private:
    Staging staging_;
    std::optional<PinnedMemory> own_;
};

/// The parts of a page-locked buffer in turn.
class StagingRing {
  public:
    StagingRing(const Staging& staging, std::size_t unit, Stream stream)
        : data_(static_cast<std::byte*>(staging.data)),
          stream_(staging.stream != nullptr ? staging.stream : stream),
          bytes_(std::min(staging.bytes / kRingParts, std::max(kPartBytes, unit)) / unit * unit) {}
    /// Copies may still be reading or writing when an exception passes.
    ~StagingRing() { ignore(cudaStreamSynchronize(stream_)); }
    StagingRing(const StagingRing&) = delete;
    StagingRing& operator=(const StagingRing&) = delete;

    /// Bytes of one part, whole units.
    std::size_t bytes() const { return bytes_; }
    Stream stream() const { return stream_; }
    std::byte* at(std::int64_t turn) const { return data_ + std::size_t(turn % kRingParts) * bytes_; }
    void sent(std::int64_t turn) { GNND_CUDA(cudaEventRecord(events_[turn % kRingParts], stream_)); }
    void await(std::int64_t turn) { GNND_CUDA(cudaEventSynchronize(events_[turn % kRingParts])); }
    /// `second` goes on only after what `first` has now.
    void order(Stream first, Stream second) {
        if (first == second) return;
        GNND_CUDA(cudaEventRecord(between_, first));
        GNND_CUDA(cudaStreamWaitEvent(second, between_, 0));
    }

  private:
    std::byte* data_;
    Stream stream_;
    std::size_t bytes_;
    Event events_[kRingParts], between_;
};

}  // namespace

void copy_in(void* device, const void* source, std::int64_t rows, std::size_t row_bytes, std::size_t stride,
             Resources& resources, Stream stream) {
    const std::size_t bytes = std::size_t(rows) * row_bytes;
    const StagingBuffer buffer(resources, source, bytes);
    const Staging& staging = buffer.staging();
    if (staging.data == nullptr && stride == row_bytes) {
        GNND_CUDA(cudaMemcpyAsync(device, source, bytes, cudaMemcpyDefault, stream));
        return;
    }
    if (staging.bytes / kRingParts < row_bytes) {
        GNND_CUDA(cudaMemcpy2DAsync(device, row_bytes, source, stride, row_bytes, std::size_t(rows), cudaMemcpyDefault,
                                    stream));
        return;
    }
    StagingRing ring(staging, row_bytes, stream);
    const auto* from = static_cast<const std::byte*>(source);
    auto* to = static_cast<std::byte*>(device);
    const auto at_once = std::int64_t(ring.bytes() / row_bytes);
    ring.order(stream, ring.stream());  // the memory may be in use up to here
    for (std::int64_t begin = 0, turn = 0; begin < rows; begin += at_once, ++turn) {
        const std::int64_t count = std::min(at_once, rows - begin);
        if (turn >= kRingParts) ring.await(turn);
        in_parts(count, [&](std::int64_t first, std::int64_t last) {
            std::byte* part = ring.at(turn) + std::size_t(first) * row_bytes;
            const std::byte* row = from + std::size_t(begin + first) * stride;
            if (stride == row_bytes) {
                std::memcpy(part, row, std::size_t(last - first) * row_bytes);
                return;
            }
            for (; first < last; ++first, part += row_bytes, row += stride) std::memcpy(part, row, row_bytes);
        });
        GNND_CUDA(cudaMemcpyAsync(to + std::size_t(begin) * row_bytes, ring.at(turn), std::size_t(count) * row_bytes,
                                  cudaMemcpyHostToDevice, ring.stream()));
        ring.sent(turn);
    }
    ring.order(ring.stream(), stream);
}

void copy_out(void* host, const void* device, std::size_t bytes, Resources& resources, Stream stream) {
    const StagingBuffer buffer(resources, host, bytes);
    const Staging& staging = buffer.staging();
    if (staging.data == nullptr) {
        GNND_CUDA(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDefault, stream));
        return;
    }
    StagingRing ring(staging, 1, stream);
    auto* to = static_cast<std::byte*>(host);
    const auto* from = static_cast<const std::byte*>(device);
    ring.order(stream, ring.stream());
    const auto turns = std::int64_t((bytes + ring.bytes() - 1) / ring.bytes());
    const auto size_of_turn = [&](std::int64_t turn) {
        return std::min(ring.bytes(), bytes - std::size_t(turn) * ring.bytes());
    };
    for (std::int64_t turn = 0; turn < turns + kRingParts - 1; ++turn) {
        if (turn < turns) {
            GNND_CUDA(cudaMemcpyAsync(ring.at(turn), from + std::size_t(turn) * ring.bytes(), size_of_turn(turn),
                                      cudaMemcpyDeviceToHost, ring.stream()));
            ring.sent(turn);
        }
        const std::int64_t done = turn - (kRingParts - 1);
        if (done < 0) continue;
        ring.await(done);
        in_parts(std::int64_t(size_of_turn(done)), [&](std::int64_t first, std::int64_t last) {
            std::memcpy(to + std::size_t(done) * ring.bytes() + first, ring.at(done) + first,
                        std::size_t(last - first));
        });
    }
}

void copy_graph_out(std::int32_t* ids, float* distances, const void* device_ids, const float* device_distances,
                    std::int64_t entries, Resources& resources, Stream stream) {
    copy_out(ids, device_ids, std::size_t(entries) * sizeof(std::int32_t), resources, stream);
    copy_out(distances, device_distances, std::size_t(entries) * sizeof(float), resources, stream);
}

}  // namespace gnnd::cuda

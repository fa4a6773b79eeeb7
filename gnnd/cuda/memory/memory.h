// SPDX-License-Identifier: MIT
#pragma once
/// \file memory.h
/// Device memory and streams, owned.

#include <cstddef>
#include <cstdint>
#include <utility>

#include "gnnd/cuda/runtime/driver.h"
#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/resources.h"

namespace gnnd::cuda {

/// Makes a device current and the one before it current again at the end. Not by cudaSetDevice, which would make a
/// context, some hundred megabytes, on the one before it. A device that seems to be current is pushed, too: what the
/// runtime takes for it may be left from a call that somebody made before on this thread.
class UseDevice {
  public:
    explicit UseDevice(int index) { push_context(index); }
    ~UseDevice() { pop_context(); }
    UseDevice(const UseDevice&) = delete;
    UseDevice& operator=(const UseDevice&) = delete;
};

/// Bytes of device memory that plans leave free: the driver takes some later, for the code of kernels when they are
/// started first, and for their local memory.
inline constexpr std::size_t kMemoryReserve = std::size_t(256) << 20;

/// False: memory is taken as on a GPU without memory pools, for tests. Changed while nobody holds any.
void let_pools_serve(bool wanted);

/// The stream of the caller's resources, or one of its own.
class OwnedStream {
  public:
    explicit OwnedStream(Resources& resources) : stream_(resources.stream()), own_(stream_ == nullptr) {
        // A blocking stream, in order with work on the default stream: where a caller's data may come from.
        if (own_) GNND_CUDA(cudaStreamCreate(&stream_));
    }
    ~OwnedStream() {
        if (own_) ignore(cudaStreamDestroy(stream_));
    }
    OwnedStream(const OwnedStream&) = delete;
    OwnedStream& operator=(const OwnedStream&) = delete;
    operator cudaStream_t() const { return stream_; }

  private:
    cudaStream_t stream_;
    bool own_;
};

/// One block of device memory.
class DeviceMemory {
  public:
    DeviceMemory() = default;
    DeviceMemory(Resources& resources, std::size_t bytes, cudaStream_t stream)
        : resources_(&resources), stream_(stream), bytes_(bytes) {
        if (bytes != 0) data_ = static_cast<std::byte*>(resources.allocate_device(bytes, stream));
    }
    DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
    DeviceMemory& operator=(DeviceMemory&& other) noexcept {
        std::swap(resources_, other.resources_);
        std::swap(stream_, other.stream_);
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~DeviceMemory() {
        if (data_ != nullptr) resources_->deallocate_device(data_, bytes_, stream_);
    }
    std::byte* data() const { return data_; }

  private:
    Resources* resources_ = nullptr;
    cudaStream_t stream_ = nullptr;
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

/// Waits for the stream before what the device may still write to goes back, also when it ends by an exception.
class Drain {
  public:
    explicit Drain(cudaStream_t stream) : stream_(stream) {}
    ~Drain() { ignore(cudaStreamSynchronize(stream_)); }
    Drain(const Drain&) = delete;
    Drain& operator=(const Drain&) = delete;

  private:
    cudaStream_t stream_;
};

/// Page-locked host memory. Comes from a store that keeps what was given back: locking a page takes a millisecond, 32
/// MiB ten. cudaDeviceReset() takes it away, as all that this process has of the device.
class PinnedMemory {
  public:
    explicit PinnedMemory(std::size_t bytes);
    ~PinnedMemory();
    PinnedMemory(const PinnedMemory&) = delete;
    PinnedMemory& operator=(const PinnedMemory&) = delete;
    void* data() const { return data_; }
    /// Whether one of just so many bytes lies there that nobody uses.
    static bool is_kept(std::size_t bytes);

  private:
    void* data_;
    std::size_t bytes_;
};

/// For a few values that the device reports.
template <class T, std::size_t Size>
class PinnedArray {
  public:
    T& operator[](std::size_t i) { return static_cast<T*>(memory_.data())[i]; }

  private:
    PinnedMemory memory_{Size * sizeof(T)};
};

class Event {
  public:
    explicit Event(unsigned flags = cudaEventDisableTiming) { GNND_CUDA(cudaEventCreateWithFlags(&event_, flags)); }
    ~Event() { ignore(cudaEventDestroy(event_)); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    operator cudaEvent_t() const { return event_; }

  private:
    cudaEvent_t event_;
};

}  // namespace gnnd::cuda

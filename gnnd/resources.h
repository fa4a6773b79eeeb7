// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file resources.h
/// The interface through which a build takes its work memory. Whoever embeds gnnd passes an implementation to draw it
/// from a pool or to bound it; the default allocates from the heap.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

struct CUstream_st;

namespace gnnd {

/// A cudaStream_t, without CUDA's headers.
using Stream = CUstream_st*;

/// Page-locked host memory that copies between a GPU and ordinary host memory may go through, and the stream for them.
struct Staging {
    void* data = nullptr;     ///< null: there is none
    std::size_t bytes = 0;    ///< its size
    Stream stream = nullptr;  ///< null: the build's
};

/// Hands out work memory. Implementations are thread-safe and throw (std::bad_alloc or gnnd::Error) when they have no
/// more; a build gives back everything it took, also when it ends by an exception.
class Resources {
  public:
    virtual ~Resources() = default;
    /// At least `bytes` bytes of host memory aligned to 64 bytes, content undefined.
    virtual void* allocate(std::size_t bytes) = 0;
    /// `bytes` as passed to allocate().
    virtual void deallocate(void* pointer, std::size_t bytes) noexcept = 0;

    /// The stream that builds on a GPU run on; null (the default): each build uses one of its own.
    virtual Stream stream() { return nullptr; }
    /// At least `bytes` bytes on the current device, aligned to 256 bytes, for work on the stream; content undefined.
    /// The default is cudaMallocAsync, see keep_device_memory(). \throws OutOfDeviceMemory
    virtual void* allocate_device(std::size_t bytes, Stream stream);
    /// Bytes that allocate_device() could give on the current device now. Builds plan their work memory within it; with
    /// 0, for unknown, they plan as much as makes them fastest. Override both or neither. The default is the sum of
    /// what the driver and its memory pool have free.
    virtual std::size_t free_device_memory();
    /// The page-locked memory for copies between a GPU and ordinary host memory, which a build holds from its start to
    /// its end. Without (the default) large copies go through a buffer of 32 MiB of gnnd's own, one for each build that
    /// runs at the same time, which stay locked until the process ends; small ones are left to the driver, but for
    /// those of a megabyte or more where such a buffer is free.
    virtual Staging staging() { return {}; }
    /// `bytes` and `stream` as passed to allocate_device().
    virtual void deallocate_device(void* pointer, std::size_t bytes, Stream stream) noexcept;
};

/// Sets how much of a GPU's memory stays with the process when builds give back what they took by the default
/// Resources::allocate_device(), in the driver's pool of each GPU, for the next build: taking it anew takes 2.4 ms for
/// a million descriptors. Until this is called 1.5 GiB, as FAISS's StandardGpuResources keep; a pool whose threshold is
/// higher is left as it is. What is kept now goes back at once, so that a program makes room for others between builds
/// by calling it again.
/// \param bytes  0: nothing is kept
/// \throws DeviceError
void keep_device_memory(std::size_t bytes);

/// The default: the heap, and for large requests the system itself.
class HeapResources final : public Resources {
  public:
    void* allocate(std::size_t bytes) override;
    void deallocate(void* pointer, std::size_t bytes) noexcept override;
};

/// Passes requests on to another one, counts what is held (on host and device together) and keeps it under a limit.
class CountedResources final : public Resources {
  public:
    /// \param limit  in bytes; 0: none. Past it allocate() and allocate_device() throw OutOfWorkMemory that says how
    /// much was asked, held and allowed.
    explicit CountedResources(Resources& upstream, std::size_t limit = 0);
    void* allocate(std::size_t bytes) override;
    void deallocate(void* pointer, std::size_t bytes) noexcept override;
    Stream stream() override { return upstream_.stream(); }
    void* allocate_device(std::size_t bytes, Stream stream) override;
    std::size_t free_device_memory() override { return upstream_.free_device_memory(); }
    Staging staging() override { return upstream_.staging(); }
    void deallocate_device(void* pointer, std::size_t bytes, Stream stream) noexcept override;
    std::size_t held() const { return held_; }  ///< bytes now
    std::size_t peak() const { return peak_; }  ///< most bytes so far

  private:
    template <class Allocate>
    void* count(std::size_t bytes, Allocate allocate);

    Resources& upstream_;
    std::size_t limit_;
    std::atomic<std::size_t> held_{0}, peak_{0};
};

/// An array of trivial T taken from a Resources, given back on destruction.
template <class T>
class Buffer {
  public:
    Buffer() = default;
    /// `size` elements, content undefined. \throws as Resources::allocate()
    Buffer(Resources& resources, std::size_t size)
        : resources_(&resources), data_(static_cast<T*>(resources.allocate(size * sizeof(T)))), size_(size) {}
    Buffer(Buffer&& other) noexcept { swap(other); }  ///< `other` is empty then
    /// The memory held here is given back.
    Buffer& operator=(Buffer&& other) noexcept {
        Buffer(static_cast<Buffer&&>(other)).swap(*this);
        return *this;
    }
    ~Buffer() {
        if (data_ != nullptr) resources_->deallocate(data_, size_ * sizeof(T));
    }
    T* data() { return data_; }                                    ///< size() elements
    const T* data() const { return data_; }                        ///< size() elements
    std::size_t size() const { return size_; }                     ///< elements
    T& operator[](std::size_t i) { return data_[i]; }              ///< element i, unchecked
    const T& operator[](std::size_t i) const { return data_[i]; }  ///< element i, unchecked
    T* begin() { return data_; }                                   ///< for loops over a range
    T* end() { return data_ + size_; }                             ///< for loops over a range

  private:
    void swap(Buffer& other) noexcept {
        std::swap(resources_, other.resources_);
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
    }
    Resources* resources_ = nullptr;
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace gnnd

#include "gnnd/cuda/memory/transfer.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "gnnd/cuda/memory/memory.h"
#include "gnnd/error.h"

namespace gnnd::cuda {
namespace {

constexpr int kSlots = 4;
constexpr std::size_t kSlotBytes = 8 << 20;      // at most
constexpr std::size_t kWorthwhile = 1 << 20;     // less is copied as fast by the driver
constexpr std::size_t kLeastStaging = 1 << 20;   // smaller buffers slow down
constexpr std::size_t kWorthLocking = 64 << 20;  // less does not pay for a buffer of our own
constexpr int kThreads = 8;                      // more do not copy faster

bool page_locked(const void* host) {
    cudaPointerAttributes attributes{};
    GNND_CUDA(cudaPointerGetAttributes(&attributes, host));
    return attributes.type != cudaMemoryTypeUnregistered;
}

/// f(begin, end) for parts of [0, count) by several threads; f does not throw.
template <class F>
void in_parts(std::int64_t count, const F& f) {
    const int parts = int(std::min<std::int64_t>({kThreads, omp_get_max_threads(), count}));
#pragma omp parallel for num_threads(parts)
    for (int part = 0; part < parts; ++part) f(count * part / parts, count * (part + 1) / parts);
}

/// The page-locked buffer for a copy of so many bytes; none where the driver does as well.
class Buffered {
  public:
    Buffered(Resources& resources, const void* host, std::size_t bytes) {
        if (bytes < kWorthwhile || page_locked(host)) return;
        staging_ = resources.staging();
        if (staging_.bytes >= kLeastStaging) return;
        staging_ = {};
        if (bytes < kWorthLocking) return;
        try {
            own_.emplace(kSlots * kSlotBytes);
        } catch (const DeviceError&) {
            return;  // then as the driver does it
        }
        staging_ = {own_->data(), kSlots * kSlotBytes, nullptr};
    }
    const Staging& staging() const { return staging_; }

  private:
    Staging staging_;
    std::optional<PinnedMemory> own_;
};

/// The parts of a page-locked buffer in turn.
class Slots {
  public:
    Slots(const Staging& staging, std::size_t unit, Stream stream)
        : data_(static_cast<std::byte*>(staging.data)),
          stream_(staging.stream != nullptr ? staging.stream : stream),
          bytes_(std::min(staging.bytes / kSlots, std::max(kSlotBytes, unit)) / unit * unit) {}
    /// Copies may still be reading or writing when an exception passes.
    ~Slots() { ignore(cudaStreamSynchronize(stream_)); }
    Slots(const Slots&) = delete;
    Slots& operator=(const Slots&) = delete;

    /// What goes into one slot: whole units.
    std::size_t bytes() const { return bytes_; }
    Stream stream() const { return stream_; }
    std::byte* at(std::int64_t turn) const { return data_ + std::size_t(turn % kSlots) * bytes_; }
    void sent(std::int64_t turn) { GNND_CUDA(cudaEventRecord(events_[turn % kSlots], stream_)); }
    void await(std::int64_t turn) { GNND_CUDA(cudaEventSynchronize(events_[turn % kSlots])); }
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
    Event events_[kSlots], between_;
};

}  // namespace

void copy_in(void* device, const void* source, std::int64_t rows, std::size_t row_bytes, std::size_t stride,
             Resources& resources, Stream stream) {
    const std::size_t bytes = std::size_t(rows) * row_bytes;
    const Buffered buffered(resources, source, bytes);
    const Staging& staging = buffered.staging();
    if (staging.data == nullptr && stride == row_bytes) {
        GNND_CUDA(cudaMemcpyAsync(device, source, bytes, cudaMemcpyDefault, stream));
        return;
    }
    if (staging.bytes / kSlots < row_bytes) {
        GNND_CUDA(cudaMemcpy2DAsync(device, row_bytes, source, stride, row_bytes, std::size_t(rows), cudaMemcpyDefault,
                                    stream));
        return;
    }
    Slots slots(staging, row_bytes, stream);
    const auto* from = static_cast<const std::byte*>(source);
    auto* to = static_cast<std::byte*>(device);
    const auto at_once = std::int64_t(slots.bytes() / row_bytes);
    slots.order(stream, slots.stream());  // the memory may be in use up to here
    for (std::int64_t begin = 0, turn = 0; begin < rows; begin += at_once, ++turn) {
        const std::int64_t count = std::min(at_once, rows - begin);
        if (turn >= kSlots) slots.await(turn);
        in_parts(count, [&](std::int64_t first, std::int64_t last) {
            std::byte* slot = slots.at(turn) + std::size_t(first) * row_bytes;
            const std::byte* row = from + std::size_t(begin + first) * stride;
            if (stride == row_bytes) {
                std::memcpy(slot, row, std::size_t(last - first) * row_bytes);
                return;
            }
            for (; first < last; ++first, slot += row_bytes, row += stride) std::memcpy(slot, row, row_bytes);
        });
        GNND_CUDA(cudaMemcpyAsync(to + std::size_t(begin) * row_bytes, slots.at(turn), std::size_t(count) * row_bytes,
                                  cudaMemcpyHostToDevice, slots.stream()));
        slots.sent(turn);
    }
    slots.order(slots.stream(), stream);
}

void copy_out(void* host, const void* device, std::size_t bytes, Resources& resources, Stream stream) {
    const Buffered buffered(resources, host, bytes);
    const Staging& staging = buffered.staging();
    if (staging.data == nullptr) {
        GNND_CUDA(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream));
        return;
    }
    Slots slots(staging, 1, stream);
    auto* to = static_cast<std::byte*>(host);
    const auto* from = static_cast<const std::byte*>(device);
    slots.order(stream, slots.stream());
    const auto turns = std::int64_t((bytes + slots.bytes() - 1) / slots.bytes());
    const auto size_of_turn = [&](std::int64_t turn) {
        return std::min(slots.bytes(), bytes - std::size_t(turn) * slots.bytes());
    };
    for (std::int64_t turn = 0; turn < turns + kSlots - 1; ++turn) {
        if (turn < turns) {
            GNND_CUDA(cudaMemcpyAsync(slots.at(turn), from + std::size_t(turn) * slots.bytes(), size_of_turn(turn),
                                      cudaMemcpyDeviceToHost, slots.stream()));
            slots.sent(turn);
        }
        const std::int64_t done = turn - (kSlots - 1);
        if (done < 0) continue;
        slots.await(done);
        in_parts(std::int64_t(size_of_turn(done)), [&](std::int64_t first, std::int64_t last) {
            std::memcpy(to + std::size_t(done) * slots.bytes() + first, slots.at(done) + first,
                        std::size_t(last - first));
        });
    }
}

}  // namespace gnnd::cuda

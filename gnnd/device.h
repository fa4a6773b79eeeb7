#pragma once
/// \file device.h
/// Where a build runs, and the GPUs of this process for code that does not know CUDA.

#include <string>
#include <string_view>

#include "gnnd/vectors.h"

namespace gnnd {

/// Where a build runs.
struct Device {
    enum class Kind { automatic, cpu, cuda };
    Kind kind = Kind::automatic;  ///< automatic: the GPU where there is one, else the CPU
    int index = 0;                ///< which GPU, for cuda

    friend bool operator==(const Device&, const Device&) = default;
    /// "auto", "cpu", "cuda" or "cuda:N"; throws InvalidArgument otherwise.
    static Device parse(std::string_view text);
    std::string name() const;
};

/// Number of GPUs, whether builds can run on them or not; where it is 0, `why` says the reason.
int device_count(std::string* why = nullptr);

/// Whether builds can run on a GPU; `why` says the reason otherwise.
bool device_usable(int index, std::string& why);

/// The GPU in whose memory the pointer lies; -1 for host memory.
int device_of(const void* pointer);

/// Copies vectors that lie on a GPU (or on the host) to host memory, row-major n x d without gaps.
/// \throws DeviceError
void copy_to_host(const VectorView& vectors, void* out);

}  // namespace gnnd

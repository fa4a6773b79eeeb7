// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file device.h
/// The place of a build, and the GPUs of this process for code that does not know CUDA.

#include <string>
#include <string_view>

#include "gnnd/vectors.h"

namespace gnnd {

/// The place of a build: the CPU, a GPU, or whichever is there.
struct Device {
    /// The kinds of devices.
    enum class Kind { automatic, cpu, cuda };
    Kind kind = Kind::automatic;  ///< automatic: the GPU where there is one, else the CPU
    int index = 0;                ///< which GPU, for cuda

    friend bool operator==(const Device&, const Device&) = default;
    /// "auto", "cpu", "cuda" or "cuda:N"; throws InvalidArgument otherwise.
    static Device parse(std::string_view text);
    /// The text that parse() takes.
    std::string name() const;
};

/// Number of GPUs, whether builds can run on them or not. \param why  gets the reason where it is 0; may be null
int device_count(std::string* why = nullptr);

/// True where builds can run on the GPU of that number. \param why  gets the reason otherwise
bool device_usable(int index, std::string& why);

/// The GPU in whose memory the pointer lies; -1 for host and managed memory.
int device_of(const void* pointer);

/// Copies vectors that lie on a GPU (or on the host) to host memory, row-major without gaps.
/// \param out  n x d components of the vectors' type
/// \throws DeviceError
void copy_to_host(const VectorView& vectors, void* out);

}  // namespace gnnd

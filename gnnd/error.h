// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file error.h
/// Everything that gnnd throws. Nothing in gnnd aborts or exits the process.

#include <stdexcept>
#include <string>

namespace gnnd {

/// Base of all errors thrown by gnnd; what() names the call, the value and what is allowed.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// A parameter, a shape or a value in the vectors is outside of what is allowed.
class InvalidArgument : public Error {
  public:
    using Error::Error;
};

/// A file is missing, unreadable, unwritable, truncated, altered or of an unknown format.
class IoError : public Error {
  public:
    using Error::Error;
};

/// The requested device or feature is not there (no GPU, not compiled in).
class Unavailable : public Error {
  public:
    using Error::Error;
};

/// A CUDA call failed; the message names it with file and line.
class DeviceError : public Error {
  public:
    using Error::Error;
};

/// The device has less memory free than a build needs, or less is allowed. The context stays usable.
class OutOfDeviceMemory : public DeviceError {
  public:
    using DeviceError::DeviceError;
};

/// CountedResources allow less memory than was asked for.
class OutOfWorkMemory : public Error {
  public:
    using Error::Error;
};

/// The interrupt callback asked to stop; no result was produced.
class Interrupted : public Error {
  public:
    using Error::Error;
};

}  // namespace gnnd

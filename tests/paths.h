// SPDX-License-Identifier: MIT
#pragma once
/// \file paths.h
/// Where the tests' data lie, and what tests run. They stand in an object of their own, so that no other depends on the
/// folder that it was compiled in and a cache has it for every folder.

namespace gnnd::test {

extern const char* const kSampleFile;    ///< 20,000 real descriptors
extern const char* const kManifestFile;  ///< a manifest as the first version wrote it
extern const char* const kTool;          ///< gnnd; "" where it is not built
extern const char* const
    kDiskRecorder;  ///< record_disk.cpp; "" under a sanitizer, whose library must be loaded before it
extern const char* const kFewThreads;  ///< few_threads.cpp; "" as before

}  // namespace gnnd::test

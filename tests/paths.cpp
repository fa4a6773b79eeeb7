// SPDX-License-Identifier: MIT
#include "tests/paths.h"

namespace gnnd::test {

const char* const kSampleFile = GNND_TEST_DATA "/photosift20k.u8bin";
const char* const kManifestFile = GNND_TEST_DATA "/manifest_v1.json";
const char* const kTool = GNND_TOOL;
const char* const kDiskRecorder = GNND_DISK_RECORDER;
const char* const kFewThreads = GNND_FEW_THREADS;

}  // namespace gnnd::test

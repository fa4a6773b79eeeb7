// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file version.h
/// The version of the library, written here only (CMake reads it), by the rules of semver.org.

#define GNND_VERSION_MAJOR 0  ///< raised when what compiled against the library no longer does
#define GNND_VERSION_MINOR 1  ///< raised for what is new; while MAJOR is 0 also for what breaks
#define GNND_VERSION_PATCH 0  ///< raised for what was mended

/// One number to compare: 10000 MAJOR + 100 MINOR + PATCH.
#define GNND_VERSION (GNND_VERSION_MAJOR * 10000 + GNND_VERSION_MINOR * 100 + GNND_VERSION_PATCH)

/// \cond
#define GNND_DETAIL_TEXT(x) #x
#define GNND_DETAIL_VERSION(major, minor, patch) \
    GNND_DETAIL_TEXT(major) "." GNND_DETAIL_TEXT(minor) "." GNND_DETAIL_TEXT(patch)
/// \endcond
/// "MAJOR.MINOR.PATCH"
#define GNND_VERSION_STRING GNND_DETAIL_VERSION(GNND_VERSION_MAJOR, GNND_VERSION_MINOR, GNND_VERSION_PATCH)

// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file csr_file.h
/// Files of sparse matrices and of labels, for others to read.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "gnnd/operations.h"

namespace gnnd::io {

/// Formats of sparse matrices; the extension of a file's name, in upper or lower case, tells which.
enum class CsrFormat {
    npz,  ///< as scipy.sparse.save_npz writes it, uncompressed; scipy.sparse.load_npz reads it
    mtx,  ///< Matrix Market: text, one entry a line, counted from 1
};

/// All of them.
inline constexpr std::array kCsrFormats{CsrFormat::npz, CsrFormat::mtx};

/// "npz" or "mtx".
std::string_view name_of(CsrFormat format);

/// \throws IoError for another extension than those of CsrFormat
CsrFormat csr_format_of(const std::string& path);

/// The manner in which a matrix is written.
struct WriteCsr {
    bool symmetric = false;           ///< it is: mtx then holds the lower triangle only, and says so
    int threads = 0;                  ///< that make text of numbers; 0: as many as OpenMP gives
    std::function<bool()> interrupt;  ///< asked many times a second; true ends the call with gnnd::Interrupted
};

/// Writes the matrix atomically (temporary name, fsync, rename). In npz offsets are int32 where they fit, as SciPy's
/// are, and int64 otherwise; columns are int32 and values float32. \throws IoError for another extension, or when it
/// cannot be written, InvalidArgument for a matrix whose arrays do not
///         fit each other; the old file survives in any case
void write_csr(const std::string& path, const CsrGraph& graph, const WriteCsr& how = {});

/// Writes labels atomically: npy as an array of one dimension, ivecs and ibin with n rows of one component.
/// \throws IoError for another extension, or when it cannot be written, InvalidArgument for no labels in ivecs or ibin
void write_labels(const std::string& path, const std::int32_t* labels, std::int64_t n);

}  // namespace gnnd::io

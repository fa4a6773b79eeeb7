// SPDX-License-Identifier: MIT
#pragma once
/// Files of FAISS indexes. Those that gnnd writes end with a checksum, of which plain FAISS sees nothing: it reads no
/// further than the index. Layout after the index: "gnndXXH3", then as u64 the bytes of the index and their XXH3.

#include <faiss/Index.h>

#include <memory>
#include <string>

namespace cli {

/// Replaces the file in one step. \throws gnnd::IoError
void write_index_file(const std::string& path, const faiss::Index& index);

/// Verifies the checksum where there is one, before FAISS reads anything, and what was read in any case: see
/// faiss_ext::check_index().
/// \throws gnnd::IoError, faiss::FaissException; gnnd::InvalidArgument for a graph
std::unique_ptr<faiss::Index> read_index_file(const std::string& path);

}  // namespace cli

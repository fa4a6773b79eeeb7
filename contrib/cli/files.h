#pragma once
/// What the subcommands ask about paths before they open anything.

#include <string>

namespace cli {

/// The formats of vector files, for help texts.
inline constexpr const char* kVectorFormats = "fvecs, bvecs, ivecs, fbin, u8bin, i8bin, ibin or npy";

/// True where the extension is one of a vector file's; graphs may have any other.
bool is_vector_file(const std::string& path);

/// Fails now rather than after the work: the folder of an output file must be there and be writable.
/// \throws gnnd::IoError
void require_writable(const std::string& path);

}  // namespace cli

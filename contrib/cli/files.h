#pragma once
/// What the subcommands ask about paths before they open anything.

#include <string>
#include <vector>

namespace cli {

/// The formats of vector files, for help texts.
inline constexpr const char* kVectorFormats = "fvecs, bvecs, ivecs, fbin, u8bin, i8bin, ibin or npy";

/// True where the extension is one of a vector file's; graphs may have any other.
bool is_vector_file(const std::string& path);

/// Fails now rather than after the work: the folders of the files to write must be there and be writable, and none of
/// the files may be another one, or one of those to keep. Empty names are passed over.
/// \throws gnnd::IoError, CLI::ValidationError
void require_outputs(const std::vector<std::string>& outputs, const std::vector<std::string>& kept);

}  // namespace cli

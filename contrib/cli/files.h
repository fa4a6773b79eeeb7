#pragma once
/// What the subcommands ask about paths before they open anything.

#include <span>
#include <string>
#include <vector>

#include "gnnd/io/base_identity.h"
#include "gnnd/io/vector_file.h"

namespace cli {

/// The formats of vector files, for help texts.
inline constexpr const char* kVectorFormats = "fvecs, bvecs, ivecs, fbin, u8bin, i8bin, ibin or npy";

/// True where the extension is one of a vector file's; graphs may have any other.
bool is_vector_file(const std::string& path);

/// Fails now rather than after the work: the folders of the files to write must be there and be writable, and none of
/// the files may be another one, or one of those to keep. Empty names are passed over.
/// \throws gnnd::IoError, CLI::ValidationError
void require_outputs(const std::vector<std::string>& outputs, const std::vector<std::string>& kept);

/// The files of vectors that a graph is made of. A graph of vectors that have changed meanwhile is a wrong one.
class Bases {
  public:
    /// \param files  one or more, which outlive this object
    explicit Bases(std::span<const gnnd::io::VectorFile> files) : files_(files), identity_(identify(files)) {}
    explicit Bases(const gnnd::io::VectorFile& file) : Bases(std::span(&file, 1)) {}

    /// The identity of all vectors, one file after the other, for the graph file.
    /// \throws gnnd::IoError when one of the files was written to since
    const gnnd::io::BaseIdentity& unchanged() const;

  private:
    std::span<const gnnd::io::VectorFile> files_;
    gnnd::io::BaseIdentity identity_;
};

}  // namespace cli

// SPDX-License-Identifier: MIT
#pragma once
/// What the subcommands ask about paths before they open anything.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gnnd/io/base_identity.h"
#include "gnnd/io/vector_file.h"

namespace cli {

/// The formats of files of vectors and of ids, for help texts: "fvecs, ... or npy".
std::string vector_formats();
/// Those of vectors alone.
std::string base_formats();

/// True where the extension is one of a vector file's; graphs may have any other.
bool is_vector_file(const std::string& path);

/// Fails now rather than after the work: it must be possible to write the files, and none of them may be another one,
/// one of those to keep, or one of the files of a graph in shards. Empty names are passed over.
/// \param work  the folder in which a graph in shards is to be built
/// \throws CLI::ValidationError
void require_outputs(const std::vector<std::string>& outputs, const std::vector<std::string>& kept,
                     const std::string& work = "");

/// The name of a graph to write must be one that is read again as a graph. \throws CLI::ValidationError
void require_graph_output(const std::string& path);

/// A file of that many bytes must have room where it is to be written, beside an older one. \throws gnnd::IoError
void require_room(const std::string& path, std::uint64_t bytes);

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

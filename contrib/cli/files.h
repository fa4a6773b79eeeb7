// SPDX-License-Identifier: MIT
#pragma once
/// The subcommands' questions about paths, before they open anything.

#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/io/base_identity.h"
#include "gnnd/io/vector_file.h"
#include "messages.h"

namespace cli {

/// The formats of files of vectors and of ids, for help texts: "fvecs, ... or npy".
std::string vector_formats();
/// Those of vectors alone.
std::string base_formats();
/// Those that hold components of the type.
std::string formats_of(gnnd::DType dtype);

/// True where the extension is one of a vector file's; graphs may have any other.
bool is_vector_file(const std::string& path);

/// Were a standard stream closed, the next file that is opened would get its number, and what is printed. And a
/// stack may be too small for whatever follows. \throws gnnd::Error
void prepare_process();

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

/// The library counts the objects, "vector 5 holds NaN": the message with the file, and the row of it, that is meant.
/// \param files  of the objects, one after the other
std::string name_row(const std::string& error, const std::vector<const gnnd::io::VectorFile*>& files);

/// Calls f. What it says of an object is said of a row of a file.
template <class F>
decltype(auto) with_row_names(const std::vector<const gnnd::io::VectorFile*>& files, F&& f) {
    const auto renamed = [&](const std::exception& error) {
        const std::string message = message_of(error), named = name_row(message, files);
        if (named != message) throw gnnd::InvalidArgument(named);
    };
    try {
        return f();
    } catch (const std::exception& error) {
        renamed(error);
        throw;
    }
}

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

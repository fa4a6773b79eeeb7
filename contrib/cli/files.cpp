#include "files.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "gnnd/error.h"
#include "gnnd/io/vector_file.h"

namespace cli {

bool is_vector_file(const std::string& path) {
    try {
        gnnd::io::format_of(path);
        return true;
    } catch (const gnnd::IoError&) {
        return false;
    }
}

namespace {

void require_writable(const std::string& path) {
    const std::filesystem::path file(path);
    if (std::filesystem::is_directory(file)) throw gnnd::IoError(path + ": cannot write: is a folder");
    const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
    if (access(folder.c_str(), W_OK | X_OK) != 0)
        throw gnnd::IoError(path + ": cannot write to folder " + folder.string() + ": " + std::strerror(errno));
}

bool same_file(const std::string& a, const std::string& b) {
    std::error_code error;
    if (std::filesystem::equivalent(a, b, error)) return true;
    // Files that are not there yet are compared by name.
    return std::filesystem::weakly_canonical(a, error) == std::filesystem::weakly_canonical(b, error) && !error;
}

}  // namespace

void require_outputs(const std::vector<std::string>& outputs, const std::vector<std::string>& kept) {
    for (auto output = outputs.begin(); output != outputs.end(); ++output) {
        if (output->empty()) continue;
        require_writable(*output);
        for (const std::string& other : kept)
            if (!other.empty() && same_file(*output, other))
                throw CLI::ValidationError(*output + " would be overwritten, which is to be read");
        for (auto other = outputs.begin(); other != output; ++other)
            if (!other->empty() && same_file(*output, *other))
                throw CLI::ValidationError(*output + " is named twice as a file to write");
    }
}

const gnnd::io::BaseIdentity& Bases::unchanged() const {
    for (const gnnd::io::VectorFile& file : files_) file.require_unchanged();
    // What is written through a mapping need not change the time.
    if (identify(files_) != identity_)
        throw gnnd::IoError(files_.front().path() + ": was written to while it was in use");
    return identity_;
}

}  // namespace cli

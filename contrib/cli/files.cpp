#include "files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

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

void require_writable(const std::string& path) {
    const std::filesystem::path file(path);
    if (std::filesystem::is_directory(file)) throw gnnd::IoError(path + ": cannot write: is a folder");
    const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
    if (access(folder.c_str(), W_OK | X_OK) != 0)
        throw gnnd::IoError(path + ": cannot write to folder " + folder.string() + ": " + std::strerror(errno));
}

}  // namespace cli

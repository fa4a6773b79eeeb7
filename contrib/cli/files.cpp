// SPDX-License-Identifier: MIT
#include "files.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "gnnd/error.h"
#include "gnnd/io/detail/atomic_file.h"
#include "gnnd/io/vector_file.h"
#include "gnnd/sharded.h"
#include "gnnd/shards/folder_files.h"
#include "gnnd/shards/folder_lock.h"

namespace cli {

namespace {

/// Those for which `wanted` is true of the type that they hold, or of none where each file tells its own.
template <class Wanted>
std::string formats(const Wanted& wanted) {
    std::string text, last;
    for (const gnnd::io::VectorFormat format : gnnd::io::kVectorFormats) {
        if (!wanted(dtype_of(format))) continue;
        if (!last.empty()) text += (text.empty() ? "" : ", ") + last;
        last = name_of(format);
    }
    return text + " or " + last;
}

}  // namespace

std::string vector_formats() {
    return formats([](auto) { return true; });
}

std::string base_formats() {
    return formats([](auto held) { return held != gnnd::DType::i32; });
}

std::string formats_of(gnnd::DType dtype) {
    return formats([dtype](auto held) { return !held || held == dtype; });
}

bool is_vector_file(const std::string& path) {
    try {
        gnnd::io::format_of(path);
        return true;
    } catch (const gnnd::IoError&) {
        return false;
    }
}

namespace {

/// Below it, threads have no room for the calls of FAISS and OpenMP, and no message says so.
constexpr rlim_t kLeastStack = rlim_t(256) << 10;

void require_writable(const std::string& path) {
    if (path == "-") throw CLI::ValidationError("-: nothing is written to standard output; ./- is a file of that name");
    try {
        const gnnd::io::detail::AtomicFile probe(path);
    } catch (const gnnd::IoError& error) {
        throw CLI::ValidationError(error.what());
    }
}

std::string folder_of(const std::string& path) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    return folder.empty() ? "." : folder.string();
}

/// True where a graph in shards may have a file of that name in its folder.
bool is_shard_file(const std::string& path) {
    const std::string name = std::filesystem::path(path).filename();
    return name == gnnd::shards::kManifestName || name == gnnd::shards::kLockName || gnnd::shards::is_ours(name);
}

bool same_file(const std::string& a, const std::string& b) {
    std::error_code error;
    if (std::filesystem::equivalent(a, b, error)) return true;
    // Files that are not there yet are compared by name, in full: of what is not there a relative one stays relative.
    const auto full = [&](const std::string& path) {
        return std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
    };
    return full(a) == full(b) && !error;
}

}  // namespace

void require_outputs(const std::vector<std::string>& outputs, const std::vector<std::string>& kept,
                     const std::string& work) {
    for (auto output = outputs.begin(); output != outputs.end(); ++output) {
        if (output->empty()) continue;
        for (const std::string& other : kept)
            if (!other.empty() && same_file(*output, other))
                throw CLI::ValidationError(*output + " would be overwritten, which is to be read");
        for (auto other = outputs.begin(); other != output; ++other)
            if (!other->empty() && same_file(*output, *other))
                throw CLI::ValidationError(*output + " is named twice as a file to write");
        const std::string folder = folder_of(*output);
        if (is_shard_file(*output) &&
            ((!work.empty() && same_file(folder, work)) || gnnd::ShardedGraph::is_one(folder)))
            throw CLI::ValidationError(*output + " is a file of the graph in shards in " + folder);
        require_writable(*output);
    }
}

void require_graph_output(const std::string& path) {
    if (is_vector_file(path))
        throw CLI::ValidationError(path + ": a file of that extension is read as vectors, not as a graph; " +
                                   std::filesystem::path(path).replace_extension(".gnnd").string() + " would be one");
}

void prepare_process() {
    for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor)
        // The lowest number that is free is given; what is open for reading only refuses what is printed.
        if (fcntl(descriptor, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != descriptor)
            throw gnnd::IoError("/dev/null: cannot open it in place of a standard stream that is closed");
    rlimit stack;
    if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < kLeastStack)
        throw gnnd::Error("the limit of the stack (ulimit -s) is too small: " + std::to_string(stack.rlim_cur) +
                          " bytes, " + std::to_string(kLeastStack) + " are needed");
}

void require_room(const std::string& path, std::uint64_t bytes) {
    const auto refuse = [&](const char* what, std::uint64_t room) {
        throw gnnd::IoError(path + ": " + what + ": " + std::to_string(bytes) + " bytes are needed, " +
                            std::to_string(room) + " are free");
    };
    struct statvfs disk;
    if (statvfs(folder_of(path).c_str(), &disk) == 0 && bytes > std::uint64_t(disk.f_bavail) * disk.f_frsize)
        refuse("the disk is too small", std::uint64_t(disk.f_bavail) * disk.f_frsize);
    rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur)
        refuse("the limit of a file's size (ulimit -f) is too small", limit.rlim_cur);
}

std::string name_row(const std::string& error, const std::vector<const gnnd::io::VectorFile*>& files) {
    constexpr std::string_view kVector = "vector ", kVectors = "vectors of ",
                               kAdded = "append: of the added vectors: ", kShard = "of the vectors from ",
                               kTooFew = " vectors; a graph needs ", kQuery = "exact_search: query ";
    std::string_view text = error;
    if (text.starts_with(kVectors)) {
        // Of ids, or of a dimension that is too large, which all of the files have.
        const auto ids =
            std::find_if(files.begin(), files.end(), [](const auto* one) { return one->dtype() == gnnd::DType::i32; });
        return (ids == files.end() ? files[0] : *ids)->path() + ": " + error;
    }
    if (files.size() == 1 && text.find(kTooFew) != std::string_view::npos) return files[0]->path() + ": " + error;
    std::size_t file = 0;
    std::int64_t row = 0;
    const auto read_number = [&] {
        std::int64_t number = 0;
        const char* rest = std::from_chars(text.data(), text.data() + text.size(), number).ptr;
        text.remove_prefix(std::size_t(rest - text.data()));
        return number;
    };
    if (text.starts_with(kAdded)) {
        text.remove_prefix(kAdded.size());
        file = files.size() - 1;
    } else if (text.starts_with(kShard)) {
        text.remove_prefix(kShard.size());
        row = read_number();
        text.remove_prefix(std::min(text.find(kVector), text.size()));
    }
    if (text.starts_with(kQuery)) {
        text.remove_prefix(kQuery.size());
        file = files.size() - 1;
    } else if (text.starts_with(kVector)) {
        text.remove_prefix(kVector.size());
    } else {
        return error;
    }
    row += read_number();
    for (; file + 1 < files.size() && row >= files[file]->n(); ++file) row -= files[file]->n();
    return files[file]->path() + ": row " + std::to_string(row) + std::string(text);
}

const gnnd::io::BaseIdentity& Bases::unchanged() const {
    for (const gnnd::io::VectorFile& file : files_) file.require_unchanged();
    // Writing through a mapping need not change the time.
    if (identify(files_) != identity_)
        throw gnnd::IoError(files_.front().path() + ": was written to while it was in use");
    return identity_;
}

}  // namespace cli

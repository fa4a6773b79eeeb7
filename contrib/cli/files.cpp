// SPDX-License-Identifier: MIT
#include "files.h"

#include <sys/resource.h>
#include <sys/statvfs.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <system_error>

#include "gnnd/error.h"
#include "gnnd/io/detail/atomic_file.h"
#include "gnnd/io/vector_file.h"
#include "gnnd/sharded.h"

namespace cli {

namespace {

std::string formats(bool with_ids) {
    std::string text, last;
    for (const gnnd::io::VectorFormat format : gnnd::io::kVectorFormats) {
        if (!with_ids && dtype_of(format) == gnnd::DType::i32) continue;
        if (!last.empty()) text += (text.empty() ? "" : ", ") + last;
        last = name_of(format);
    }
    return text + " or " + last;
}

}  // namespace

std::string vector_formats() {
    return formats(true);
}

std::string base_formats() {
    return formats(false);
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

/// Whether a graph in shards may have a file of that name in its folder.
bool is_shard_file(const std::string& path) {
    const std::string name = std::filesystem::path(path).filename();
    return name == "manifest.json" || name == "lock" || name.starts_with("lists-") || name.starts_with("local-");
}

bool same_file(const std::string& a, const std::string& b) {
    std::error_code error;
    if (std::filesystem::equivalent(a, b, error)) return true;
    // Files that are not there yet are compared by name.
    return std::filesystem::weakly_canonical(a, error) == std::filesystem::weakly_canonical(b, error) && !error;
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

const gnnd::io::BaseIdentity& Bases::unchanged() const {
    for (const gnnd::io::VectorFile& file : files_) file.require_unchanged();
    // What is written through a mapping need not change the time.
    if (identify(files_) != identity_)
        throw gnnd::IoError(files_.front().path() + ": was written to while it was in use");
    return identity_;
}

}  // namespace cli

// SPDX-License-Identifier: MIT
#include "gnnd/shards/folder_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "gnnd/io/vector_file.h"
#include "gnnd/shards/system_error.h"

namespace gnnd::shards {
namespace {

/// Creates the folder, if need be with those above it, each flushed before anything is put into it: a power cut shall
/// not take it away with all that will be in it. One that is there may have been created by a process that got no
/// further.
void make_folder(const std::filesystem::path& folder) {
    const std::filesystem::path above = folder.parent_path();
    std::error_code error;
    if (!std::filesystem::is_directory(folder, error)) {
        make_folder(above);
        if (!std::filesystem::create_directory(folder, error) && error)
            fail(folder, "cannot create the folder", error.value());
    }
    const int descriptor = open(above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;
    const bool broken = fsync(descriptor) != 0 && errno == EIO;  // not every file system can flush a folder
    close(descriptor);
    if (broken) fail(above, "cannot flush the folder", EIO);
}

}  // namespace

std::string file_name(const char* what, int shard, int version) {
    char name[48];
    std::snprintf(name, sizeof name, "%s-%05d.%d.gnnd", what, shard, version);
    return name;
}

std::string vectors_name(DType dtype) {
    for (const io::VectorFormat format : io::kVectorFormats)
        if (const std::string name(name_of(format)); name.ends_with("bin") && io::dtype_of(format) == dtype)
            return "ordered." + name;
    throw_no_vectors(dtype);
}

bool is_ours(const std::string& name) {
    const auto is = [&](const std::string& whole) { return name == whole || name.starts_with(whole + ".tmp."); };
    if (name.starts_with(std::string(kManifestName) + ".tmp.") || is(kOrderName)) return true;
    for (const DType dtype : kVectorDTypes)
        if (is(vectors_name(dtype))) return true;
    for (const char* pattern : {"local-%5d.%d.gnnd%n", "lists-%5d.%d.gnnd%n", "result-%5d.%d.gnnd%n"}) {
        int shard = 0, version = 0, end = 0;
        if (std::sscanf(name.c_str(), pattern, &shard, &version, &end) == 2 && end != 0 && is(name.substr(0, end)))
            return true;
    }
    return false;
}

std::string prepared(const std::string& path) {
    make_folder((std::filesystem::absolute(path) / "").lexically_normal().parent_path());
    return path;
}

std::vector<FileRecord> files_of(const Manifest& manifest) {
    std::vector<FileRecord> files;
    const auto add = [&](const std::optional<FileRecord>& file) {
        if (file) files.push_back(*file);
    };
    add(manifest.vectors);
    add(manifest.order);
    for (const ShardRecord& shard : manifest.shards) {
        add(shard.local);
        add(shard.lists);
        add(shard.result);
    }
    return files;
}

}  // namespace gnnd::shards

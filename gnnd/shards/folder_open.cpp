// SPDX-License-Identifier: MIT
// Opening a folder: what is in it, and whether that and the disk are fit to go on with.
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>

#include "gnnd/error.h"
#include "gnnd/shards/folder.h"
#include "gnnd/shards/folder_files.h"
#include "gnnd/shards/system_error.h"

namespace gnnd::shards {
namespace {

/// Most bytes of the manifest and its next version together.
constexpr std::uint64_t kManifestBytes = 1 << 16;

io::GraphFile open_recorded(const std::string& folder, const Manifest& manifest, int shard, const FileRecord& record,
                            std::int64_t k, std::int64_t objects, int id_bytes) {
    io::GraphFile file(folder + "/" + record.name);
    if (file.bytes() != record.bytes || file.checksum() != record.checksum)
        throw IoError(file.path() + ": altered: not the file that " + kManifestName +
                      " names; without it a resumed build makes it anew");
    if (file.n() != manifest.rows(shard) || file.k() != k || file.objects() != objects ||
        int(file.id_bytes()) != id_bytes || file.metric() != manifest.params.metric ||
        file.dtype() != manifest.base.dtype)
        throw IoError(file.path() + ": invalid: not the graph that " + kManifestName + " describes");
    return file;
}

}  // namespace

int spare_versions(const Manifest& manifest, int workers) {
    constexpr int kOf = 16;  // of so many shards one: a manifest of 1,024 shards takes 40 ms to write
    return std::max(std::min(workers, manifest.count()), manifest.count() / kOf);
}

std::uint64_t disk_need(const Manifest& manifest, int workers, bool checkpoints) {
    const auto bytes_of_lists = [&](std::int64_t rows) {
        return io::graph_file_bytes(rows, manifest.params.k, false, false, std::size_t(manifest.id_bytes));
    };
    std::uint64_t bytes = 2 * kManifestBytes + 8 * std::uint64_t(manifest.count()) * manifest.count();
    std::uint64_t lists = 0, merging = 0;  // what is there all the time, and beside it until merges are through
    for (int i = 0; i < manifest.count(); ++i) {
        lists += bytes_of_lists(manifest.rows(i));
        if (checkpoints && manifest.count() > 1)
            merging += io::graph_file_bytes(manifest.rows(i), manifest.local_columns());
    }
    merging += std::uint64_t(spare_versions(manifest, workers)) * bytes_of_lists(manifest.most_rows());
    if (!manifest.is_ordered()) return bytes + lists + merging;
    constexpr std::uint64_t kHeader = 8;
    const auto n = std::uint64_t(manifest.base.n);
    merging += kHeader + n * std::uint64_t(manifest.base.d) * size_of(manifest.base.dtype);
    return bytes + kHeader + n * std::uint64_t(manifest.id_bytes) + lists + std::max(merging, lists);
}

io::GraphFile open_local(const std::string& folder, const Manifest& manifest, int shard) {
    return open_recorded(folder, manifest, shard, manifest.shards[shard].local.value(), manifest.local_columns(),
                         manifest.rows(shard), sizeof(std::int32_t));
}

io::GraphFile open_lists(const std::string& folder, const Manifest& manifest, int shard) {
    return open_recorded(folder, manifest, shard, manifest.shards[shard].lists.value(), manifest.params.k,
                         manifest.base.n, manifest.id_bytes);
}

Folder::Folder(const std::string& path, const Manifest& wanted, bool resume, int workers, bool checkpoints)
    : path_(prepared(path)),
      objects_(wanted.base.n),
      dtype_(wanted.base.dtype),
      lock_(path_),
      free_spares_(spare_versions(wanted, workers)),
      manifest_(wanted) {
    if (std::filesystem::exists(in_folder(kBuildName)) && !std::filesystem::exists(in_folder(kManifestName)))
        throw IoError(path + ": several processes build a graph there; `python -m gnnd worker` goes on with it");
    const std::string manifest_path = in_folder(kManifestName);
    bool there = std::filesystem::exists(manifest_path);
    if (there && !resume) {
        if (!files_of(Manifest::read(manifest_path)).empty())
            throw IoError(path + ": holds a graph in shards, or a part of one; resume it, or take another folder");
        there = false;
        remove_orphans();
    }
    if (there) {
        manifest_ = Manifest::read(manifest_path);
        const std::string difference = manifest_.difference(wanted);
        if (!difference.empty()) throw IoError(path + ": holds a part of another graph: " + difference);
        manifest_.base = wanted.base;  // under its present name, and with what older manifests do not tell
        seconds_before_ = manifest_.seconds;
        check_files();
        if (manifest_.is_ordered()) commit();  // for the order has the same name again
        remove_orphans();
    } else {
        for (const auto& entry : std::filesystem::directory_iterator(path_))
            if (const std::string name = entry.path().filename(); is_ours(name) && !name.starts_with(kManifestName))
                throw IoError(path + ": holds " + name + " of a graph in shards, but no " + kManifestName +
                              "; take another folder");
    }
    if (manifest_.complete) return;
    check_disk(disk_need(manifest_, workers, checkpoints));
    if (!there) manifest_.write(manifest_path);
}

/// The files that are left become orphans, which no manifest names.
void Folder::forget_all() {
    for (ShardRecord& shard : manifest_.shards) {
        const int version = shard.version;
        shard = {};
        shard.version = version;
    }
    manifest_.vectors.reset();
    manifest_.order.reset();
    manifest_.complete = false;
    manifest_.recall = {};
    ahead_ = true;
}

void Folder::check_files() {
    const auto is_gone = [&](const std::optional<FileRecord>& file) {
        std::error_code error;
        return file && std::filesystem::symlink_status(in_folder(file->name), error).type() ==
                           std::filesystem::file_type::not_found;
    };
    const auto has_gone_lists = [&](const ShardRecord& shard) { return is_gone(shard.lists); };
    if (manifest_.is_ordered()) {
        const bool gone = std::any_of(manifest_.shards.begin(), manifest_.shards.end(), has_gone_lists);
        // Lists cannot be made again without the vectors, nor results of the complete set without lists.
        if (is_gone(manifest_.vectors) || is_gone(manifest_.order) || (gone && !manifest_.vectors)) forget_all();
        if (manifest_.vectors) open_vectors();
        if (manifest_.order) open_order();
    }
    for (int i = 0; i < manifest_.count(); ++i) {
        ShardRecord& shard = manifest_.shards[i];
        if (is_gone(shard.result)) {
            shard.result.reset();
            ahead_ = true;
        }
        if (is_gone(shard.local)) {
            shard.local.reset();
            ahead_ = true;
        }
        if (is_gone(shard.lists)) {
            shard.lists.reset();
            shard.merged.clear();
            manifest_.complete = false;
            manifest_.recall = {};
            ahead_ = true;
        }
        if (shard.local) open_local(i);
        if (shard.lists) open_lists(i);
        if (shard.result)
            open_recorded(path_, manifest_, i, *shard.result, manifest_.params.k, objects_, manifest_.id_bytes);
    }
}

void Folder::check_disk(std::uint64_t need) const {
    std::uint64_t there = 0;
    for (const FileRecord& file : files_of(manifest_)) there += file.bytes;
    struct statvfs disk;
    if (statvfs(path_.c_str(), &disk) != 0) fail(path_, "cannot look at the disk", errno);
    const std::uint64_t free = std::uint64_t(disk.f_bavail) * disk.f_frsize;
    if (need > free + there)
        throw IoError(path_ + ": the disk is too small: " + std::to_string(need - there) + " bytes are needed, " +
                      std::to_string(free) + " are free");
}

void Folder::remove_orphans() const {
    std::set<std::string> named;
    for (const FileRecord& file : files_of(manifest_)) named.insert(file.name);
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(path_, ignored)) {
        const std::string name = entry.path().filename();
        if (is_ours(name) && !named.contains(name)) std::filesystem::remove(entry.path(), ignored);
    }
}

}  // namespace gnnd::shards

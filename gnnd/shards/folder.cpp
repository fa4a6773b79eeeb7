// SPDX-License-Identifier: MIT
#include "gnnd/shards/folder.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <set>
#include <system_error>

#include "gnnd/error.h"
#include "gnnd/shards/system_error.h"

namespace gnnd::shards {
namespace {

/// What the manifest itself and its next version may take.
constexpr std::uint64_t kManifestBytes = 1 << 16;

std::string file_name(const char* what, int shard, int version) {
    char name[48];
    std::snprintf(name, sizeof name, "%s-%05d.%d.gnnd", what, shard, version);
    return name;
}

/// Whether a build may have written a file of this name, whole or not.
bool is_ours(const std::string& name) {
    if (name.starts_with(std::string(kManifestName) + ".tmp.")) return true;
    int shard = 0, version = 0, end = 0;
    if (std::sscanf(name.c_str(), "local-%5d.%d.gnnd%n", &shard, &version, &end) != 2 || end == 0)
        if (std::sscanf(name.c_str(), "lists-%5d.%d.gnnd%n", &shard, &version, &end) != 2 || end == 0) return false;
    const std::string rest = name.substr(end);
    return rest.empty() || rest.starts_with(".tmp.");
}

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

std::string prepared(const std::string& path) {
    make_folder((std::filesystem::absolute(path) / "").lexically_normal().parent_path());
    return path;
}

/// Whether anything was finished.
bool names_files(const Manifest& manifest) {
    return std::any_of(manifest.shards.begin(), manifest.shards.end(),
                       [](const ShardRecord& shard) { return shard.local || shard.lists; });
}

io::GraphFile open_recorded(const std::string& folder, const Manifest& manifest, int shard, const FileRecord& record,
                            std::int64_t k, std::int64_t objects) {
    io::GraphFile file(folder + "/" + record.name);
    if (file.bytes() != record.bytes || file.checksum() != record.checksum)
        throw IoError(file.path() + ": altered: not the file that " + kManifestName +
                      " names; without it a resumed build makes it anew");
    if (file.n() != manifest.rows(shard) || file.k() != k || file.objects() != objects ||
        file.metric() != manifest.params.metric || file.dtype() != manifest.base.dtype)
        throw IoError(file.path() + ": invalid: not the graph that " + kManifestName + " describes");
    return file;
}

}  // namespace

int spare_versions(const Manifest& manifest, int workers) {
    constexpr int kOf = 16;  // of so many shards one: a manifest of 1,024 shards takes 40 ms to write
    return std::max(std::min(workers, manifest.count()), manifest.count() / kOf);
}

std::uint64_t disk_need(const Manifest& manifest, int workers) {
    const std::int64_t k = manifest.params.k;
    std::uint64_t bytes = 2 * kManifestBytes + 8 * std::uint64_t(manifest.count()) * manifest.count();
    for (int i = 0; i < manifest.count(); ++i) {
        bytes += io::graph_file_bytes(manifest.rows(i), k);
        if (manifest.count() > 1) bytes += io::graph_file_bytes(manifest.rows(i), manifest.local_columns());
    }
    return bytes + std::uint64_t(spare_versions(manifest, workers)) * io::graph_file_bytes(manifest.most_rows(), k);
}

io::GraphFile open_local(const std::string& folder, const Manifest& manifest, int shard) {
    return open_recorded(folder, manifest, shard, manifest.shards[shard].local.value(), manifest.local_columns(),
                         manifest.rows(shard));
}

io::GraphFile open_lists(const std::string& folder, const Manifest& manifest, int shard) {
    return open_recorded(folder, manifest, shard, manifest.shards[shard].lists.value(), manifest.params.k,
                         manifest.base.n);
}

Folder::Folder(const std::string& path, const Manifest& wanted, bool resume, int workers)
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
        if (names_files(Manifest::read(manifest_path)))
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
        remove_orphans();
    } else {
        for (const auto& entry : std::filesystem::directory_iterator(path_))
            if (const std::string name = entry.path().filename(); is_ours(name) && !name.starts_with(kManifestName))
                throw IoError(path + ": holds " + name + " of a graph in shards, but no " + kManifestName +
                              "; take another folder");
    }
    if (manifest_.complete) return;
    check_disk(workers);
    if (!there) manifest_.write(manifest_path);
}

Manifest Folder::manifest() const {
    const std::lock_guard lock(mutex_);
    return manifest_;
}

io::GraphFile Folder::open_local(int shard) const {
    return shards::open_local(path_, manifest(), shard);
}

io::GraphFile Folder::open_lists(int shard) const {
    return shards::open_lists(path_, manifest(), shard);
}

void Folder::check_files() {
    const auto is_gone = [&](const std::optional<FileRecord>& file) {
        std::error_code error;
        return file && std::filesystem::symlink_status(in_folder(file->name), error).type() ==
                           std::filesystem::file_type::not_found;
    };
    for (int i = 0; i < manifest_.count(); ++i) {
        ShardRecord& shard = manifest_.shards[i];
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
    }
}

void Folder::check_disk(int workers) const {
    std::uint64_t there = 0;
    for (const ShardRecord& shard : manifest_.shards)
        for (const auto& file : {shard.local, shard.lists})
            if (file) there += file->bytes;
    struct statvfs disk;
    if (statvfs(path_.c_str(), &disk) != 0) fail(path_, "cannot look at the disk", errno);
    const std::uint64_t free = std::uint64_t(disk.f_bavail) * disk.f_frsize;
    const std::uint64_t need = disk_need(manifest_, workers);
    if (need > free + there)
        throw IoError(path_ + ": the disk is too small: " + std::to_string(need - there) + " bytes are needed, " +
                      std::to_string(free) + " are free");
}

void Folder::remove_orphans() const {
    std::set<std::string> named;
    for (const ShardRecord& shard : manifest_.shards)
        for (const auto& file : {shard.local, shard.lists})
            if (file) named.insert(file->name);
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(path_, ignored)) {
        const std::string name = entry.path().filename();
        if (is_ours(name) && !named.contains(name)) std::filesystem::remove(entry.path(), ignored);
    }
}

FileRecord Folder::write(const std::string& name, const KnnGraphView& graph, std::int64_t objects) const {
    io::write_graph(in_folder(name), graph, dtype_, objects);
    const io::GraphFile file(in_folder(name));
    return {name, file.bytes(), file.checksum()};
}

void Folder::put_local(int shard, const KnnGraphView& local) {
    put(shard, "local", &ShardRecord::local, local, 0, nullptr);
}

void Folder::put_lists(int shard, const KnnGraphView& lists, const std::vector<int>& merged) {
    put(shard, "lists", &ShardRecord::lists, lists, objects_, &merged);
}

/// What fails leaves a file that no manifest names, for the next process to delete: the manifest on disk may name it
/// where its own writing failed at the very end.
void Folder::put(int shard, const char* what, std::optional<FileRecord> ShardRecord::*which, const KnnGraphView& graph,
                 std::int64_t objects, const std::vector<int>* merged) {
    std::unique_lock lock(mutex_);
    const ShardRecord& old = manifest_.shards[shard];
    const int spares = old.*which ? 1 : 0;  // a first version takes no more room than the last
    while (free_spares_ < spares) {
        if (!replaced_.empty())
            commit_locked();
        else
            changed_.wait(lock);
    }
    free_spares_ -= spares;
    // Never a name that was used before: what the manifest on disk names stays until it names another.
    const int version = versions_[shard] = std::max(versions_[shard], old.version) + 1;
    lock.unlock();
    std::optional<FileRecord> file;
    try {
        file = write(file_name(what, shard, version), graph, objects);
    } catch (...) {
        lock.lock();
        free_spares_ += spares;
        changed_.notify_all();
        throw;
    }
    lock.lock();
    ShardRecord& record = manifest_.shards[shard];
    if (record.*which) replaced_.push_back(*(record.*which));
    record.version = std::max(record.version, version);
    record.*which = file;
    if (merged != nullptr) record.merged = *merged;
    ahead_ = true;
    changed_.notify_all();
}

void Folder::note_samples(int samples) {
    const std::lock_guard lock(mutex_);
    manifest_.samples = std::max(manifest_.samples, samples);
}

void Folder::commit() {
    const std::lock_guard lock(mutex_);
    commit_locked();
}

/// Files are deleted once the manifest that does not name them is durable, and only then.
void Folder::commit_locked() {
    if (!ahead_) return;
    const std::chrono::duration<double> here = std::chrono::steady_clock::now() - opened_;
    manifest_.seconds = seconds_before_ + here.count();
    manifest_.write(in_folder(kManifestName));
    ahead_ = false;
    std::error_code ignored;
    for (const FileRecord& file : replaced_) std::filesystem::remove(in_folder(file.name), ignored);
    free_spares_ += int(replaced_.size());
    replaced_.clear();
    changed_.notify_all();
}

void Folder::complete(const RecallEstimate& recall) {
    const std::lock_guard lock(mutex_);
    std::vector<FileRecord> locals;
    for (ShardRecord& shard : manifest_.shards) {
        if (shard.local) locals.push_back(*shard.local);
        shard.local.reset();
    }
    manifest_.complete = ahead_ = true;
    manifest_.recall = recall;
    commit_locked();
    std::error_code ignored;
    for (const FileRecord& file : locals) std::filesystem::remove(in_folder(file.name), ignored);
}

}  // namespace gnnd::shards

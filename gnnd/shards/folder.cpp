#include "gnnd/shards/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <set>
#include <system_error>

#include "gnnd/error.h"

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

[[noreturn]] void fail(const std::string& path, const std::string& what, int error) {
    throw IoError(path + ": " + what + ": " + std::generic_category().message(error));
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
    if (descriptor >= 0) {  // not every file system can flush a folder
        fsync(descriptor);
        close(descriptor);
    }
}

std::string prepared(const std::string& path) {
    make_folder((std::filesystem::absolute(path) / "").lexically_normal().parent_path());
    return path;
}

}  // namespace

FolderLock::FolderLock(const std::string& folder) {
    const std::string path = folder + "/lock";
    descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail(path, "cannot create", errno);
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
        const int error = errno;
        char text[32] = {};
        if (pread(descriptor_, text, sizeof text - 1, 0) < 0) text[0] = '\0';
        close(descriptor_);
        if (error != EWOULDBLOCK) fail(path, "cannot lock", error);
        throw IoError(folder + ": in use by process " + std::to_string(std::atoi(text)));
    }
    // Only told to others; that a full disk may leave it out does not matter.
    const std::string text = std::to_string(getpid()) + "\n";
    if (ftruncate(descriptor_, 0) != 0 || pwrite(descriptor_, text.data(), text.size(), 0) < 0) return;
}

FolderLock::~FolderLock() {
    close(descriptor_);
}

io::GraphFile open_recorded(const std::string& folder, const FileRecord& record) {
    io::GraphFile file(folder + "/" + record.name);
    if (file.bytes() != record.bytes || file.checksum() != record.checksum)
        throw IoError(file.path() + ": altered: not the file that " + kManifestName + " names");
    return file;
}

std::uint64_t disk_need(const Manifest& manifest, int workers) {
    const std::int64_t k = manifest.params.k;
    std::uint64_t bytes = 2 * kManifestBytes + 8 * std::uint64_t(manifest.count()) * manifest.count();
    for (int i = 0; i < manifest.count(); ++i) {
        bytes += io::graph_file_bytes(manifest.rows(i), k);
        if (manifest.count() > 1) bytes += io::graph_file_bytes(manifest.rows(i), manifest.local_columns());
    }
    return bytes + std::uint64_t(std::min(workers, manifest.count())) * io::graph_file_bytes(manifest.most_rows(), k);
}

Folder::Folder(const std::string& path, const Manifest& wanted, bool resume, int workers)
    : path_(prepared(path)),
      objects_(wanted.base.n),
      dtype_(wanted.base.dtype),
      lock_(path_),
      free_writers_(workers),
      manifest_(wanted) {
    const std::string manifest_path = in_folder(kManifestName);
    const bool there = std::filesystem::exists(manifest_path);
    if (there) {
        if (!resume)
            throw IoError(path + ": holds a graph in shards, or a part of one; resume it, or take another folder");
        manifest_ = Manifest::read(manifest_path);
        const std::string difference = manifest_.difference(wanted);
        if (!difference.empty()) throw IoError(path + ": holds a part of another graph: " + difference);
        manifest_.base.path = wanted.base.path;
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
    return open_recorded(path_, manifest().shards[shard].local.value());
}

io::GraphFile Folder::open_lists(int shard) const {
    return open_recorded(path_, manifest().shards[shard].lists.value());
}

void Folder::check_files() const {
    for (const ShardRecord& shard : manifest_.shards)
        for (const auto& file : {shard.local, shard.lists})
            if (file) open_recorded(path_, *file);
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

template <class Change>
void Folder::commit(const std::vector<FileRecord>& added, const std::vector<FileRecord>& dropped,
                    const Change& change) {
    std::error_code ignored;
    try {
        const std::lock_guard lock(mutex_);
        Manifest next = manifest_;
        change(next);
        const std::chrono::duration<double> here = std::chrono::steady_clock::now() - opened_;
        next.seconds = seconds_before_ + here.count();
        next.write(in_folder(kManifestName));
        manifest_ = std::move(next);
    } catch (...) {
        for (const FileRecord& file : added) std::filesystem::remove(in_folder(file.name), ignored);
        throw;
    }
    for (const FileRecord& file : dropped) std::filesystem::remove(in_folder(file.name), ignored);
}

void Folder::commit_local(int shard, const KnnGraphView& local) {
    replace(shard, "local", &ShardRecord::local, local, 0, nullptr);
}

void Folder::commit_lists(int shard, const KnnGraphView& lists, const std::vector<int>& merged) {
    replace(shard, "lists", &ShardRecord::lists, lists, objects_, &merged);
}

void Folder::replace(int shard, const char* what, std::optional<FileRecord> ShardRecord::*which,
                     const KnnGraphView& graph, std::int64_t objects, const std::vector<int>* merged) {
    ShardRecord old;
    int version = 0, writers = 0;
    {
        std::unique_lock lock(mutex_);
        old = manifest_.shards[shard];
        writers = old.*which ? 1 : 0;  // a first version takes no more room than the last
        writer_left_.wait(lock, [&] { return free_writers_ >= writers; });
        free_writers_ -= writers;
        // Never a name that was used before: what the manifest on disk names stays until it names another.
        version = versions_[shard] = std::max(versions_[shard], old.version) + 1;
    }
    const auto leave = [&] {
        const std::lock_guard lock(mutex_);
        free_writers_ += writers;
        writer_left_.notify_all();
    };
    try {
        const FileRecord file = write(file_name(what, shard, version), graph, objects);
        std::vector<FileRecord> dropped;
        if (old.*which) dropped.push_back((old.*which).value());
        commit({file}, dropped, [&](Manifest& next) {
            ShardRecord& record = next.shards[shard];
            record.version = std::max(record.version, version);
            record.*which = file;
            if (merged != nullptr) record.merged = *merged;
        });
    } catch (...) {
        leave();
        throw;
    }
    leave();
}

void Folder::complete() {
    std::vector<FileRecord> dropped;
    for (const ShardRecord& shard : manifest().shards)
        if (shard.local) dropped.push_back(*shard.local);
    commit({}, dropped, [](Manifest& next) {
        for (ShardRecord& shard : next.shards) shard.local.reset();
        next.complete = true;
    });
}

}  // namespace gnnd::shards

// SPDX-License-Identifier: MIT
#include "gnnd/shards/folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "gnnd/error.h"
#include "gnnd/shards/folder_files.h"

namespace gnnd::shards {
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

std::string Folder::vectors_path() const {
    return in_folder(vectors_name(dtype_));
}

std::string Folder::order_path() const {
    return in_folder(kOrderName);
}

void Folder::note_order() {
    const auto record_of = [](const std::string& path) {
        return FileRecord{std::filesystem::path(path).filename(), std::filesystem::file_size(path),
                          io::identify(io::VectorFile(path)).checksum};
    };
    const FileRecord vectors = record_of(vectors_path()), order = record_of(order_path());
    const std::lock_guard lock(mutex_);
    manifest_.vectors = vectors;
    manifest_.order = order;
    ahead_ = true;
    commit_locked();
}

io::VectorFile Folder::open_vector_file(const std::optional<FileRecord>& record) const {
    io::VectorFile file(in_folder(record.value().name));
    if (std::filesystem::file_size(file.path()) != record->bytes || io::identify(file).checksum != record->checksum)
        throw IoError(file.path() + ": altered: not the file that " + kManifestName +
                      " names; without it a resumed build begins anew");
    return file;
}

io::VectorFile Folder::open_vectors() const {
    return open_vector_file(manifest().vectors);
}

io::VectorFile Folder::open_order() const {
    return open_vector_file(manifest().order);
}

void Folder::end_merges(const RecallEstimate& recall) {
    const std::lock_guard lock(mutex_);
    std::vector<FileRecord> gone = take_locals();
    gone.push_back(*std::exchange(manifest_.vectors, std::nullopt));
    manifest_.recall = recall;
    commit_without(gone);
}

void Folder::put_local(int shard, const KnnGraphView& local) {
    put(shard, "local", &ShardRecord::local, local, 0, nullptr);
}

template <class Id>
void Folder::put_lists(int shard, const GraphView<Id>& lists, const std::vector<int>& merged) {
    put(shard, "lists", &ShardRecord::lists, lists, objects_, &merged);
}
template void Folder::put_lists(int, const KnnGraphView&, const std::vector<int>&);
template void Folder::put_lists(int, const WideGraphView&, const std::vector<int>&);

template <class Id>
void Folder::put_result(int shard, const GraphView<Id>& result) {
    put(shard, "result", &ShardRecord::result, result, objects_, nullptr);
}
template void Folder::put_result(int, const KnnGraphView&);
template void Folder::put_result(int, const WideGraphView&);

/// A failure leaves a file for the next process to delete if no manifest names it: the manifest on disk may, where its
/// own writing failed at the very end.
template <class Id>
void Folder::put(int shard, const char* what, std::optional<FileRecord> ShardRecord::*which, const GraphView<Id>& graph,
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
        const std::string name = file_name(what, shard, version);
        io::write_graph(in_folder(name), graph, dtype_, objects);
        const io::GraphFile written(in_folder(name));
        file = FileRecord{name, written.bytes(), written.checksum()};
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
    std::vector<FileRecord> gone = take_locals();
    for (ShardRecord& shard : manifest_.shards)
        if (shard.result) gone.push_back(*std::exchange(shard.lists, std::exchange(shard.result, std::nullopt)));
    if (manifest_.order) gone.push_back(*std::exchange(manifest_.order, std::nullopt));
    manifest_.complete = true;
    manifest_.recall = recall;
    commit_without(gone);
}

/// The manifest names them no more.
std::vector<FileRecord> Folder::take_locals() {
    std::vector<FileRecord> locals;
    for (ShardRecord& shard : manifest_.shards)
        if (shard.local) locals.push_back(*std::exchange(shard.local, std::nullopt));
    return locals;
}

/// Deletes files that the manifest names no more, once that is durable.
void Folder::commit_without(const std::vector<FileRecord>& files) {
    ahead_ = true;
    commit_locked();
    std::error_code ignored;
    for (const FileRecord& file : files) std::filesystem::remove(in_folder(file.name), ignored);
}

}  // namespace gnnd::shards

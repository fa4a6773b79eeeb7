// SPDX-License-Identifier: MIT
// ShardedGraph: reading a finished folder.
#include <algorithm>
#include <filesystem>

#include "gnnd/error.h"
#include "gnnd/sharded.h"
#include "gnnd/shards/folder.h"
#include "gnnd/shards/ids.h"

namespace gnnd {
namespace {

using namespace shards;

/// The folder of a path that may be that of its manifest.
std::string folder_of(const std::string& path) {
    const std::filesystem::path given(path);
    if (given.filename() != kManifestName) return path;
    return given.has_parent_path() ? given.parent_path().string() : ".";
}

std::string manifest_of(const std::string& folder) {
    return folder + "/" + kManifestName;
}

std::string what_is_missing(const Manifest& manifest) {
    std::int64_t built = 0, merged = 0;
    for (const ShardRecord& shard : manifest.shards) {
        built += shard.built();
        merged += std::int64_t(shard.merged.size());
    }
    return std::to_string(manifest.count() - built) + " of " + std::to_string(manifest.count()) +
           " shards are not built, " + std::to_string((2 * manifest.pairs() - merged + 1) / 2) + " of " +
           std::to_string(manifest.pairs()) + " pairs not merged" +
           (manifest.is_ordered() ? ", of which near ones are enough" : "");
}

}  // namespace

struct ShardedGraph::State {
    std::string folder;
    Manifest manifest;
    std::uint64_t bytes = 0;

    template <class Id>
    void read(std::int64_t begin, std::int64_t count, Id* ids, float* distances) const {
        const std::int64_t k = manifest.params.k;
        for (int i = 0; i < manifest.count(); ++i) {
            const std::int64_t from = std::max(begin, manifest.begin(i));
            const std::int64_t to = std::min(begin + count, manifest.begin(i + 1));
            if (from >= to) continue;
            const std::int64_t place = (from - begin) * k;
            open_lists(folder, manifest, i)
                .read_into(from - manifest.begin(i), to - from, ids + place, distances + place);
        }
    }
};

ShardedGraph::ShardedGraph(const std::string& path) {
    State state;
    state.folder = folder_of(path);
    state.manifest = Manifest::read(manifest_of(state.folder));
    const Manifest& manifest = state.manifest;
    if (!manifest.complete) throw IoError(path + ": not finished: " + what_is_missing(manifest) + "; resume the build");
    for (int i = 0; i < manifest.count(); ++i) state.bytes += open_lists(state.folder, manifest, i).bytes();
    state_ = std::make_unique<const State>(std::move(state));
}

ShardedGraph::~ShardedGraph() = default;
ShardedGraph::ShardedGraph(ShardedGraph&&) noexcept = default;

bool ShardedGraph::is_one(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(manifest_of(folder_of(path)), ignored) &&
           (std::filesystem::is_directory(path, ignored) || folder_of(path) != path);
}

std::int64_t ShardedGraph::n() const {
    return state_->manifest.base.n;
}
std::int64_t ShardedGraph::k() const {
    return state_->manifest.params.k;
}
int ShardedGraph::id_bytes() const {
    return state_->manifest.id_bytes;
}
int ShardedGraph::shards() const {
    return state_->manifest.count();
}
Metric ShardedGraph::metric() const {
    return state_->manifest.params.metric;
}
DType ShardedGraph::dtype() const {
    return state_->manifest.base.dtype;
}
std::uint64_t ShardedGraph::bytes() const {
    return state_->bytes;
}
const std::string& ShardedGraph::base() const {
    return state_->manifest.base.path;
}

const RecallEstimate& ShardedGraph::recall() const {
    return state_->manifest.recall;
}

std::optional<io::BaseIdentity> ShardedGraph::base_identity() const {
    const BaseRecord& base = state_->manifest.base;
    if (!base.checksum) return std::nullopt;
    return io::BaseIdentity{base.n, base.d, base.dtype, *base.checksum};
}

void ShardedGraph::read(std::int64_t begin, std::int64_t count, std::int64_t* ids, float* distances) const {
    if (begin < 0 || count < 0 || begin > n() - count)
        throw InvalidArgument(state_->folder + ": rows " + std::to_string(begin) + " + " + std::to_string(count) +
                              " are outside of 0 to " + std::to_string(n()));
    state_->read(begin, count, ids, distances);
}

void ShardedGraph::write(const std::string& path, const std::function<bool()>& interrupt) const {
    with_id_type(id_bytes_for(n()), [&]<class Id>(Id) {
        const std::function<void(std::int64_t, std::int64_t, Id*, float*)> read =
            [&](std::int64_t begin, std::int64_t count, Id* ids, float* distances) {
                if (interrupt && interrupt()) throw Interrupted("interrupted by the caller");
                state_->read(begin, count, ids, distances);
            };
        io::write_graph(path, n(), k(), metric(), dtype(), base_identity(), read, recall());
    });
}

}  // namespace gnnd

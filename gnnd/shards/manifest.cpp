// SPDX-License-Identifier: MIT
#include "gnnd/shards/manifest.h"

#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "gnnd/error.h"
#include "gnnd/io/base_identity.h"
#include "gnnd/io/detail/atomic_file.h"
#include "gnnd/io/detail/graph_header.h"
#include "gnnd/io/detail/mapped_file.h"
#include "gnnd/merge.h"
#include "gnnd/shards/ids.h"
#include "gnnd/shards/manifest_json.h"
#include "gnnd/shards/schedule.h"

namespace gnnd::shards {
namespace {

constexpr const char* kFormat = "gnnd graph in shards";
constexpr int kVersion = 4;

/// The difference of two values, for messages; empty where they are equal.
std::string compare(const std::string& what, const Json& here, const Json& there) {
    const auto text = [](const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); };
    return here == there ? "" : what + " is " + text(here) + ", asked for is " + text(there);
}

/// Everything but the checksum.
Json content_of(const Manifest& manifest) {
    Json shards = Json::array();
    for (int i = 0; i < manifest.count(); ++i) {
        const ShardRecord& shard = manifest.shards[i];
        shards.push_back({{"begin", manifest.begin(i)},
                          {"rows", manifest.rows(i)},
                          {"local", to_json(shard.local)},
                          {"lists", to_json(shard.lists)},
                          {"version", shard.version},
                          {"merged", shard.merged}});
        if (shard.result) shards.back()["result"] = to_json(shard.result);
    }
    // The least version that holds what is to be told.
    Json json{{"format", kFormat},
              {"version", manifest.has_wide_ids()           ? 4
                          : !manifest.base.format           ? 3
                          : manifest.plan != MergePlan::all ? 2
                                                            : 1},
              {"state", manifest.complete ? "complete" : "building"},
              {"seconds", manifest.seconds}};
    if (manifest.samples != 0) json["samples"] = manifest.samples;
    if (manifest.recall.objects != 0) json["recall"] = to_json(manifest.recall);
    json["base"] = to_json(manifest.base);
    json["params"] = to_json(manifest.params);
    if (manifest.has_wide_ids()) json["id_bytes"] = manifest.id_bytes;
    if (manifest.plan != MergePlan::all) {
        json["plan"] = name_of(manifest.plan);
        json["vectors"] = to_json(manifest.vectors);
        json["order"] = to_json(manifest.order);
    }
    json["local_columns"] = manifest.local_columns();
    json["shards"] = shards;
    return json;
}

std::string dump(const Json& json) {
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string checksum_of(const Json& content) {
    const std::string text = dump(content);
    return to_hex(XXH3_64bits(text.data(), text.size()));
}

void require(bool condition, const char* what) {
    if (!condition) throw InvalidArgument(what);
}

template <class... Files>
void require_files(const Files&... files) {
    for (const std::optional<FileRecord>& file : {files...})
        require(!file || (!file->name.empty() && file->name.find('/') == std::string::npos),
                "a file's name leads out of the folder");
}

/// The checksum fits; from here on only a faulty writer or a forger can be wrong.
Manifest manifest_of(const Json& json) {
    Manifest manifest;
    manifest.base = base_of(json.at("base"));
    manifest.id_bytes = json.value("id_bytes", manifest.id_bytes);
    require(manifest.id_bytes == sizeof(std::int32_t) || manifest.id_bytes == sizeof(std::int64_t),
            "ids are neither of 4 nor of 8 bytes");
    require(manifest.base.n >= 1 && manifest.base.n <= (manifest.has_wide_ids() ? kMaxShardedObjects : kMaxObjects),
            "n is outside of what is allowed");
    manifest.params = params_of(json.at("params"));
    manifest.seconds = json.at("seconds");
    manifest.samples = json.value("samples", 0);
    require(manifest.samples >= 0 && manifest.samples <= kMaxK, "samples are outside of what is allowed");
    manifest.complete = json.at("state") == "complete";
    if (json.contains("plan")) {
        manifest.plan = parse_merge_plan(json.at("plan").get<std::string>());
        manifest.vectors = file_of(json.at("vectors"));
        manifest.order = file_of(json.at("order"));
    }
    if (json.contains("recall")) {
        manifest.recall = recall_of(json.at("recall"));
        require((manifest.complete || manifest.plan == MergePlan::near) &&
                    io::detail::is_estimate(manifest.recall, manifest.base.n, manifest.params.k),
                "its recall is none");
    }
    const Json& shards = json.at("shards");
    require(
        !shards.empty() && shards.size() <= std::size_t(kMaxShards) && std::int64_t(shards.size()) <= manifest.base.n,
        "the number of shards is outside of what is allowed");
    require(most_rows_at_once(manifest.base.n, int(shards.size())) <= kMaxObjects, "its shards are too large");
    manifest.shards.resize(shards.size());
    require_files(manifest.vectors, manifest.order);
    require((manifest.is_ordered() && !manifest.complete) || (!manifest.vectors && !manifest.order),
            "there is an order where none belongs");
    for (int i = 0; i < manifest.count(); ++i) {
        ShardRecord& shard = manifest.shards[i];
        shard.local = file_of(shards[i].at("local"));
        shard.lists = file_of(shards[i].at("lists"));
        shard.version = shards[i].at("version");
        shard.merged = shards[i].at("merged").get<std::vector<int>>();
        if (shards[i].contains("result")) shard.result = file_of(shards[i].at("result"));
        require_files(shard.local, shard.lists, shard.result);
        require(!shard.result || (manifest.merges_are_through() && !manifest.complete),
                "there is a result before merges are through");
        for (std::size_t m = 0; m < shard.merged.size(); ++m)
            require(shard.merged[m] >= 0 && shard.merged[m] < manifest.count() && shard.merged[m] != i &&
                        (m == 0 || shard.merged[m - 1] < shard.merged[m]),
                    "a list of merged shards is not one");
        require(shard.built() || shard.merged.empty(), "a shard was merged before it was built");
        require(!(manifest.complete || manifest.merges_are_through()) ||
                    (shard.built() && (manifest.is_ordered() || int(shard.merged.size()) == manifest.count() - 1)),
                "the set is not as complete as it says");
    }
    Json content = content_of(manifest);
    content["params"] = json.at("params");  // of which some may be missing
    require(content == json, "it contradicts itself");
    return manifest;
}

}  // namespace

BaseRecord BaseRecord::of(const io::VectorReader& vectors) {
    BaseRecord base;
    base.n = vectors.n();
    base.d = vectors.d();
    base.dtype = vectors.dtype();
    if (const io::VectorFile* const file = vectors.file()) {
        std::error_code ignored;
        base.path = std::filesystem::absolute(file->path(), ignored);
        base.format = file->format();
        struct stat status;
        if (stat(file->path().c_str(), &status) != 0)
            throw IoError(file->path() + ": cannot look at it: " + std::generic_category().message(errno));
        base.bytes = std::uint64_t(status.st_size);
        base.modified = std::int64_t(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec;
    }
    base.checksum = io::identify(vectors).checksum;
    return base;
}

std::string BaseRecord::difference(const BaseRecord& other) const {
    const Json here = to_json(*this), there = to_json(other);
    for (const auto& [name, value] : here.items()) {
        if (name == "path" || !there.contains(name) || value == there.at(name)) continue;
        // The numbers tell nobody anything.
        if (name == "checksum") return "the base holds other vectors";
        if (name == "modified") return "the base file was written to since";
        return compare("the base's " + name, value, there.at(name));
    }
    return "";
}

int Manifest::merged_pairs() const {
    int pairs = 0;
    for (int shard = 0; shard < count(); ++shard)
        for (const int other : shards[std::size_t(shard)].merged) {
            const std::vector<int>& back = shards[std::size_t(other)].merged;
            pairs += other > shard && std::binary_search(back.begin(), back.end(), shard);
        }
    return pairs;
}

int Manifest::local_columns() const {
    return merge_columns(params);
}

std::string Manifest::difference(const Manifest& other) const {
    std::string first;
    const auto note = [&](const std::string& what, const Json& here, const Json& there) {
        if (first.empty()) first = compare(what, here, there);
    };
    note("the number of shards", count(), other.count());
    note("the plan", name_of(plan), name_of(other.plan));
    note("the number of bytes of an id", id_bytes, other.id_bytes);
    if (first.empty()) first = base.difference(other.base);
    const Json here = to_json(params), there = to_json(other.params);
    for (const auto& [name, value] : here.items()) note(name, value, there.at(name));
    return first;
}

std::string Manifest::to_text() const {
    Json json = content_of(*this);
    json["checksum"] = checksum_of(json);
    return dump(json);
}

Manifest Manifest::from_text(const std::string& text, const std::string& path) {
    const auto refuse = [&](const std::string& what) { throw IoError(path + ": " + what); };
    try {
        Json json = Json::parse(text);
        if (!json.is_object() || json.value("format", "") != kFormat)
            refuse("altered, or not the manifest of a graph in shards");
        if (json.at("version").get<int>() > kVersion)
            refuse("manifest version " + json.at("version").dump() + " is newer than this library, which knows " +
                   std::to_string(kVersion));
        // Blanks, escapes and the like could be changed without changing what was parsed.
        if (dump(json) != text) refuse("altered: not as it was written");
        const std::string checksum = json.at("checksum");
        json.erase("checksum");
        if (checksum_of(json) != checksum) refuse("altered: it does not match its checksum");
        return manifest_of(json);
    } catch (const Json::exception&) {
        refuse("altered: not what a manifest holds");
    } catch (const InvalidArgument& error) {
        refuse(std::string("invalid: ") + error.what());
    }
    return {};  // not reached
}

void Manifest::write(const std::string& path) const {
    const std::string text = to_text();
    io::detail::AtomicFile file(path);
    file.write(text.data(), text.size());
    file.commit();
}

Manifest Manifest::read(const std::string& path) {
    const io::detail::MappedFile file(path);
    std::string text(file.size(), '\0');
    file.read(0, text.size(), text.data());
    return from_text(text, path);
}

}  // namespace gnnd::shards

// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "gnnd/error.h"
#include "gnnd/shards/manifest.h"
#include "tests/io_conditions.h"
#include "tests/paths.h"
#include "tests/temp_dir.h"

namespace gnnd::shards {
namespace {

using test::message_of;

Manifest make_manifest() {
    Manifest manifest;
    manifest.base = {"/data/b\"ase\n.fbin", io::VectorFormat::fbin, 100, 7, DType::f32, 2808, 1234567890123456789, 77};
    manifest.params.k = 10;
    manifest.params.metric = Metric::Cosine;
    manifest.params.delta = 0.0123f;
    manifest.params.seed = ~std::uint64_t(0);
    manifest.seconds = 1.0 / 3;
    manifest.samples = 12;
    manifest.shards.resize(3);
    manifest.shards[0] = {FileRecord{"local-00000.3.gnnd", 64, 0x0123456789abcdef},
                          FileRecord{"lists-00000.5.gnnd", 128, 0xffffffffffffffff},
                          5,
                          {2}};
    manifest.shards[2] = {FileRecord{"local-00002.2.gnnd", 65, 7}, FileRecord{"lists-00002.1.gnnd", 129, 0}, 1, {}};
    return manifest;
}

TEST(ShardManifest, RoundTrips) {
    const Manifest manifest = make_manifest();
    const test::TempDir dir;
    const std::string path = dir.file(kManifestName);
    manifest.write(path);
    const Manifest read = Manifest::read(path);
    EXPECT_EQ(read.to_text(), manifest.to_text());
    EXPECT_EQ(read.shards, manifest.shards);
    EXPECT_EQ(read.params.delta, manifest.params.delta);
    EXPECT_EQ(read.seconds, manifest.seconds);
    EXPECT_EQ(read.samples, 12);
    EXPECT_EQ(read.base.path, manifest.base.path);
    EXPECT_EQ(read.difference(manifest), "");
    EXPECT_FALSE(read.complete);
    EXPECT_EQ(dir.entries(), 1u);
}

TEST(ShardManifest, OfVectorsFromAFunctionNamesNoFile) {
    Manifest manifest = make_manifest();
    const Manifest of_file = manifest;
    manifest.base.path = "";
    manifest.base.format.reset();
    manifest.base.bytes = manifest.base.modified = 0;
    const std::string text = manifest.to_text();
    EXPECT_NE(text.find("\"version\": 3"), std::string::npos) << "which earlier versions refuse";
    EXPECT_EQ(text.find("\"path\""), std::string::npos);
    EXPECT_EQ(text.find("\"modified\""), std::string::npos);
    const Manifest read = Manifest::from_text(text, "m");
    EXPECT_EQ(read.to_text(), text);
    EXPECT_FALSE(read.base.format.has_value());
    EXPECT_EQ(read.difference(of_file), "") << "the same rows in a file";
    EXPECT_EQ(of_file.difference(manifest), "");
}

TEST(ShardManifest, KeepsTheRecallOfACompleteGraph) {
    Manifest manifest = make_manifest();
    manifest.recall = {0.1, 1.0 / 30, 0.3, 7, 99};
    const auto read = [&] { return Manifest::from_text(manifest.to_text(), "m"); };
    EXPECT_EQ(message_of<IoError>(read), "m: invalid: its recall is none") << "of a graph that is not there yet";
    manifest.complete = true;
    for (int i = 0; i < 3; ++i) {
        ShardRecord& shard = manifest.shards[std::size_t(i)];
        shard.lists = FileRecord{"lists", 128, 1};
        shard.merged = {i == 0 ? 1 : 0, i == 2 ? 1 : 2};
    }
    EXPECT_EQ(read().recall.value, 0.1);
    EXPECT_EQ(read().recall.low, 1.0 / 30);
    EXPECT_EQ(read().recall.high, 0.3);
    EXPECT_EQ(read().recall.at, 7);
    EXPECT_EQ(read().recall.objects, 99);
    EXPECT_EQ(read().to_text(), manifest.to_text());
    for (const auto& wrong :
         {RecallEstimate{0.1, 0.2, 0.3, 7, 99}, {0.1, 0, 1.1, 7, 99}, {0.1, 0, 0.2, 11, 99}, {0.1, 0, 0.2, 7, 101}}) {
        manifest.recall = wrong;
        EXPECT_EQ(message_of<IoError>(read), "m: invalid: its recall is none");
    }
}

TEST(ShardManifest, KeepsThePlan) {
    Manifest manifest = make_manifest();
    const auto read = [&] { return Manifest::from_text(manifest.to_text(), "m"); };
    const auto refused = [&](const std::string& why) { EXPECT_EQ(message_of<IoError>(read), "m: invalid: " + why); };
    EXPECT_EQ(manifest.to_text().find("plan"), std::string::npos) << "so that older libraries read it";
    EXPECT_EQ(read().plan, MergePlan::all);
    const Manifest all = manifest;
    manifest.plan = MergePlan::near;
    EXPECT_EQ(read().plan, MergePlan::near);
    EXPECT_EQ(manifest.difference(all), "the plan is near, asked for is all");
    manifest.vectors = FileRecord{"ordered.fbin", 2808, 3};
    manifest.order = FileRecord{"order.ibin", 408, 4};
    EXPECT_EQ(read().vectors, manifest.vectors);
    EXPECT_EQ(read().order, manifest.order);
    EXPECT_EQ(read().to_text(), manifest.to_text());
    manifest.order->name = "../order.ibin";
    refused("a file's name leads out of the folder");
    manifest.order->name = "order.ibin";
    manifest.shards[0].result = FileRecord{"result-00000.6.gnnd", 128, 1};
    refused("there is a result before merges are through");
    manifest.recall = {0.9, 0.8, 1, 7, 99};
    refused("the set is not as complete as it says");
    for (ShardRecord& shard : manifest.shards) shard.lists = FileRecord{"lists", 128, 1};
    EXPECT_TRUE(read().merges_are_through());
    EXPECT_EQ(read().shards, manifest.shards);
    manifest.complete = true;
    refused("there is an order where none belongs");
    manifest.order.reset();
    manifest.vectors.reset();
    refused("there is a result before merges are through");
    manifest.shards[0].result.reset();
    EXPECT_TRUE(read().complete) << "though not all pairs are merged";
    EXPECT_EQ(read().merged_pairs(), 0) << "of shard 2 nobody has seen shard 0";
    manifest.shards[2].merged = {0};
    EXPECT_EQ(read().merged_pairs(), 1);
    manifest.plan = MergePlan::all;
    refused("the set is not as complete as it says");
}

TEST(ShardManifest, KnowsTheShardOfEachRow) {
    for (const auto& [n, count] : {std::pair{1, 1}, {100, 3}, {1023, 1023}, {1000, 7}, {2147483647, 1024}}) {
        Manifest manifest;
        manifest.base.n = n;
        manifest.shards.resize(std::size_t(count));
        for (int shard = 0; shard < count; ++shard) {
            EXPECT_EQ(manifest.shard_of(manifest.begin(shard)), shard);
            EXPECT_EQ(manifest.shard_of(manifest.begin(shard + 1) - 1), shard);
        }
    }
}

// Written by an earlier version, which did not know the base's checksum.
TEST(ShardManifest, OlderOnesAreRead) {
    const Manifest read = Manifest::read(test::kManifestFile);
    EXPECT_EQ(read.shards, make_manifest().shards);
    EXPECT_EQ(read.params.seed, ~std::uint64_t(0));
    EXPECT_FALSE(read.base.checksum);
    EXPECT_EQ(read.samples, 0);
    EXPECT_EQ(read.difference(make_manifest()), "");
}

/// The text with other parameters, and checksums that fit.
std::string with_params(const std::string& text, const std::function<void(nlohmann::ordered_json&)>& change) {
    auto json = nlohmann::ordered_json::parse(text);
    change(json["params"]);
    json.erase("checksum");
    const auto dump = [&] { return json.dump(1) + "\n"; };
    const std::string content = dump();
    char checksum[17];
    std::snprintf(checksum, sizeof checksum, "%016llx",
                  static_cast<unsigned long long>(XXH3_64bits(content.data(), content.size())));
    json["checksum"] = checksum;
    return dump();
}

TEST(ShardManifest, MissingParametersAreTheDefault) {
    Manifest manifest = make_manifest();
    manifest.params.trees = 5;
    manifest.params.iterations = 7;
    const Manifest read =
        Manifest::from_text(with_params(manifest.to_text(), [](auto& params) { params.erase("trees"); }), "M");
    EXPECT_EQ(read.params.trees, BuildParams().trees);
    EXPECT_EQ(read.params.iterations, 7);
    EXPECT_EQ(message_of<IoError>([&] {
                  Manifest::from_text(with_params(manifest.to_text(), [](auto& params) { params["novel"] = 1; }), "M");
              }),
              "M: invalid: this library knows no parameter 'novel'");
}

TEST(ShardManifest, RowsAreSharedEvenly) {
    Manifest manifest = make_manifest();
    for (const auto& [n, shards] : {std::pair{100, 3}, {3, 3}, {1000003, 7}, {2147483647, 1024}}) {
        manifest.base.n = n;
        manifest.shards.resize(shards);
        EXPECT_EQ(manifest.begin(0), 0);
        EXPECT_EQ(manifest.begin(shards), n);
        for (int i = 0; i < shards; ++i) {
            EXPECT_GE(manifest.rows(i), n / shards);
            EXPECT_LE(manifest.rows(i), manifest.most_rows());
        }
    }
}

TEST(ShardManifest, LocalGraphsHaveWhatSteersMerges) {
    Manifest manifest;
    manifest.params.k = 64;
    EXPECT_EQ(manifest.local_columns(), 64);
    manifest.params.init = Init::random;
    EXPECT_EQ(manifest.local_columns(), 32);
    manifest.params.list_size = 97;
    EXPECT_EQ(manifest.local_columns(), 49);
    manifest.params.k = 10;
    EXPECT_EQ(manifest.local_columns(), 10);
}

TEST(ShardManifest, EveryAlteredBitIsNoticed) {
    const std::string text = make_manifest().to_text();
    for (std::size_t i = 0; i < text.size(); ++i)
        for (int bit = 0; bit < 8; ++bit) {
            std::string altered = text;
            altered[i] = char(altered[i] ^ 1 << bit);
            const std::string message = message_of<IoError>([&] { Manifest::from_text(altered, "M"); });
            EXPECT_TRUE(message.starts_with("M: ")) << message << ": byte " << i << " bit " << bit;
        }
    for (const std::string& other : {text.substr(1), text + "\n", text + "x", text.substr(0, text.size() / 2),
                                     std::string("{}"), std::string("[]"), std::string("3"), std::string()})
        EXPECT_THROW(Manifest::from_text(other, "M"), IoError);
}

TEST(ShardManifest, WhatContradictsItselfIsRefused) {
    const auto error = [](const auto& change) {
        Manifest manifest = make_manifest();
        change(manifest);
        return message_of<IoError>([&] { Manifest::from_text(manifest.to_text(), "M"); });
    };
    EXPECT_EQ(error([](Manifest&) {}), "nothing was thrown");
    EXPECT_EQ(error([](Manifest& m) { m.complete = true; }), "M: invalid: the set is not as complete as it says");
    EXPECT_EQ(error([](Manifest& m) { m.shards[0].merged = {0}; }), "M: invalid: a list of merged shards is not one");
    EXPECT_EQ(error([](Manifest& m) {
                  m.shards[0].merged = {2, 1};
              }),
              "M: invalid: a list of merged shards is not one");
    EXPECT_EQ(error([](Manifest& m) { m.shards[1].merged = {0}; }),
              "M: invalid: a shard was merged before it was built");
    EXPECT_EQ(error([](Manifest& m) { m.shards[0].local->name = "../x"; }),
              "M: invalid: a file's name leads out of the folder");
    EXPECT_EQ(error([](Manifest& m) { m.params.k = 0; }), "M: invalid: BuildParams::k = 0, allowed are 1 to 1024");
    for (const int samples : {-1, kMaxK + 1})
        EXPECT_EQ(error([&](Manifest& m) { m.samples = samples; }),
                  "M: invalid: samples are outside of what is allowed");
    EXPECT_EQ(error([](Manifest& m) { m.base.n = 2; }),
              "M: invalid: the number of shards is outside of what is allowed");
}

TEST(ShardManifest, DifferencesAreNamed) {
    const auto difference = [](const auto& change) {
        Manifest other = make_manifest();
        change(other);
        return make_manifest().difference(other);
    };
    EXPECT_EQ(difference([](Manifest& m) { m.params.k = 11; }), "k is 10, asked for is 11");
    EXPECT_EQ(difference([](Manifest& m) { m.params.metric = Metric::L2; }), "metric is cosine, asked for is l2");
    EXPECT_EQ(difference([](Manifest& m) { m.base.modified = 1; }), "the base file was written to since");
    EXPECT_EQ(difference([](Manifest& m) { m.base.checksum = 78; }), "the base holds other vectors");
    EXPECT_EQ(difference([](Manifest& m) { m.shards.resize(4); }), "the number of shards is 3, asked for is 4");
    EXPECT_EQ(difference([](Manifest& m) {
                  m.params.threads = 3;
                  m.params.device = {Device::Kind::cpu, 0};
                  m.base.path = "/moved";
                  m.seconds = 9;
              }),
              "");
}

}  // namespace
}  // namespace gnnd::shards

// SPDX-License-Identifier: MIT
// The folder of a graph in shards: what is in it, who may use it, and what happens when its disk or its files fail.
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/io/graph_file.h"
#include "gnnd/shards/folder.h"
#include "tests/failing_calls.h"
#include "tests/io_conditions.h"
#include "tests/shard_fixture.h"

namespace gnnd::test {
namespace {

TEST_F(Sharded, FoldersStayWithinThePlannedDisk) {
    expect_planned_disk(shards(12), [](const ShardedPlan& plan, std::uint64_t, const ShardedStats& stats) {
        EXPECT_GE(plan.disk, stats.written_bytes);
        EXPECT_LE(plan.disk, 3 * stats.written_bytes + 200000);
    });
}

TEST_F(Sharded, ADiskThatIsTooSmallIsToldAtTheStart) {
    const std::string path = dir_.file("sparse.u8bin");
    write_bytes(path, bytes_of({2000000000, 1}));
    std::filesystem::resize_file(path, 8 + 2000000000ull);  // which takes no room
    base_ = std::make_unique<io::VectorFile>(path);
    params_.k = 1024;
    ShardParams params = shards(100);
    params.host_memory = std::int64_t(1) << 60;
    const std::string message = message_of<IoError>([&] { build(params); });
    EXPECT_EQ(message.rfind(work() + ": the disk is too small: ", 0), 0u) << message;
    EXPECT_NE(message.find(std::to_string(plan_sharded(*base_, params_, params).disk) + " bytes are needed, "),
              std::string::npos)
        << message;
    EXPECT_EQ(files(), std::vector<std::string>{"lock"});
}

TEST_F(Sharded, ADiskThatIsFullAnywhere) {
    make_base(600, 4);
    params_.k = 10;
    int failures = 0;
    for (rlim_t room = 0; room <= 18000; room += 600) {
        std::filesystem::remove_all(work());
        try {
            const FullDisk disk(room);
            build(shards(3));
        } catch (const IoError& error) {
            ++failures;
            EXPECT_NE(std::string(error.what()).find("File too large"), std::string::npos) << error.what();
            EXPECT_NE(std::string(error.what()).find(work()), std::string::npos) << error.what();
        }
        for (const std::string& name : files()) EXPECT_EQ(name.find(".tmp."), std::string::npos) << name;
        build(shards(3, true));
        expect_exact();
    }
    EXPECT_GT(failures, 20);
    EXPECT_LT(failures, 31);
}

TEST_F(Sharded, AlteredFilesAreNoticedAndNamed) {
    make_base(60);
    params_.k = 4;
    InterruptAfter four(4);
    EXPECT_THROW(build(shards(3), four.callbacks(), four.executor()), Interrupted);
    const auto is_noticed = [&](const std::string& name, bool when_gone, const auto& use) {
        const std::string path = work() + "/" + name, bytes = read_bytes(path);
        const std::size_t step = bytes.size() > 3000 ? 37 : 7;  // graph_file_test and shard_manifest_test try every one
        for (std::size_t i = 0; i < bytes.size(); i += step) {
            std::string altered = bytes;
            altered[i] = char(altered[i] ^ 1 << i % 8);
            write_bytes(path, altered);
            const std::string message = message_of<IoError>(use);
            ASSERT_NE(message.find(name), std::string::npos) << message << ": byte " << i << " of " << name;
        }
        write_bytes(path, bytes.substr(0, bytes.size() / 2));
        EXPECT_NE(message_of<IoError>(use).find(name), std::string::npos);
        std::filesystem::remove(path);
        EXPECT_EQ(message_of<IoError>(use).find(name) != std::string::npos, when_gone);
        write_bytes(path, bytes);
    };
    const auto wanted = shards::Manifest::read(work() + "/" + shards::kManifestName);
    for (const std::string& name : files()) {
        if (name == "lock") continue;
        is_noticed(name, name == shards::kManifestName, [&] {  // other files that are gone are made anew
            const shards::Folder folder(work(), wanted, true, 1);
            // Rows are verified when a task needs them: here all are.
            for (int i = 0; i < 3; ++i) {
                const shards::ShardRecord shard = folder.manifest().shards[i];
                if (shard.local) folder.open_local(i).read();
                if (shard.lists) folder.open_lists(i).read();
            }
        });
    }
    build(shards(3, true));
    expect_exact();
    for (const std::string& name : files())
        if (name != "lock") is_noticed(name, true, [&] { read_all(ShardedGraph(work())); });
}

TEST_F(Sharded, AnotherProcessIsKeptOut) {
    make_base(60);
    std::filesystem::create_directory(work());
    int ready[2], go[2];
    ASSERT_EQ(pipe(ready) | pipe(go), 0);
    const pid_t child = fork();
    if (child == 0) {
        const shards::FolderLock lock(work());
        char byte = 0;
        if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) < 0) _exit(1);
        pause();
        _exit(0);
    }
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    for (const bool resume : {false, true})
        EXPECT_EQ(message_of<IoError>([&] { build(shards(2, resume)); }),
                  work() + ": in use by process " + std::to_string(child));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (const int descriptor : {ready[0], ready[1], go[0], go[1]}) close(descriptor);
    EXPECT_TRUE(std::filesystem::exists(work() + "/lock")) << "what a killed process leaves";
    build(shards(2));
    expect_exact();
}

TEST_F(Sharded, AFolderInWhichSeveralBuildIsLeftToThem) {
    make_base(60);
    std::filesystem::create_directory(work());
    write_bytes(work() + "/build.json", "theirs");
    for (const bool resume : {false, true})
        EXPECT_EQ(message_of<IoError>([&] { build(shards(2, resume)); }),
                  work() + ": several processes build a graph there; `python -m gnnd worker` goes on with it");
    EXPECT_EQ(read_bytes(work() + "/build.json"), "theirs");
    EXPECT_FALSE(std::filesystem::exists(manifest_path()));
}

TEST_F(Sharded, FilesWithoutTheirManifestStay) {
    make_base(60);
    std::filesystem::create_directory(work());
    const std::string lists = work() + "/lists-00001.2.gnnd";
    write_bytes(lists, "dear");
    EXPECT_EQ(message_of<IoError>([&] { build(shards(2)); }),
              work() + ": holds lists-00001.2.gnnd of a graph in shards, but no manifest.json; take another folder");
    EXPECT_EQ(read_bytes(lists), "dear");
}

TEST_F(Sharded, ForeignFilesStay) {
    make_base(60);
    std::filesystem::create_directory(work());
    const std::vector<std::string> foreign{"lists-of-mine.gnnd", "local-1.gnnd.bak", "notes.txt", "lists-00000.gnnd",
                                           "local-00000.gnnd"};
    for (const std::string& name : foreign) write_bytes(work() + "/" + name, "mine");
    build(shards(2));
    for (const char* name :
         {"local-00000.9.gnnd", "lists-00001.77.gnnd", "lists-00001.3.gnnd.tmp.1.2", "manifest.json.tmp.5.6"})
        write_bytes(work() + "/" + name, "left behind");
    build(shards(2, true));
    EXPECT_EQ(files().size(), foreign.size() + 4);
    for (const std::string& name : foreign) EXPECT_EQ(read_bytes(work() + "/" + name), "mine");
}

// Written by a forger, for all checksums fit.
TEST_F(Sharded, AFileOfAnotherGraphIsNoticedByAll) {
    make_base(60);
    params_.k = 5;
    build(shards(2));
    shards::Manifest manifest = shards::Manifest::read(manifest_path());
    shards::FileRecord& record = manifest.shards[1].lists.value();
    const std::string path = work() + "/" + record.name;
    KnnGraph other(30, 4, Metric::L2);
    std::fill_n(other.ids(), 30 * 4, -1);
    std::fill_n(other.distances(), 30 * 4, worst_value(Metric::L2));
    io::write_graph(path, other.view(), DType::f32, 60);
    const io::GraphFile forged(path);
    record = {record.name, forged.bytes(), forged.checksum()};
    manifest.write(manifest_path());
    const std::string message = path + ": invalid: not the graph that manifest.json describes";
    EXPECT_EQ(message_of<IoError>([&] { ShardedGraph graph(work()); }), message);
    EXPECT_EQ(message_of<IoError>([&] { build(shards(2, true)); }), message);
}

TEST_F(Sharded, ALinkInPlaceOfTheLockIsNotFollowed) {
    make_base(60);
    std::filesystem::create_directory(work());
    const std::string precious = dir_.file("precious");
    write_bytes(precious, "dear");
    std::filesystem::create_symlink(precious, work() + "/lock");
    EXPECT_EQ(message_of<IoError>([&] { build(shards(2)); }),
              work() + "/lock: is a symbolic link, expected a file of the build");
    EXPECT_EQ(read_bytes(precious), "dear");
}

/// Counts how often a file of that name is put in its place.
class Replacements {
  public:
    Replacements(const std::string& folder, std::string name)
        : name_(std::move(name)), descriptor_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
        EXPECT_GE(inotify_add_watch(descriptor_, folder.c_str(), IN_MOVED_TO), 0);
    }
    ~Replacements() { close(descriptor_); }
    Replacements(const Replacements&) = delete;
    Replacements& operator=(const Replacements&) = delete;

    int count() {
        alignas(inotify_event) char events[4096];
        for (ssize_t bytes = 0; (bytes = read(descriptor_, events, sizeof events)) > 0;)
            for (const char* at = events; at < events + bytes;) {
                const auto* event = reinterpret_cast<const inotify_event*>(at);
                count_ += name_ == event->name;
                at += sizeof *event + event->len;
            }
        return count_;
    }

  private:
    const std::string name_;
    const int descriptor_;
    int count_ = 0;
};

// The manifest of many shards is large.
TEST_F(Sharded, AnInterruptWritesOneManifest) {
    make_base(400);
    params_.k = 4;
    std::filesystem::create_directory(work());
    Replacements manifests(work(), shards::kManifestName);
    InterruptAfter seventy(70);
    ShardParams params = shards(40);
    params.checkpoint_seconds = 1000;
    EXPECT_THROW(build(params, seventy.callbacks(), seventy.executor()), Interrupted);
    EXPECT_EQ(manifests.count(), 2) << "at the start and at the end";
    const auto manifest = shards::Manifest::read(manifest_path());
    EXPECT_GT(std::count_if(manifest.shards.begin(), manifest.shards.end(), [](const auto& s) { return s.built(); }),
              20);
    params.resume = true;
    build(params);
    expect_exact();
}

// The folder's own flush says that the disk is broken: then what the new manifest replaces must still be there.
TEST_F(Sharded, AFolderThatCannotBeFlushed) {
    if (!FailingFolderFlush::possible()) GTEST_SKIP() << "a sanitizer";
    make_base(120);
    params_.k = 8;
    int failures = 0;
    for (int flushes = 0;; ++flushes) {
        std::filesystem::remove_all(work());
        std::string message;
        {
            const FailingFolderFlush broken(flushes);
            message = message_of<IoError>([&] { build(shards(3)); });
            if (!broken.has_failed()) break;
        }
        ++failures;
        EXPECT_NE(message.find("Input/output error"), std::string::npos) << message;
        build(shards(3, true));
        expect_exact();
    }
    EXPECT_GT(failures, 20);
}

}  // namespace
}  // namespace gnnd::test

// SPDX-License-Identifier: MIT
// A graph in shards survives power cuts. The tool builds one while tests/record_disk.cpp records what it does to
// files; from the record folders are made as a disk may hold them after a cut at any moment, and builds go on in them.
#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <sstream>

#include "gnnd/builder.h"
#include "gnnd/error.h"
#include "gnnd/sharded.h"
#include "tests/cli_fixture.h"
#include "tests/invariants.h"
#include "tests/shard_graph.h"

namespace gnnd::test {
namespace {

struct Operation {
    std::string name, path, data;  ///< data: of a rename the new path
    std::size_t offset = 0;

    void write_to(std::string& bytes) const {
        if (name == "resize") return bytes.resize(offset);
        bytes.resize(std::max(bytes.size(), offset + data.size()));
        bytes.replace(offset, data.size(), data);
    }
};

std::vector<Operation> read_record(const std::string& path) {
    std::vector<Operation> operations;
    std::istringstream in(read_bytes(path));
    Operation next;
    for (std::size_t bytes = 0; in >> next.name >> next.offset >> bytes >> next.path; operations.push_back(next)) {
        next.data.resize(bytes);
        in.ignore();  // the end of the line
        in.read(next.data.data(), std::streamsize(bytes));
    }
    return operations;
}

using Files = std::map<std::string, std::string>;  ///< path in the disk's folder: contents; folders end with a slash

Files files_in(const std::string& folder) {
    Files files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
        const std::string path = entry.path().string().substr(folder.size());
        if (entry.is_directory())
            files[path + "/"];
        else
            files[path] = read_bytes(entry.path());
    }
    return files;
}

void put_files(const Files& files, const std::string& folder) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    for (const auto& [path, bytes] : files)  // folders come before what is in them
        if (path.ends_with('/'))
            std::filesystem::create_directory(folder + path);
        else
            write_bytes(folder + path, bytes);
}

/// A disk that promises no more than POSIX does: the contents of a file last from its fsync on, names in a folder from
/// the folder's fsync on, in any order before.
class Disk {
  public:
    /// \param keeps_promises  otherwise fsync does nothing
    Disk(const std::string& folder, const Files& files, bool keeps_promises)
        : folder_(folder), keeps_promises_(keeps_promises) {
        for (const auto& [path, bytes] : files) synced_[path] = std::make_shared<File>(File{bytes, {}});
        names_ = synced_;
    }

    void apply(const Operation& operation) {
        const std::string& name = operation.name;
        const std::string path = operation.path.substr(folder_.size());
        if (name == "create")
            change({{path, std::make_shared<File>()}});
        else if (name == "mkdir")
            change({{path + "/", std::make_shared<File>()}});
        else if (name == "remove")
            change({{path, nullptr}});
        else if (name == "rename")
            change({{path, nullptr}, {operation.data.substr(folder_.size()), names_.at(path)}});
        else if (name == "sync")
            sync(path);
        else
            names_.at(path)->since.push_back(operation);
    }

    /// As programs see it.
    Files files() const {
        Files files;
        for (const auto& [path, file] : names_) files[path] = file->bytes();
        return files;
    }

    /// As it may be found when the power is back.
    Files after_power_cut(std::mt19937& random) const {
        Names names = synced_;
        const unsigned chance = random() % 5;  // of a change to be there: none, some, all
        for (const Change& change : changes_)
            if (random() % 4 < chance) rename(change, names);
        Files files;
        for (const auto& [path, file] : names) {
            const std::size_t slash = path.find_last_of('/', path.size() - 2);
            if (slash == 0 || files.contains(path.substr(0, slash + 1))) files[path] = file->after_power_cut(random);
        }
        return files;
    }

  private:
    struct File {
        std::string synced;
        std::vector<Operation> since;

        std::string bytes() const {
            std::string bytes = synced;
            for (const Operation& operation : since) operation.write_to(bytes);
            return bytes;
        }
        std::string after_power_cut(std::mt19937& random) const {
            std::string bytes = synced;
            for (Operation operation : since) {
                std::string& data = operation.data;
                const unsigned fate = random() % 5;
                if (fate == 0) continue;
                if (fate == 1) data.resize(random() % (data.size() + 1));
                if (fate == 2) data.assign(data.size(), '\0');
                for (std::size_t sector = 0; fate == 3 && sector < data.size(); sector += 512)
                    if (random() % 2 == 0)
                        std::fill_n(data.begin() + sector, std::min<std::size_t>(512, data.size() - sector), '\0');
                operation.write_to(bytes);
            }
            return bytes;
        }
    };
    using Names = std::map<std::string, std::shared_ptr<File>>;
    using Change = std::vector<std::pair<std::string, std::shared_ptr<File>>>;  ///< happens as a whole; null: gone

    static void rename(const Change& change, Names& names) {
        for (const auto& [path, file] : change)
            if (file)
                names[path] = file;
            else
                names.erase(path);
    }
    void change(const Change& change) {
        rename(change, names_);
        changes_.push_back(change);
    }
    void sync(const std::string& path) {
        if (!keeps_promises_) return;
        if (const auto file = names_.find(path); file != names_.end()) {
            file->second->synced = file->second->bytes();
            file->second->since.clear();
            return;
        }
        std::erase_if(changes_, [&](const Change& change) {  // of the folder
            const std::string& name = change[0].first;
            if (name.substr(0, name.find_last_of('/', name.size() - 2)) != path) return false;
            rename(change, synced_);
            return true;
        });
    }

    std::string folder_;
    bool keeps_promises_;
    Names names_, synced_;
    std::vector<Change> changes_;  ///< not synced yet, in their order
};

class CliPowerCut : public Cli {
  protected:
    static constexpr const char* kWork = "/graphs/work";

    /// Runs the tool on the disk's folder. \return what it did to files
    std::vector<Operation> record() const {
        write_bytes(file("record"), "");
        setenv("LD_PRELOAD", kDiskRecorder, 1);
        setenv("GNND_RECORD", file("record").c_str(), 1);
        setenv("GNND_RECORD_FOLDER", disk().c_str(), 1);
        const pid_t pid = spawn({"build", base_path_, "-k", "8", "--shards", "5", "--work", disk() + kWork,
                                 "--checkpoint", "0", "--devices", "cpu,cpu", "--resume", "-q"});
        unsetenv("LD_PRELOAD");
        EXPECT_EQ(wait(pid), 0) << read_bytes(logs_.file("err"));
        return read_record(file("record"));
    }
    /// Goes on in a folder with these files. \return the tasks that were left to do
    int resume(const Files& files) const {
        put_files(files, file("cut"));
        BuildParams params;
        params.k = 8;
        params.device.kind = Device::Kind::cpu;
        ShardParams shards;
        shards.shards = 5;
        shards.work = file("cut") + kWork;
        shards.checkpoint_seconds = 1e9;  // writes less: only the end is looked at
        shards.resume = true;
        return build_sharded(io::VectorFile(base_path_), params, shards).progress.workers[0].done;
    }
    KnnGraph resumed() const { return read_all(ShardedGraph(file("cut") + kWork)); }
    std::string disk() const { return std::filesystem::canonical(dir_.path()).string() + "/disk"; }

    const std::string base_path_ = base(700);
};

TEST_F(CliPowerCut, AtAnyMomentCostsNoMoreThanTheWorkOfTheMoment) {
    if (*kDiskRecorder == 0) GTEST_SKIP() << "a sanitizer's library must be loaded before all others";
    const io::VectorFile base(base_path_);
    EXPECT_EQ(resume({{"/graphs/", ""}}), 15);
    const KnnGraph undisturbed = resumed();
    expect_valid_graph(undisturbed, base.view());
    EXPECT_GT(Truth(base.view(), Metric::L2, 8).recall_of(undisturbed), 0.99);

    std::mt19937 random(20260611);
    const auto cut = [&](const Files& before, const std::vector<Operation>& operations, std::size_t moment,
                         bool keeps_promises) {
        Disk disk(this->disk(), before, keeps_promises);
        for (std::size_t i = 0; i < moment; ++i) disk.apply(operations[i]);
        return disk.after_power_cut(random);
    };
    int refused = 0, half_done = 0;
    Files before;
    // The first run begins with nothing, each other one with what a power cut left of the one before.
    for (int run = 0; run < 4 && !HasFailure(); ++run) {
        put_files(before, disk());
        const std::vector<Operation> operations = record();
        Disk whole(disk(), before, true);
        for (const Operation& operation : operations) whole.apply(operation);
        ASSERT_TRUE(whole.files() == files_in(disk())) << "something was not recorded";

        EXPECT_EQ(resume(cut(before, operations, operations.size(), true)), 0) << "it had said that all was done";
        EXPECT_TRUE(same_graph(resumed(), undisturbed));
        for (int i = 0; i < 30 && !HasFailure(); ++i) {
            const std::size_t moment = random() % operations.size();
            SCOPED_TRACE(testing::Message() << "run " << run << ", after " << moment << " of " << operations.size());
            const int left = resume(cut(before, operations, moment, true));
            half_done += left > 0 && left < 15;
            EXPECT_TRUE(same_graph(resumed(), undisturbed));
        }
        // A disk that breaks its promises may cost the graph, but is never believed. In the end as often as it takes.
        for (int i = 0; (i < 8 || (run == 3 && refused <= 5 && i < 200)) && !HasFailure(); ++i) {
            try {
                resume(cut(before, operations, random() % operations.size(), false));
                EXPECT_TRUE(same_graph(resumed(), undisturbed));
            } catch (const IoError&) {
                ++refused;
            }
        }
        before = cut(before, operations, operations.size() / 4 + random() % (operations.size() / 2), true);
    }
    EXPECT_GT(half_done, 40) << "cuts that left something to go on with";
    EXPECT_GT(refused, 5) << "cuts that would have been noticed";
    RecordProperty("half_done", half_done);
    RecordProperty("refused", refused);
}

}  // namespace
}  // namespace gnnd::test

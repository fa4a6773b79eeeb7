// SPDX-License-Identifier: MIT
// The tool makes sure that a base is the one it was.
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli_fixture.h"

namespace gnnd::test {
namespace {

class CliBase : public Cli {
  protected:
    /// Starts a command and does something once that is ready for it.
    template <class Ready, class Change>
    Result run_until(const Arguments& arguments, const Ready& ready, const Change& change) const {
        const pid_t pid = spawn(arguments);
        wait_until(pid, [&] { return ready(pid); });
        change();
        const int code = wait(pid);
        return {code, read_bytes(logs_.file("out")), read_bytes(logs_.file("err"))};
    }
    /// Overwrites bytes in the middle of a file.
    static void poke(const std::string& path) {
        std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
        file.seekp(std::streamoff(std::filesystem::file_size(path) / 2));
        file.write("other", 5);
    }
    std::string copy_of_sample() const {
        std::filesystem::copy_file(kSample, file("all.u8bin"), std::filesystem::copy_options::overwrite_existing);
        return file("all.u8bin");
    }
};

TEST_F(CliBase, AGraphBelongsToItsBase) {
    const std::string g = graph(), other = file("other.u8bin"), floats = file("floats.fbin"), narrow = file("n.u8bin");
    good({"convert", kSample, other, "--offset", "2000", "--count", "2000"});
    good({"convert", base(), floats});
    const std::vector<std::uint8_t> bytes(2000 * 64, 1);
    io::write_vectors(narrow, {bytes.data(), 2000, 64, DType::u8});
    const std::string index = file("index");
    for (const auto& [path, difference] : {std::pair{other, "the vectors are others"},
                                           {floats, "dtype is f32, expected u8"},
                                           {narrow, "d is 64, expected 128"}}) {
        const std::string message = g + " was not built from " + path + ": " + difference;
        EXPECT_TRUE(failed(run({"eval", g, path}), 1, message));
        EXPECT_TRUE(failed(run({"index", g, path, "--type", "nsg", "-o", index}), 1, message));
        EXPECT_TRUE(failed(run({"append", g, path, other, "-o", file("more.gnnd")}), 1, message));
    }
    EXPECT_FALSE(std::filesystem::exists(index));
    good({"convert", base(), file("same.bvecs")});
    good({"eval", g, file("same.bvecs"), "--queries", "10"});
}

// The vectors of a grown graph are those of two files; joined in one they are the same base.
TEST_F(CliBase, AGrownGraphBelongsToTheJoinedVectors) {
    const std::string first = base(), second = file("second.bvecs"), all = file("all.u8bin"),
                      grown = file("grown.gnnd");
    good({"convert", kSample, second, "--offset", "2000", "--count", "500"});
    good({"convert", kSample, all, "--count", "2500"});
    good({"append", graph(), first, second, "-o", grown, "-q"});
    good({"eval", grown, all, "--queries", "10"});
    EXPECT_TRUE(failed(run({"eval", grown, second}), 1, grown + ": has 2500 rows"));
}

TEST_F(CliBase, ABaseWrittenToDuringABuildGivesNoGraph) {
    const std::string all = copy_of_sample(), out = file("g.gnnd");
    write_bytes(out, "old");
    const Result result = run_until(
        {"build", all, "-k", "16", "--recall", "0", "--delta", "0", "--iterations", "60", "-o", out},
        [&](pid_t) { return has_told("iteration 1"); }, [&] { poke(all); });
    EXPECT_EQ(result.code, 1);
    EXPECT_TRUE(result.says("gnnd: " + all + ": was written to while it was in use\n")) << result.err;
    EXPECT_EQ(read_bytes(out), "old");
}

// Whatever the moment: while the file is opened, looked at, computed with or looked at again.
TEST_F(CliBase, ABaseTruncatedMeanwhileIsAnErrorThatNamesIt) {
    const std::string all = copy_of_sample(), whole = read_bytes(all), out = file("g.gnnd");
    const std::vector<Arguments> commands{{"build", all, "-k", "16", "-o", out, "-q"},
                                          {"exact", all, "-o", out},
                                          {"eval", file("all.gnnd"), all},
                                          {"append", file("all.gnnd"), all, base(1000), "-o", out, "-q"}};
    good({"build", all, "-k", "16", "--iterations", "1", "-o", file("all.gnnd"), "-q"});
    const std::size_t entries = dir_.entries();
    for (const Arguments& arguments : commands)
        for (const int milliseconds : {5, 20, 40, 80, 160}) {
            const auto now = [](pid_t) { return true; };
            const Result result = run_until(arguments, now, [&] {
                std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
                std::filesystem::resize_file(all, 4096);
            });
            // A command may succeed if it was over before the cut.
            EXPECT_TRUE(result.code == 0 || (result.code == 1 && result.says("gnnd: " + all + ": ")))
                << arguments[0] << " after " << milliseconds << " ms: " << result.code << " " << result.err;
            std::filesystem::remove(out);
            EXPECT_EQ(dir_.entries(), entries) << "a temporary file was left";
            write_bytes(all, whole);
        }
}

// A recall of other vectors, or an index of them, would be wrong without a word.
TEST_F(CliBase, ABaseWrittenToMeanwhileGivesNoRecallAndNoIndex) {
    const std::string all = copy_of_sample(), whole = read_bytes(all), g = file("all.gnnd"), out = file("out");
    good({"build", all, "-k", "16", "--iterations", "1", "-o", g, "-q"});
    const auto is_mapped = [&](pid_t pid) {
        std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
        return std::string(std::istreambuf_iterator<char>(maps), {}).find(all) != std::string::npos;
    };
    const std::vector<Arguments> commands{{"eval", g, all, "--queries", "0"},
                                          {"index", g, all, "--type", "nsg", "-o", out},
                                          {"index", all, "--factory", "GNND32,NSG32", "--device", "cpu", "-o", out}};
    for (const Arguments& arguments : commands) {
        Result result;
        // One that was through with all before is started again.
        for (int attempt = 0; attempt < 5 && result.code != 1; ++attempt) {
            std::filesystem::remove(out);
            write_bytes(all, whole);
            result = run_until(arguments, is_mapped, [&] {
                std::this_thread::sleep_for(std::chrono::milliseconds(30));  // until it was compared with the graph's
                poke(all);
            });
        }
        EXPECT_EQ(result.code, 1) << arguments[0];
        EXPECT_TRUE(result.says(all + ": was written to while it was in use\n") ||
                    result.says("was not built from " + all))
            << result.err;
        EXPECT_FALSE(std::filesystem::exists(out));
    }
}

}  // namespace
}  // namespace gnnd::test

// SPDX-License-Identifier: MIT
// Little memory and few threads: a command does its work or ends with one line, and never waits for ever.
#include <algorithm>

#include "tests/cli_fixture.h"

#ifndef GNND_SANITIZED  // whose shadow memory needs more address space than any limit leaves
namespace gnnd::test {
namespace {

/// Kills what hangs, which is code -SIGKILL then. What does not takes less than a second of one processor.
Arguments in_a_shell(const std::string& script) {
    return {"timeout", "-s", "KILL", "300", "sh", "-c", script + "; exec \"$@\"", "sh"};
}

/// Done, or one line and exit code 1. Where not even the libraries can be loaded it is the loader's to say so.
testing::AssertionResult ended_well(const Result& result) {
    if (result.code == 0 || (result.code == 127 && result.says("shared"))) return testing::AssertionSuccess();
    return failed(result, 1, "");
}

class CliLimits : public Cli {
  protected:
    std::vector<Arguments> commands() const {
        // On the CPU: a GPU's driver has threads and limits of its own.
        return {{"build", base(), "-k", "8", "-o", file("g"), "-q", "--device", "cpu"},
                {"build", base(), "-k", "8", "--shards", "2", "--work", file("w"), "-q", "--device", "cpu"},
                {"append", graph(), base(), base(100), "-o", file("a"), "-q", "--device", "cpu"},
                {"info", graph()},
                {"eval", graph(), base(), "--queries", "100", "--device", "cpu"},
                {"exact", base(), "-o", file("e"), "--device", "cpu"},
                {"index", graph(), base(), "--type", "nsg", "-o", file("i"), "--device", "cpu"}};
    }
};

TEST_F(CliLimits, LittleAddressSpaceIsTold) {
    bool refused = false;
    for (const Arguments& command : commands())
        for (int kilobytes = 60'000; kilobytes <= 300'000; kilobytes += 40'000) {
            std::filesystem::remove_all(file("w"));
            const Result result = run(command, in_a_shell("ulimit -v " + std::to_string(kilobytes)));
            EXPECT_TRUE(ended_well(result)) << command[0] << " " << kilobytes;
            refused = refused || result.code != 0;
        }
    EXPECT_TRUE(refused) << "the limits were none";
}

TEST_F(CliLimits, ALittleStackIsTold) {
    for (const Arguments& command : commands())
        for (const int kilobytes : {64, 200, 256, 400}) {
            std::filesystem::remove_all(file("w"));
            const Result result = run(command, in_a_shell("ulimit -s " + std::to_string(kilobytes)));
            if (kilobytes < 256)
                EXPECT_TRUE(failed(result, 1, "the limit of the stack (ulimit -s) is too small")) << command[0];
            else
                EXPECT_EQ(result.code, 0) << command[0] << " " << kilobytes << result.err;
        }
}

/// A file that may not grow as long as the folder needs it is an error, as a full disk is, and --resume goes on.
TEST_F(CliLimits, FilesThatMayNotGrowAreTold) {
    const Arguments build{"build", base(), "-k", "8", "--shards", "2", "--work", file("w"), "-q", "--device", "cpu"};
    for (const int blocks : {1, 16, 64, 120}) {  // of 512 bytes; the lists of a shard take 64,072
        std::filesystem::remove_all(file("w"));
        const Result result = run(build, in_a_shell("ulimit -f " + std::to_string(blocks)));
        EXPECT_TRUE(failed(result, 1, "File too large")) << blocks;
    }
    Arguments resumed = build;
    resumed.push_back("--resume");
    EXPECT_EQ(run(resumed, in_a_shell("ulimit -f 1000")).code, 0);
}

TEST_F(CliLimits, FewThreadsAreEnough) {
    const std::string preload = std::string("export LD_PRELOAD=") + kFewThreads + " GNND_FEW_THREADS=";
    for (const Arguments& command : commands())
        for (const char* threads : {"0", "1", "2", "5", "9"}) {
            std::filesystem::remove_all(file("w"));
            const Result result = run(command, in_a_shell(preload + threads));
            EXPECT_TRUE(ended_well(result)) << command[0] << " " << threads;
            const bool in_shards = std::find(command.begin(), command.end(), "--work") != command.end();
            EXPECT_TRUE(result.code == 0 || in_shards) << command[0] << " " << threads << result.err;
        }
    const json report =
        json::parse(run({"build", base(), "-o", file("g"), "--threads", "8", "-q", "--json", "--device", "cpu"},
                        in_a_shell(preload + "0"))
                        .out);
    EXPECT_EQ(report["threads"], 1);
}
}  // namespace
}  // namespace gnnd::test
#endif

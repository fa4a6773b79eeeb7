// SPDX-License-Identifier: MIT
// Commands that a signal ends.
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "tests/cli_fixture.h"

namespace gnnd::test {
namespace {

class CliSignal : public Cli, public testing::WithParamInterface<int> {};

TEST_P(CliSignal, EndsABuildWithoutATrace) {
    const std::string out = file("g.gnnd");
    write_bytes(out, "old");
    const pid_t pid =
        spawn({"build", kSample, "-k", "32", "--recall", "0", "--delta", "0", "--iterations", "1000000", "-o", out});
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (read_bytes(logs_.file("err")).find("iteration 1:") == std::string::npos &&
           std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    kill(pid, GetParam());
    EXPECT_EQ(wait(pid), -GetParam()) << "a shell's loop ends when a command dies of SIGINT";
    EXPECT_NE(read_bytes(logs_.file("err")).find("gnnd: interrupted"), std::string::npos);
    EXPECT_EQ(read_bytes(out), "old");
    EXPECT_EQ(dir_.entries(), 1u);
}

TEST_P(CliSignal, EndsAnExactBuildWithoutATrace) {
    const std::string big = file("big.fvecs");
    const io::VectorFile sample(kSample);
    std::vector<float> x(20000 * 128);
    copy_as_f32(sample.view(), 0, 20000, x.data());
    io::VectorWriter writer(big, 60000, 128, DType::f32);
    for (int i = 0; i < 3; ++i) writer.append(x.data(), 20000);
    writer.commit();
    const pid_t pid = spawn({"exact", big, "-o", file("g.gnnd"), "--device", "cpu"});
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    kill(pid, GetParam());
    EXPECT_EQ(wait(pid), -GetParam()) << "a shell's loop ends when a command dies of SIGINT";
    EXPECT_EQ(dir_.entries(), 1u);
}

TEST_P(CliSignal, EndsAConversionWithoutATrace) {
    Arguments arguments{"convert", kSample, file("many.npy"), "--join"};
    arguments.insert(arguments.end(), 60, kSample);
    const pid_t pid = spawn(arguments);
    // From when the file is begun on signals are caught.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (dir_.entries() == 0 && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    kill(pid, GetParam());
    EXPECT_EQ(wait(pid), -GetParam());
    EXPECT_EQ(read_bytes(logs_.file("err")), "gnnd: interrupted, nothing was written\n");
    EXPECT_EQ(dir_.entries(), 0u);
}

INSTANTIATE_TEST_SUITE_P(All, CliSignal, testing::Values(SIGINT, SIGTERM, SIGHUP),
                         [](const auto& info) { return std::string(sigabbrev_np(info.param)); });

}  // namespace
}  // namespace gnnd::test

// SPDX-License-Identifier: MIT
// Commands that a signal ends.
#include <csignal>
#include <cstring>
#include <filesystem>
#include <vector>

#include "tests/cli_fixture.h"

namespace gnnd::test {
namespace {

class CliSignal : public Cli, public testing::WithParamInterface<int> {
  protected:
    /// Sends a command the signal once it catches signals and is so far that it is ready for one. One that was through
    /// with all before the signal came is started again.
    /// \param out  what it writes
    template <class Ready>
    Result signalled(const Arguments& arguments, const std::string& out, const Ready& ready) const {
        Result result;
        for (int attempt = 0; attempt < 20; ++attempt) {
            std::filesystem::remove(out);
            const pid_t pid = spawn(arguments);
            wait_until(pid, [&] { return catches(pid, GetParam()) && ready(pid); });
            kill(pid, GetParam());
            result = {wait(pid), "", read_bytes(logs_.file("err"))};
            if (result.code != 0) break;
        }
        return result;
    }
};

TEST_P(CliSignal, EndsABuildWithoutATrace) {
    const std::string out = file("g.gnnd");
    write_bytes(out, "old");
    const pid_t pid =
        spawn({"build", kSample, "-k", "32", "--recall", "0", "--delta", "0", "--iterations", "1000000", "-o", out});
    wait_until(pid, [&] { return has_told("iteration 1:"); });
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
    // It takes seconds of the processors' time, on however many.
    const Result result = signalled({"exact", big, "-o", file("g.gnnd"), "--device", "cpu"}, file("g.gnnd"),
                                    [](pid_t pid) { return seconds_of(pid) >= 0.5; });
    EXPECT_EQ(result.code, -GetParam()) << "a shell's loop ends when a command dies of SIGINT";
    EXPECT_EQ(result.err, "gnnd: interrupted, nothing was written\n");
    EXPECT_EQ(dir_.entries(), 1u);
}

TEST_P(CliSignal, EndsAConversionWithoutATrace) {
    Arguments arguments{"convert", kSample, file("many.npy"), "--join"};
    arguments.insert(arguments.end(), 60, kSample);
    const Result result = signalled(arguments, file("many.npy"), [this](pid_t) { return dir_.entries() > 0; });
    EXPECT_EQ(result.code, -GetParam());
    EXPECT_EQ(result.err, "gnnd: interrupted, nothing was written\n");
    EXPECT_EQ(dir_.entries(), 0u);
}

INSTANTIATE_TEST_SUITE_P(All, CliSignal, testing::Values(SIGINT, SIGTERM, SIGHUP),
                         [](const auto& info) { return std::string(sigabbrev_np(info.param)); });

}  // namespace
}  // namespace gnnd::test

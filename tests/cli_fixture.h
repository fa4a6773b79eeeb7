// SPDX-License-Identifier: MIT
#pragma once
/// \file cli_fixture.h
/// Runs the tool as a shell would, for tests of what it prints, returns and leaves behind.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <regex.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gnnd/io/graph_file.h"
#include "gnnd/io/vector_file.h"
#include "tests/paths.h"
#include "tests/temp_dir.h"

namespace gnnd::test {

using nlohmann::json;
using Arguments = std::vector<std::string>;

inline const std::string kSample = kSampleFile;

struct Result {
    int code = -1;
    std::string out, err;

    json parsed() const { return json::parse(out); }
    bool says(const std::string& text) const { return err.find(text) != std::string::npos; }
};

/// True where the POSIX extended regular expression matches. The one in <regex> costs a minute under the sanitizers.
inline bool matches(const std::string& text, const std::string& pattern) {
    regex_t compiled;
    if (regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB) != 0)
        throw std::invalid_argument("bad pattern: " + pattern);
    const bool found = regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
    regfree(&compiled);
    return found;
}

/// A run that failed as it should: one line on standard error, nothing on standard output.
inline testing::AssertionResult failed(const Result& result, int code, const std::string& text) {
    const bool one_line = matches(result.err, "^gnnd: [^\n]+\n$");
    if (result.code == code && one_line && result.says(text) && result.out.empty()) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "expected code " << code << " and one line with \"" << text << "\", got "
                                       << result.code << "\n"
                                       << result.err << result.out;
}

class Cli : public testing::Test {
  protected:
    std::string file(const std::string& name) const { return dir_.file(name); }

    /// Starts the tool with its output in files, standard error in the descriptor if one is given.
    /// \param before  a command that starts it: "env", "A=B"
    pid_t spawn(const Arguments& arguments, int error_descriptor = -1, const Arguments& before = {}) const {
        std::vector<char*> argv;
        for (const std::string& argument : before) argv.push_back(const_cast<char*>(argument.c_str()));
        argv.push_back(const_cast<char*>(kTool));
        for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
        argv.push_back(nullptr);
        const std::string out = logs_.file("out"), err = logs_.file("err");
        constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), kFlags, 0600);
        if (error_descriptor < 0)
            posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), kFlags, 0600);
        else
            posix_spawn_file_actions_adddup2(&actions, error_descriptor, STDERR_FILENO);
        // The test may itself run where signals are ignored, in the background of a script for instance.
        posix_spawnattr_t attributes;
        posix_spawnattr_init(&attributes);
        sigset_t defaults;
        sigemptyset(&defaults);
        sigaddset(&defaults, SIGINT);
        sigaddset(&defaults, SIGTERM);
        sigaddset(&defaults, SIGHUP);
        posix_spawnattr_setsigdefault(&attributes, &defaults);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
        pid_t pid = -1;
        const int error = posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), environ);
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
        if (error != 0) throw std::runtime_error(std::string("cannot start ") + kTool);
        return pid;
    }

    static int wait(pid_t pid) {
        int status = 0;
        waitpid(pid, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }

    /// Whether the process has ended. It can still be waited for.
    static bool is_over(pid_t pid) {
        siginfo_t info{};
        return waitid(P_PID, id_t(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
    }
    /// Until something has happened, or the process has ended, in which it cannot happen any more; however busy the
    /// machine is, but not for ever.
    template <class Happened>
    static void wait_until(pid_t pid, const Happened& happened) {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(10);
        while (!happened() && !is_over(pid) && std::chrono::steady_clock::now() < deadline)
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    bool has_told(const std::string& text) const {
        return read_bytes(logs_.file("err")).find(text) != std::string::npos;
    }
    /// Whether the process has a handler of its own for the signal.
    static bool catches(pid_t pid, int signal) {
        std::ifstream status("/proc/" + std::to_string(pid) + "/status");
        for (std::string line; std::getline(status, line);)
            if (line.starts_with("SigCgt:")) return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
        return false;
    }
    /// Processor time that the process has used.
    static double seconds_of(pid_t pid) {
        std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
        std::string text{std::istreambuf_iterator<char>(in), {}};
        std::istringstream fields(text.substr(text.rfind(')') + 1));
        std::string skipped;
        for (int field = 3; field < 14; ++field) fields >> skipped;
        long user = 0, system = 0;
        fields >> user >> system;
        return double(user + system) / double(sysconf(_SC_CLK_TCK));
    }

    Result run(const Arguments& arguments, const Arguments& before = {}) const {
        const int code = wait(spawn(arguments, -1, before));
        return {code, read_bytes(logs_.file("out")), read_bytes(logs_.file("err"))};
    }

    /// Runs what must succeed.
    Result good(const Arguments& arguments) const {
        Result result = run(arguments);
        EXPECT_EQ(result.code, 0) << result.err;
        return result;
    }

    /// The sum of a graph file's distances.
    static double phi_of(const std::string& path) {
        const KnnGraph graph = io::GraphFile(path).read();
        return std::accumulate(graph.distances(), graph.distances() + graph.n() * graph.k(), 0.0);
    }

    /// The first rows of the sample as a file of their own.
    std::string base(std::int64_t n = 2000) const {
        const std::string path = file("base" + std::to_string(n) + ".u8bin");
        if (std::filesystem::exists(path)) return path;
        const io::VectorFile sample(kSample);
        VectorView view = sample.view();
        view.n = n;
        io::write_vectors(path, view);
        return path;
    }

    /// A file of that name, which is made once for all tests of a process. \param make  makes it, at a path
    template <class Make>
    std::string once(const std::string& name, Make make) const {
        static std::map<std::string, std::string> made;
        const std::string path = file(name);
        if (std::filesystem::exists(path)) return path;
        std::string& bytes = made[name];
        if (bytes.empty()) {
            make(path);
            bytes = read_bytes(path);
        } else {
            write_bytes(path, bytes);
        }
        return path;
    }

    /// A graph of base().
    std::string graph(const std::string& metric = "l2") const {
        const std::string vectors = base();
        return once(metric + ".gnnd", [&](const std::string& path) {
            good({"build", vectors, "-k", "16", "--metric", metric, "-o", path, "-q"});
        });
    }

    TempDir dir_, logs_;
};

}  // namespace gnnd::test

// SPDX-License-Identifier: MIT
// The tool makes a man page, and completion for bash, of its own help. It also plans builds.
#include <sstream>

#include "faiss_ext/graph_builder.h"
#include "gnnd/metric.h"
#include "tests/cli_fixture.h"

namespace gnnd::test {
namespace {

std::vector<std::string> words(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> found;
    for (std::string word; stream >> word;) found.push_back(word);
    return found;
}

class CliHelp : public Cli {
  protected:
    /// Returns the words that bash would offer after these.
    std::vector<std::string> completed(const Arguments& line) const {
        std::string script = "source " + file("completion") + "; COMP_WORDS=(";
        for (const std::string& word : line) script += "'" + word + "' ";
        script += "); COMP_CWORD=" + std::to_string(line.size() - 1) + "; _gnnd; echo \"${COMPREPLY[@]}\"";
        write_bytes(file("completion"), good({"completion", "bash"}).out);
        write_bytes(file("script"), script);
        const std::string out = file("offered");
        EXPECT_EQ(std::system(("bash " + file("script") + " > " + out).c_str()), 0);
        return words(read_bytes(out));
    }
};

TEST_F(CliHelp, EveryCommandAndOptionIsCompletedAndInTheManual) {
    const std::string manual = good({"man"}).out, overview = good({"--help"}).out;
    const std::vector<std::string> commands = completed({"gnnd", ""});
    ASSERT_GT(commands.size(), 10u);
    EXPECT_EQ(completed({"gnnd", "bui"}), std::vector<std::string>{"build"});
    for (const std::string& command : commands) {
        if (command[0] == '-') continue;
        EXPECT_NE(overview.find("\n  " + command + " "), std::string::npos) << command;
        const std::size_t section = manual.find("\n.SS " + command + "\n");
        ASSERT_NE(section, std::string::npos) << command;
        const std::string page = manual.substr(section, manual.find("\n.SS ", section + 1) - section);
        const std::string help = good({command, "--help"}).out;
        const std::vector<std::string> options = completed({"gnnd", command, "-"});
        ASSERT_FALSE(options.empty()) << command;
        for (const std::string& option : options) {
            EXPECT_NE(help.find(option), std::string::npos) << command << " " << option;
            std::string escaped;
            for (const char c : option) escaped += c == '-' ? std::string("\\-") : std::string(1, c);
            EXPECT_NE(page.find(escaped), std::string::npos) << command << " " << option;
        }
        // And the other way round: what help begins a line with.
        std::istringstream lines(help);
        for (std::string line; std::getline(lines, line);) {
            const std::string first = line.starts_with("  -") ? words(line)[0] : "";
            if (first.empty()) continue;
            const std::string name = first.substr(0, first.find(','));
            EXPECT_NE(std::find(options.begin(), options.end(), name), options.end()) << command << " " << name;
        }
    }
    EXPECT_EQ(completed({"gnnd", "build", "--sam"}), std::vector<std::string>{"--samples"});
    EXPECT_TRUE(completed({"gnnd", "build", "file"}).empty()) << "bash offers names of files then";
    EXPECT_TRUE(failed(run({"completion", "zsh"}), 2, "SHELL: unknown shell 'zsh'; known are bash"));
}

TEST_F(CliHelp, HelpFitsATerminal) {
    Arguments commands = completed({"gnnd", ""});
    for (const std::string& command : commands) {
        const std::string help = command[0] == '-' ? good({"--help"}).out : good({command, "--help"}).out;
        std::istringstream lines(help);
        for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << command << ": " << line;
        if (command[0] == '-') continue;
        EXPECT_EQ(good({"help", command}).out, help);
    }
    EXPECT_EQ(good({"help"}).out, good({"--help"}).out);
    EXPECT_NE(good({"help", "build"}).out.find("\nExample: gnnd build base.fvecs -k 32 -o base.gnnd\n"),
              std::string::npos)
        << "examples keep their lines";
    EXPECT_TRUE(failed(run({"help", "bui"}), 2, "unknown command 'bui'; known are build, "));
    const std::vector<std::string> offered = completed({"gnnd", "help", ""});
    EXPECT_NE(std::find(offered.begin(), offered.end(), "build"), offered.end());
}

TEST_F(CliHelp, NamedValuesAreCompleted) {
    std::vector<std::string> metrics, methods;
    for (const Metric metric : kMetrics) metrics.emplace_back(name_of(metric));
    for (const auto& type : faiss_ext::graph_builder_types()) methods.push_back(type.name);
    EXPECT_EQ(completed({"gnnd", "build", "--metric", ""}), metrics);
    EXPECT_EQ(completed({"gnnd", "build", "--metric", "="}), metrics) << "bash takes the = for a word";
    EXPECT_EQ(completed({"gnnd", "build", "--metric", "=", "ch"}), std::vector<std::string>{"chi2"});
    EXPECT_EQ(completed({"gnnd", "build", "file", "--method", ""}), methods);
    EXPECT_EQ(completed({"gnnd", "completion", "b"}), std::vector<std::string>{"bash"});
    EXPECT_TRUE(completed({"gnnd", "refine", "--init", ""}).empty()) << "an option that it does not have";
    int named = 0;
    for (const std::string& command : completed({"gnnd", ""})) {
        std::istringstream lines(command[0] == '-' ? "" : good({command, "--help"}).out);
        for (std::string line; std::getline(lines, line);) {
            const std::vector<std::string> head = words(line);
            if (head.size() < 2 || !head[0].starts_with("--") || (head[1] != "NAME" && !head[1].starts_with("NAME=")))
                continue;
            ++named;
            const std::vector<std::string> values = completed({"gnnd", command, head[0], ""});
            EXPECT_FALSE(values.empty()) << command << " " << head[0];
            for (const std::string& value : values) {
                const Result result = run({command, head[0], value});  // in which only the files are missing
                EXPECT_TRUE(failed(result, 2, " is required")) << command << " " << head[0] << " " << value;
            }
        }
    }
    EXPECT_GT(named, 20);
}

TEST_F(CliHelp, ADryRunSaysWhatTheBuildDecides) {
    const Arguments options{"-k", "20", "--seed", "3", "--recall", "0", "--device", "cpu", "--json"};
    Arguments plan{"build", base(5000), "--dry-run"}, build{"build", base(5000), "-q", "-o", file("g")};
    plan.insert(plan.end(), options.begin(), options.end());
    build.insert(build.end(), options.begin(), options.end());
    const json planned = good(plan).parsed(), built = good(build).parsed();
    EXPECT_EQ(planned["params"], built["params"]);
    EXPECT_GT(planned["params"]["samples"], 0);
    EXPECT_GT(planned["total"], 0);
    EXPECT_EQ(good({"build", base(100), "--dry-run", "--json"}).parsed()["exhaustive"], true);
    EXPECT_EQ(planned["why"], "iterations until few entries change, as no recall was asked for");
    EXPECT_GT(planned["predicted"]["all_pairs"], 0);
    EXPECT_GT(planned["predicted"]["iterations"], 0);
    EXPECT_EQ(good({"build", base(5000), "--dry-run", "--metric", "l1", "--json"}).parsed()["predicted"], nullptr);
    const std::string exact = good({"build", base(5000), "--dry-run", "--method", "exhaustive", "--device", "cpu"}).out;
    EXPECT_TRUE(matches(exact,
                        "method    all pairs are compared\nchoice    all pairs, as was asked for\n"
                        "time      all pairs about [0-9.]+ s, three iterations about [0-9.]+ s [(]rates of an "));
    for (const Arguments& last : {Arguments{"--dry-run"}, Arguments{"-o", file("g")}}) {
        Arguments arguments{"build", base(5000), "-k", "8", "--list-size", "32", "--samples", "100", "--device", "cpu"};
        arguments.insert(arguments.end(), last.begin(), last.end());
        EXPECT_TRUE(failed(run(arguments), 2, "--samples 100: allowed are"))
            << "the plan refuses what the build refuses";
    }
}

TEST_F(CliHelp, RefineGoesOnWithAGraph) {
    const std::string rough = file("rough.gnnd"), better = file("better.gnnd");
    good({"build", base(5000), "-k", "10", "--iterations", "1", "--init", "random", "-o", rough, "-q"});
    const json report = good({"refine", rough, base(5000), "-o", better, "-q", "--json"}).parsed();
    EXPECT_EQ(report["method"], "refine");
    EXPECT_EQ(report["params"]["k"], 10);
    const auto recall = [&](const std::string& path) {
        return good({"eval", path, base(5000), "--queries", "500", "--json"}).parsed()["recall"].get<double>();
    };
    EXPECT_LT(recall(rough), 0.8);
    EXPECT_GT(recall(better), 0.98);
    EXPECT_LT(phi_of(better), phi_of(rough));
    EXPECT_EQ(good({"refine", rough, base(5000), "-k", "20", "-o", better, "-q", "--json"}).parsed()["params"]["k"],
              20);
    EXPECT_TRUE(failed(run({"refine", rough, base(4000), "-o", better}), 1, "4000"));
    EXPECT_TRUE(
        failed(run({"refine", rough, base(5000), "-o", better, "--init", "random"}), 2, "no such option: --init"));
    good({"refine", rough, base(5000), "-o", rough, "-q"});
    EXPECT_GT(recall(rough), 0.98);
}

}  // namespace
}  // namespace gnnd::test

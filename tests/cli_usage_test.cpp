// SPDX-License-Identifier: MIT
// Wrong usage: values that are refused, names that are mistyped, what the messages say.
#include "tests/cli_fixture.h"

namespace gnnd::test {
namespace {

/// Files need not be there: what is wrong is told before they are opened.
Arguments with(Arguments arguments, const std::string& option, const std::string& value) {
    arguments.push_back(option);
    arguments.push_back(value);
    return arguments;
}

TEST_F(Cli, NumbersAreRefusedInOneWay) {
    const Arguments build{"build", "b.fvecs", "-o", file("g")}, eval{"eval", "g", "b.fvecs"},
        nsg{"index", "g", "b.fvecs", "-o", file("i"), "--type", "nsg"},
        hnsw{"index", "g", "b.fvecs", "-o", file("i"), "--type", "hnsw"};
    for (const char* value : {"0", "-3", "1025", "many", "1.5", "0x10", "", "99999999999999999999"})
        EXPECT_TRUE(failed(run(with(build, "-k", value)), 2, ": allowed are whole numbers from 1 to 1024")) << value;
    EXPECT_TRUE(failed(run(with(build, "-k", "0")), 2, "gnnd: -k 0: allowed are"));
    EXPECT_TRUE(failed(run(with(build, "--threads", "-1")), 2, "--threads -1: allowed are whole numbers from 0"));
    EXPECT_TRUE(failed(run(with(build, "--list-size", "-1")), 2, "--list-size -1: allowed"));
    EXPECT_TRUE(failed(run(with(build, "--trees", "2000")), 2, "--trees 2000: allowed"));
    for (const char* value : {"-1", "18446744073709551616", "1e3"})
        for (const Arguments& command : {build, eval})
            EXPECT_TRUE(failed(run(with(command, "--seed", value)), 2, "from 0 to 18446744073709551615")) << value;
    for (const char* value : {"-0.1", "1.5", "nan", "0.1x"})
        EXPECT_TRUE(failed(run(with(build, "--delta", value)), 2, ": allowed are numbers from 0 to 1")) << value;
    EXPECT_TRUE(failed(run(with(eval, "--queries", "-1")), 2, "from 0 to 2147483647"));
    EXPECT_TRUE(failed(run({"convert", "a.fvecs", "b.fbin", "--offset", "-1"}), 2, "--offset -1: allowed"));
    EXPECT_TRUE(failed(run(with(nsg, "--R", "5000")), 2, "from 1 to 4096"));
    EXPECT_TRUE(failed(run(with(hnsw, "--M", "1")), 2, "from 2 to 2048"));
    EXPECT_TRUE(failed(run(with(hnsw, "--ef-search", "0")), 2, "--ef-search 0"));
    EXPECT_TRUE(failed(run({"search", "i", "q.fvecs", "--ef", "-5"}), 2, "--ef -5"));
    EXPECT_TRUE(failed(run({"build", "b.fvecs", "--work", file("w"), "--checkpoint", "-1"}), 2, "--checkpoint -1"));
}

TEST_F(Cli, ALeadingZeroIsNoOctalNumber) {
    EXPECT_EQ(good({"build", base(100), "-k", "010", "-o", file("g"), "-q", "--json"}).parsed()["params"]["k"], 10);
}

TEST_F(Cli, SizesAreTakenInEveryUsualForm) {
    for (const char* size : {"2e9", "1.5GB", "1.5gb", "8GiB", "8g", "500MB", "64 MiB", "0", "+1000000B"})
        good({"build", base(100), "-k", "4", "-o", file("g"), "-q", "--device-memory", size});
    good({"build", base(500), "-k", "4", "--work", file("w"), "-q", "--shards", "2", "--host-memory", "1.5GB"});
    for (const char* size : {"much", "-1", "8X", "GB", "1.5.5G", "", "inf", "nan", "0.5", "99999T", "8GBs"})
        EXPECT_TRUE(
            failed(run({"build", base(100), "-o", file("g"), "--device-memory", size}), 2, ": allowed are sizes"))
            << size;
}

TEST_F(Cli, AnEmptyNameIsRefusedBeforeTheWork) {
    const std::string vectors = base(100);
    for (const Arguments& arguments :
         {Arguments{"build", vectors, "-o", ""}, Arguments{"build", vectors, "--work", ""},
          Arguments{"build", vectors, "-o", file("g"), "--stats", ""}, Arguments{"exact", vectors, "-o", ""},
          Arguments{"index", graph(), vectors, "--type", "nsg", "-o", ""},
          Arguments{"search", graph(), vectors, "-o", ""}, Arguments{"search", graph(), vectors, "--truth", ""},
          Arguments{"convert", vectors, file("g"), "--base", ""}, Arguments{"search", "", vectors},
          Arguments{"convert", vectors, file("g.npy"), "--join", ""}, Arguments{"search", graph(), ""},
          Arguments{"build", "", "-o", file("g")}, Arguments{"eval", "", vectors}, Arguments{"info", ""},
          Arguments{"convert", "", file("g")}, Arguments{"convert", vectors, ""}})
        EXPECT_TRUE(failed(run(arguments), 2, "may not be empty")) << arguments[0] << arguments[1];
}

TEST_F(Cli, NoDeviceIsPassedOver) {
    for (const char* devices : {"cpu,", ",cpu", "cpu,,cpu", ",", ""})
        EXPECT_TRUE(failed(run({"build", base(100), "--work", file("w"), "--devices", devices}), 2,
                           "--devices: unknown device ''"))
            << devices;
    std::string many = "cpu";
    for (int i = 1; i < 65; ++i) many += ",cpu";
    EXPECT_TRUE(failed(run({"build", base(100), "--work", file("w"), "--devices", many}), 2,
                       "--devices 65: allowed are 0 to 64"));
    EXPECT_TRUE(failed(run({"build", base(100), "--work", file("w"), "--shards", "101"}), 2,
                       "--shards 101: " + base(100) + " has only 100 vectors"));
    EXPECT_FALSE(std::filesystem::exists(file("w")));
}

TEST_F(Cli, AMistypedNameGetsASuggestion) {
    const auto suggests = [&](const Arguments& arguments, const std::string& meant) {
        return failed(run(arguments), 2, "; did you mean " + meant + "?");
    };
    EXPECT_TRUE(suggests({"biuld"}, "build"));
    EXPECT_TRUE(suggests({"apend", "g", "b", "c"}, "append"));
    EXPECT_TRUE(suggests({"--vresion"}, "--version"));
    EXPECT_TRUE(suggests({"build", "b.fvecs", "-o", "g", "--sample", "5"}, "--samples"));
    EXPECT_TRUE(suggests({"build", "b.fvecs", "--ouput=g"}, "--output"));
    EXPECT_TRUE(suggests({"build", "b.fvecs", "-o", "g", "--Metric=l1"}, "--metric"));
    EXPECT_TRUE(suggests({"eval", "g", "--qeuries", "5"}, "--queries"));
    for (const Arguments& arguments : {Arguments{"frobnicate"}, Arguments{"build", "b.fvecs", "--frobnicate"}}) {
        const Result result = run(arguments);
        EXPECT_TRUE(failed(result, 2, "frobnicate"));
        EXPECT_FALSE(result.says("mean")) << result.err;
    }
}

TEST_F(Cli, UsageIsToldInTheUsersWords) {
    EXPECT_TRUE(failed(run({}), 2, "a command is required (see `gnnd --help`)"));
    EXPECT_TRUE(failed(run({"info", "a", "b"}), 2, "one argument too many: b (see `gnnd info --help`)"));
    EXPECT_TRUE(failed(run({"build", "b.fvecs", "-o"}), 2, "--output needs a value"));
    EXPECT_TRUE(failed(run({"build", "b.fvecs", "-o", "g", "-k", "1", "-k", "2"}), 2, "--k is given more than once"));
    EXPECT_TRUE(failed(run({"build", "b.fvecs", "-o", "g", "--deterministic=maybe"}), 2,
                       "gnnd: --deterministic maybe: allowed are true and false"));
}

TEST_F(Cli, TheWordIsBlamedThatIsWrong) {
    const auto blames = [&](const Arguments& arguments, const std::string& text) {
        return failed(run(arguments), 2, "gnnd: " + text);
    };
    EXPECT_TRUE(blames({"bui", "x", "-o", "v"}, "no such command: bui; did you mean build? (see `gnnd --help`)"));
    EXPECT_TRUE(blames({"bui", "--help-me"}, "no such command: bui"));
    EXPECT_TRUE(blames({"-o", "bui", "x"}, "no such option: -o (see `gnnd --help`)"));
    EXPECT_TRUE(blames({"-o", "build", "x"}, "no such option: -o (see `gnnd --help`)"));
    EXPECT_TRUE(blames({"--frob", "build", "x"}, "no such option: --frob (see `gnnd --help`)"));
    EXPECT_TRUE(blames({"x", "build", "y"}, "no such command: x"));
    EXPECT_TRUE(blames({"--", "build", "x"}, "a command is required"));
    EXPECT_TRUE(blames({"build", "--", "x"}, "--output is required (see `gnnd build --help`)"));
    EXPECT_TRUE(blames({"info", "--", "x", "-y"}, "one argument too many: -y (see `gnnd info --help`)"));
    EXPECT_TRUE(blames({"info", "-y", "--", "x"}, "no such option: -y"));
    EXPECT_TRUE(failed(run({"info", "--", "-x"}), 1, "gnnd: -x: cannot open"));
}

TEST_F(Cli, AFilesNameReachesTheTerminalPrintable) {
    EXPECT_TRUE(failed(run({"info", file("a\x1b[2Jb.fvecs")}), 1, "a\\x1b[2Jb.fvecs"));
    EXPECT_TRUE(failed(run({"info", file("a\xc2\x9b[J\xc3\x9c.fvecs")}), 1, "a\\xc2\\x9b[J\xc3\x9c.fvecs"));
}

TEST_F(Cli, HelpThatCannotBeWrittenIsAnError) {
    for (const char* flag : {"--help", "--version"}) {
        const pid_t pid = fork();
        if (pid == 0) {
            dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO);
            dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
            execl(kTool, "gnnd", flag, static_cast<char*>(nullptr));
            _exit(127);
        }
        EXPECT_EQ(wait(pid), 1) << flag;
    }
}

TEST_F(Cli, MessagesOfTheSystemAndOfFaissNameTheFile) {
#ifndef GNND_SANITIZED  // FAISS 1.7.3 leaks the index that it has begun to read
    write_bytes(file("short.faiss"), "IxF2");
    const Result result = run({"search", file("short.faiss"), base(100)});
    EXPECT_TRUE(failed(result, 1, "short.faiss: the file ends too early"));
    EXPECT_FALSE(result.says("Success")) << result.err;
#endif
    const std::string name(300, 'x');  // longer than the system allows
    EXPECT_TRUE(failed(run({"build", base(100), "-o", file(name)}), 2, name));
    EXPECT_FALSE(run({"build", base(100), "-o", file(name)}).says("filesystem error"));
}

}  // namespace
}  // namespace gnnd::test

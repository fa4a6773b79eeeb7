// SPDX-License-Identifier: MIT
#include "tool.h"

#include <cstdio>
#include <iostream>
#include <string>

#include "bus_error.h"
#include "commands.h"
#include "faiss_part.h"
#include "files.h"
#include "gnnd/version.h"
#include "interrupt.h"
#include "layout.h"
#include "messages.h"
#include "threads.h"

namespace {

constexpr const char* kCannotWrite = "cannot write to standard output";

int fail(int code, const std::string& message) {
    std::cerr << "gnnd: " << cli::printable(message) << '\n';
    return code;
}

/// True if all that was printed has arrived. If nothing is buffered (PYTHONUNBUFFERED, stdbuf) only the stream's mark
/// tells of a failure.
bool printed() {
    return std::cout.flush() && std::ferror(stdout) == 0;
}

int run_command(int argc, char** argv) {
    CLI::App app("Approximate k-NN graphs for FAISS: build, merge, check, convert and search them.", "gnnd");
    app.formatter(cli::narrow_help());
#ifdef GNND_CUDA_VERSION
    const char* const cuda = ", CUDA " GNND_CUDA_VERSION;
#else
    const char* const cuda = "";
#endif
    app.set_version_flag("--version", "gnnd " GNND_VERSION_STRING " (" + cli::faiss_version() + cuda + ")");
    app.require_subcommand(1);
    app.footer(
        std::string(
            "Exit codes: 0 done, 1 a file or its data is not as it must be, or memory or disk are too small, 2 wrong\n"
            "usage. SIGINT (Ctrl-C), SIGTERM and SIGHUP end a command cleanly; it then dies of the signal (a shell's "
            "130).\n"
            "`gnnd COMMAND --help` tells the options of a command.\n") +
        cli::lack_of_faiss() +
        "Example: gnnd build base.fvecs -k 32 -o base.gnnd\n"
        "         gnnd append base.gnnd base.fvecs new.fvecs -o all.gnnd");
    cli::add_build(app);
    cli::add_merge(app);
    cli::add_append(app);
    cli::add_refine(app);
    cli::add_tune(app);
    cli::add_eval(app);
    cli::add_exact(app);
    cli::add_info(app);
    cli::add_convert(app);
    cli::add_graph_operations(app);
    cli::add_index(app);
    cli::add_search(app);
    cli::add_manual(app);

    try {
        cli::catch_signals();
        cli::report_bus_errors();
        app.parse(argc, argv);
        if (!printed()) return fail(1, kCannotWrite);
        return 0;
    } catch (const CLI::Success& success) {
        const int code = app.exit(success);  // --help, --version
        if (!printed()) return fail(1, kCannotWrite);
        return code;
    } catch (const CLI::ParseError& error) {
        return fail(2, cli::usage_message(app, error));
    } catch (const std::exception& error) {
        // FAISS reports an interruption as an error like any other.
        if (cli::caught_signal() != 0) {
            const bool resumable = dynamic_cast<const cli::Resumable*>(&error) != nullptr;
            return fail(1, resumable ? error.what() : "interrupted, nothing was written");
        }
        return fail(1, cli::message_of(error));
    }
}

}  // namespace

int cli::run_tool(int argc, char** argv, char** command_line) {
    int code = 1;
    try {
        prepare_process();
        limit_threads(command_line);
        code = run_command(argc, argv);
    } catch (const std::exception& error) {  // before the application itself was put together
        fail(code, message_of(error));
    }
    if (code != 0) die_of_signal();
    return code;
}

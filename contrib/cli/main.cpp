// gnnd: the command-line tool. Exit codes: 0 done, 1 something in a file or in the data was wrong, 2 wrong usage,
// 128 + number of the signal that ended it.

#include <faiss/impl/FaissException.h>

#include <algorithm>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "commands.h"
#include "faiss_ext/compat.h"
#include "gnnd/version.h"
#include "interrupt.h"

namespace {

int fail(int code, std::string message) {
    std::replace(message.begin(), message.end(), '\n', ' ');
    std::cerr << "gnnd: " << message << '\n';
    return code;
}

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
    std::string command = app.get_name(), message = error.what();
    const std::vector<std::string> unknown = app.remaining();
    if (app.get_subcommands().empty() && !unknown.empty()) message = "no such command: " + unknown.front();
    for (const CLI::App* sub : app.get_subcommands()) command += " " + sub->get_name();
    return fail(2, message + " (see `" + command + " --help`)");
}

/// FAISS's messages start with the function and the line that threw, which a user of the tool has no use for.
std::string without_origin(const std::string& message) {
    // "Error in FUNCTION at FILE:LINE: " and perhaps "Error: 'CONDITION' failed: "
    std::size_t begin = 0;
    if (message.starts_with("Error in ")) {
        const std::size_t file = message.find(" at ");
        const std::size_t end = file == std::string::npos ? file : message.find(": ", file);
        if (end != std::string::npos) begin = end + 2;
    }
    constexpr std::string_view kFailed = "' failed: ";
    if (message.compare(begin, 8, "Error: '") == 0) {
        const std::size_t end = message.find(kFailed, begin);
        if (end != std::string::npos) begin = end + kFailed.size();
    }
    return message.substr(begin);
}

std::string version() {
    return "gnnd " GNND_VERSION_STRING " (FAISS " + std::to_string(FAISS_VERSION_MAJOR) + "." +
           std::to_string(FAISS_VERSION_MINOR) + "." + std::to_string(FAISS_VERSION_PATCH) + ")";
}

int run(int argc, char** argv) {
    CLI::App app("Approximate k-NN graphs for FAISS: build, merge, check, convert and search them.", "gnnd");
    app.get_formatter()->column_width(32);
    app.set_version_flag("--version", version());
    app.require_subcommand(1);
    app.footer(
        "Exit codes: 0 done, 1 a file or its data is not as it must be, 2 wrong usage, 130 interrupted\n"
        "(128 and the number of the signal that ended it).\n"
        "`gnnd COMMAND --help` tells the options of a command.\n"
        "Example: gnnd build base.fvecs -k 32 -o base.gnnd\n"
        "         gnnd append base.gnnd base.fvecs new.fvecs -o all.gnnd");
    cli::add_build(app);
    cli::add_merge(app);
    cli::add_append(app);
    cli::add_eval(app);
    cli::add_exact(app);
    cli::add_info(app);
    cli::add_convert(app);
    cli::add_index(app);
    cli::add_search(app);

    try {
        cli::catch_signals();
        app.parse(argc, argv);
        if (!std::cout.flush()) return fail(1, "cannot write to standard output");
        return 0;
    } catch (const CLI::Success& success) {
        return app.exit(success);  // --help, --version
    } catch (const CLI::ParseError& error) {
        return usage_error(app, error);
    } catch (const std::exception& error) {
        // FAISS reports an interruption as an error like any other.
        if (cli::caught_signal() != 0) {
            const bool resumable = dynamic_cast<const cli::Resumable*>(&error) != nullptr;
            return fail(128 + cli::caught_signal(), resumable ? error.what() : "interrupted, nothing was written");
        }
        if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return fail(1, "out of memory");
        if (dynamic_cast<const faiss::FaissException*>(&error) != nullptr) return fail(1, without_origin(error.what()));
        return fail(1, error.what());
    }
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {  // while the application itself was put together
        return fail(1, error.what());
    }
}

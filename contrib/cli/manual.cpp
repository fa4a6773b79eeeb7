// SPDX-License-Identifier: MIT
// man and completion: what the options and commands say of themselves, for man(1) and for bash.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "commands.h"
#include "gnnd/version.h"
#include "layout.h"
#include "values.h"

namespace cli {

namespace {

std::vector<CLI::App*> commands_of(CLI::App& app) {
    return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

/// The text with what roff would take for itself escaped.
std::string roff(const std::string& text) {
    std::string escaped;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool at_line = i == 0 || text[i - 1] == '\n';
        if (at_line && (text[i] == '.' || text[i] == '\'')) escaped += "\\&";
        if (text[i] == '\\')
            escaped += "\\e";
        else if (text[i] == '-')
            escaped += "\\-";
        else
            escaped += text[i];
    }
    return escaped;
}

void print_option(const CLI::Option& option) {
    std::string head = option.get_positional() ? option.get_name() : option.get_name(false, true);
    if (!option.get_positional() && option.get_type_size() != 0) head += " " + option.get_type_name();
    std::cout << ".TP\n.B " << roff(head) << '\n' << roff(option.get_description());
    if (!option.get_default_str().empty()) std::cout << " (" << roff(option.get_default_str()) << " by default)";
    std::cout << '\n';
}

/// Lines stay as they are: examples stand below each other.
void print_lines(const std::string& text) {
    constexpr std::size_t kMargin = 7;  // of man, in front of each line
    std::cout << ".nf\n" << roff(filled(text, kColumns - kMargin)) << ".fi\n";
}

void print_command(const CLI::App& command) {
    std::cout << ".SS " << roff(command.get_name()) << '\n' << roff(command.get_description()) << '\n';
    for (const CLI::Option* option : command.get_options()) print_option(*option);
    if (!command.get_footer().empty()) {
        std::cout << ".PP\n";
        print_lines(command.get_footer());
    }
}

void print_manual(CLI::App& app) {
    std::cout << ".TH GNND 1 \"\" \"gnnd " GNND_VERSION_STRING "\" \"User Commands\"\n.SH NAME\ngnnd \\- "
              << roff(app.get_description())
              << "\n.SH SYNOPSIS\n.B gnnd\n.I COMMAND\n[\\fIARGUMENTS\\fR]\n.SH COMMANDS\n";
    for (const CLI::App* command : commands_of(app)) print_command(*command);
    std::cout << ".SH NOTES\n";
    print_lines(app.get_footer());
}

std::vector<std::string> names_of(const CLI::Option& option) {
    std::vector<std::string> names;
    for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option.get_snames()) names.push_back("-" + name);
    return names;
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += word + " ";
    return text;
}

std::string words_of(const CLI::App& command) {
    std::string words;
    for (const CLI::Option* option : command.get_options()) words += joined(names_of(*option));
    return words;
}

/// A branch of the script for every option that takes named values, and for the command where its argument does.
std::string value_cases(CLI::App& command) {
    std::string cases;
    for (CLI::Option* option : command.get_options()) {
        const std::string values = joined(offered(*option));
        if (values.empty()) continue;
        const auto add = [&](const std::string& before) {
            cases += "            '" + command.get_name() + " " + before + "') words='" + values + "' ;;\n";
        };
        if (option->get_positional()) add(command.get_name());
        for (const std::string& name : names_of(*option)) add(name);
    }
    return cases;
}

/// Prints the completion for bash. If no word fits it completes names of files.
void print_completion(CLI::App& app) {
    std::string commands, cases, values;
    for (CLI::App* command : commands_of(app)) {
        commands += command->get_name() + " ";
        cases += "            " + command->get_name() + ") words='" + words_of(*command) + "' ;;\n";
        values += value_cases(*command);
    }
    std::cout << "# bash completion of gnnd " GNND_VERSION_STRING
                 "\n"
                 "_gnnd() {\n"
                 "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=\n"
                 // bash takes the = of --metric=l2 for a word
                 "    if [[ $current == = ]]; then\n"
                 "        current=\n"
                 "    elif [[ $before == = ]]; then\n"
                 "        before=${COMP_WORDS[COMP_CWORD-2]}\n"
                 "    fi\n"
                 "    if ((COMP_CWORD == 1)); then\n"
                 "        words='"
              << commands << words_of(app)
              << "'\n"
                 "    elif [[ $current == -* ]]; then\n"
                 "        case ${COMP_WORDS[1]} in\n"
              << cases
              << "        esac\n"
                 "    else\n"
                 "        case \"${COMP_WORDS[1]} $before\" in\n"
              << values
              << "        esac\n"
                 "    fi\n"
                 "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
                 "}\n"
                 "complete -o default -F _gnnd gnnd\n";
}

/// `gnnd help COMMAND`, as people try it. All other commands are there already.
void add_help(CLI::App& app) {
    CLI::App& help = *app.add_subcommand("help", "Print what COMMAND --help does");
    help.footer("Example: gnnd help build");
    std::vector<std::string> names;
    for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
    const auto name = std::make_shared<std::string>();
    add_one_of(help, "COMMAND", *name, "command", names, "without: the list of all commands");
    help.callback([&app, name] {
        const CLI::App& told = name->empty() ? app : *app.get_subcommand(*name);
        std::cout << app.get_formatter()->make_help(&told, name->empty() ? "gnnd" : "gnnd " + *name,
                                                    CLI::AppFormatMode::Normal);
    });
}

}  // namespace

void add_manual(CLI::App& app) {
    CLI::App& manual = *app.add_subcommand("man", "Print this help as a man page");
    manual.footer("Example: gnnd man > gnnd.1; man ./gnnd.1");
    manual.callback([&app] { print_manual(app); });
    CLI::App& completion = *app.add_subcommand("completion", "Print what makes a shell complete commands and options");
    const auto shell = std::make_shared<std::string>();
    add_one_of(completion, "SHELL", *shell, "shell", {"bash"}, "bash")->required();
    completion.footer("Example: source <(gnnd completion bash)");
    completion.callback([&app, shell] { print_completion(app); });
    add_help(app);
}

}  // namespace cli

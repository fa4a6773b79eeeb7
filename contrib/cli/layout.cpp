// SPDX-License-Identifier: MIT
#include "layout.h"

#include <sstream>

namespace cli {

namespace {

/// Lines that are too long go on below, behind so many spaces.
std::string folded(const std::string& text, std::size_t indent, std::size_t columns) {
    std::string result;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        while (line.size() > columns) {
            std::size_t end = line.rfind(' ', columns);
            if (end == std::string::npos || end <= indent) end = line.find(' ', columns);
            if (end == std::string::npos) break;  // one word
            result += line.substr(0, end) + '\n';
            line = std::string(indent, ' ') + line.substr(end + 1);
        }
        result += line + '\n';
    }
    return result;
}

class NarrowHelp : public CLI::Formatter {
  public:
    std::string make_description(const CLI::App* app) const override {
        return filled(CLI::Formatter::make_description(app));
    }
    std::string make_footer(const CLI::App* app) const override { return filled(CLI::Formatter::make_footer(app)); }
    std::string make_option(const CLI::Option* option, bool is_positional) const override {
        return folded(CLI::Formatter::make_option(option, is_positional), column_width_, kColumns);
    }
    std::string make_subcommand(const CLI::App* command) const override {
        return folded(CLI::Formatter::make_subcommand(command), column_width_, kColumns);
    }
};

}  // namespace

std::string filled(const std::string& prose, std::size_t columns) {
    std::string joined;
    bool example = false;
    std::istringstream lines(prose);
    for (std::string line; std::getline(lines, line);) {
        const bool before = example;
        example = line.starts_with(' ') || line.starts_with("Example:");
        if (!joined.empty()) joined += before || example ? '\n' : ' ';
        joined += line;
    }
    return joined.empty() ? "" : folded(joined, 0, columns);
}

std::shared_ptr<CLI::FormatterBase> narrow_help() {
    auto formatter = std::make_shared<NarrowHelp>();
    formatter->column_width(32);
    return formatter;
}

}  // namespace cli

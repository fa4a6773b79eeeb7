// SPDX-License-Identifier: MIT
#include "tool.h"

#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "contrib/cli/tool.h"
#include "gil.h"

namespace gnnd::python {

namespace nb = nanobind;

namespace {

/// Words as C's main() gets them, with a null at the end.
class Arguments {
  public:
    explicit Arguments(const std::vector<nb::bytes>& given) {
        for (const nb::bytes& word : given) words_.emplace_back(word.c_str(), word.size());
        for (std::string& word : words_) pointers_.push_back(word.data());
        pointers_.push_back(nullptr);
    }
    int count() const { return int(words_.size()); }
    char** get() { return pointers_.data(); }

  private:
    std::vector<std::string> words_;
    std::vector<char*> pointers_;
};

/// Takes the process over, its signals among others: for a program of its own only.
/// \param arguments     the tool's name and what follows it
/// \param command_line  that the process was started with
int run_tool(const std::vector<nb::bytes>& arguments, const std::vector<nb::bytes>& command_line) {
    Arguments argv(arguments), started_with(command_line);
    const GilReleased release;
    return cli::run_tool(argv.count(), argv.get(), started_with.get());
}

}  // namespace

void bind_tool(nb::module_& module) {
    module.def("run_tool", &run_tool, nb::arg("arguments"), nb::arg("command_line"));
}

}  // namespace gnnd::python

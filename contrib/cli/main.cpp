// SPDX-License-Identifier: MIT
#include "tool.h"

int main(int argc, char** argv) {
    return cli::run_tool(argc, argv, argv);
}

// SPDX-License-Identifier: MIT
#pragma once
/// gnnd, the command-line tool: of main(), and of `python -m gnnd`.

namespace cli {

/// Carries the command out. It takes the process over: signals, standard streams that are closed, the number of
/// threads.
/// \param argv          argc arguments and a null; the first is the tool's name
/// \param command_line  the process's own, null at its end: with it the program is started again where the system
///                      allows fewer threads than OpenMP would start
/// \return the exit code: 0 done, 1 something in a file or in the data was wrong, 2 wrong usage. Does not return when a
///         signal has ended the command: the process dies of it
int run_tool(int argc, char** argv, char** command_line);

}  // namespace cli

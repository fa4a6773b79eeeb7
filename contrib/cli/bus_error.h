// SPDX-License-Identifier: MIT
#pragma once
/// A base that another process shortens while it is mapped into memory raises SIGBUS.

namespace cli {

/// From here on that ends the process with a line that names the file, and without temporary files.
void report_bus_errors();

}  // namespace cli

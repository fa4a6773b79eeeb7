// SPDX-License-Identifier: MIT
#pragma once
/// Shows a build's iterations on standard error: one bar, redrawn, on a terminal, never wider than it; otherwise a line
/// each.

#include <cstdint>
#include <string>

#include "gnnd/params.h"
#include "gnnd/stats.h"

namespace cli {

/// The last line of a terminal, redrawn and never wider than it; elsewhere each text is a line of its own.
class StatusLine {
  public:
    explicit StatusLine(bool quiet);
    ~StatusLine();  ///< takes it away
    StatusLine(const StatusLine&) = delete;
    StatusLine& operator=(const StatusLine&) = delete;

    bool on_terminal() const { return terminal_; }
    void show(const std::string& text) const;

  private:
    bool quiet_, terminal_;
};

class Progress {
  public:
    /// \param n  lists that the graph will have
    Progress(const gnnd::BuildParams& params, std::int64_t n, bool quiet);

    void show(const gnnd::IterationStats& iteration);

  private:
    double fraction(const gnnd::IterationStats& iteration) const;
    double changed_share(const gnnd::IterationStats& iteration) const;

    gnnd::BuildParams params_;
    StatusLine line_;
    double done_ = 0, seconds_ = 0;
};

}  // namespace cli

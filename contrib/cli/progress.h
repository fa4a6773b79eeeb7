// SPDX-License-Identifier: MIT
#pragma once
/// Shows a build's iterations on standard error: one bar, redrawn, on a terminal, never wider than it; otherwise a line
/// each.

#include <cstdint>
#include <string>

#include "gnnd/params.h"
#include "gnnd/stats.h"

namespace cli {

class Progress {
  public:
    /// \param n  lists that the graph will have
    Progress(const gnnd::BuildParams& params, std::int64_t n, bool quiet);
    ~Progress();  ///< takes the bar away
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void show(const gnnd::IterationStats& iteration);

  private:
    double fraction(const gnnd::IterationStats& iteration) const;
    double changed_share(const gnnd::IterationStats& iteration) const;
    void redraw(const std::string& line) const;

    gnnd::BuildParams params_;
    bool quiet_, terminal_;
    double done_ = 0, seconds_ = 0;
};

}  // namespace cli

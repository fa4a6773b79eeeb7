#pragma once
/// Shows a build's iterations on standard error: one bar, redrawn, on a terminal; otherwise a line each.

#include <cstdint>

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

    gnnd::BuildParams params_;
    bool quiet_, terminal_;
    double done_ = 0, seconds_ = 0;
};

}  // namespace cli

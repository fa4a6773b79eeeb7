// SPDX-License-Identifier: MIT
#include "progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>

namespace cli {

namespace {
constexpr int kBarWidth = 20;
constexpr const char* kClearLine = "\r\x1b[K";

/// Columns of the terminal that standard error is, as wide as it is now.
std::size_t columns() {
    winsize size{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

StatusLine::StatusLine(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0) {}

StatusLine::~StatusLine() {
    if (terminal_ && !quiet_) std::fputs(kClearLine, stderr);
}

/// A line that wraps could not be taken away again: the last column stays free too, where some terminals wrap already.
void StatusLine::show(const std::string& text) const {
    if (quiet_) return;
    if (terminal_)
        std::fprintf(stderr, "%s%.*s", kClearLine, int(columns()) - 1, text.c_str());
    else
        std::fprintf(stderr, "%s\n", text.c_str());
}

Progress::Progress(const gnnd::BuildParams& params, std::int64_t n, bool quiet) : params_(params), line_(quiet) {
    if (line_.on_terminal()) line_.show("initialising " + std::to_string(n) + " lists ...");
}

double Progress::changed_share(const gnnd::IterationStats& iteration) const {
    return double(iteration.changed) / (double(iteration.objects) * params_.k);
}

/// A build ends when few entries change or after so many iterations: how far it is towards the nearer of both. The
/// share of changed entries falls about exponentially, hence the logarithm.
double Progress::fraction(const gnnd::IterationStats& iteration) const {
    if (iteration.iteration == 0) return 0;
    const double by_count = double(iteration.iteration) / std::max(params_.iterations, 1);
    const double share = changed_share(iteration);
    if (share <= params_.delta) return 1;
    const double by_change = params_.delta > 0 && params_.delta < 1 ? std::log(share) / std::log(params_.delta) : 0;
    return std::clamp(std::max(by_count, by_change), 0.0, 1.0);
}

void Progress::show(const gnnd::IterationStats& iteration) {
    seconds_ += iteration.seconds;
    std::array<char, 128> text{};
    const double percent = 100 * changed_share(iteration);
    if (!line_.on_terminal()) {
        std::snprintf(text.data(), text.size(), "iteration %d: changed %.4f%%, phi(G) %.6g, %.2f s",
                      iteration.iteration, percent, iteration.phi, seconds_);
        return line_.show(text.data());
    }
    if (iteration.iteration == 0) done_ = 0;  // the second graph of `append`
    done_ = std::max(done_, fraction(iteration));
    const auto filled = std::size_t(std::lround(done_ * kBarWidth));
    const std::string bar = std::string(filled, '#') + std::string(kBarWidth - filled, '.');
    std::snprintf(text.data(), text.size(), "iteration %d, changed %.3f%%, phi(G) %.6g, %.1f s", iteration.iteration,
                  percent, iteration.phi, seconds_);
    const std::string line = text.data(), with_bar = "[" + bar + "] " + line;
    line_.show(with_bar.size() < columns() ? with_bar : line);
}

}  // namespace cli

#include "progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

namespace cli {

namespace {
constexpr int kBarWidth = 30;
constexpr const char* kClearLine = "\r\x1b[K";
}  // namespace

Progress::Progress(const gnnd::BuildParams& params, std::int64_t n, bool quiet)
    : params_(params), quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0) {
    if (terminal_ && !quiet_) std::fprintf(stderr, "initialising %lld lists ...", static_cast<long long>(n));
}

Progress::~Progress() {
    if (terminal_ && !quiet_) std::fputs(kClearLine, stderr);
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
    if (quiet_) return;
    seconds_ += iteration.seconds;
    if (!terminal_) {
        std::fprintf(stderr, "iteration %d: changed %.4f%%, phi(G) %.6g, %.2f s\n", iteration.iteration,
                     100 * changed_share(iteration), iteration.phi, seconds_);
        return;
    }
    if (iteration.iteration == 0) done_ = 0;  // the second graph of `append`
    done_ = std::max(done_, fraction(iteration));
    const auto filled = std::size_t(std::lround(done_ * kBarWidth));
    const std::string bar = std::string(filled, '#') + std::string(kBarWidth - filled, '.');
    std::fprintf(stderr, "%s[%s] iteration %d, changed %.3f%%, phi(G) %.6g, %.1f s", kClearLine, bar.c_str(),
                 iteration.iteration, 100 * changed_share(iteration), iteration.phi, seconds_);
}

}  // namespace cli

// SPDX-License-Identifier: MIT
#include "gnnd/cpu/outlook.h"

#include <algorithm>
#include <cmath>

#include "gnnd/params.h"

namespace gnnd::cpu {
namespace {

// Measured on the sets of benchs/hard.h, descriptors and manifolds (benchs/NOTEBOOK.md).
/// What is missing falls by a factor in each iteration, whose logarithm grows so many times from the trees to the first
/// one and from this to the second, hardly to the third, and halves from then on, whatever the data.
constexpr double kEarly = 2.2, kThird = 1.1, kLate = 0.5;
/// From the fourth on few entries are NEW, and iterations take half as long.
constexpr int kLastWhole = 3;
constexpr double kLateCost = 0.5;
/// The recall is shown by a sample once this share of what may be missing is.
constexpr double kShown = 0.4;
/// With less of it lists settle.
constexpr double kLeastFall = 0.1;
/// Lists of twice the length, twice as many samples, find all but one in so many of what was missing, with so many
/// distances an object for each square of the samples.
constexpr double kFound = 16, kDistances = 4;
/// Samples of the first longer lists.
constexpr int kLonger = 44;
/// The most that is expected before an iteration has shown how much it finds.
constexpr double kMostUnseen = 5;

}  // namespace

double rounds_left(int done, double before, double missing, double allowed) {
    const double shown = kShown * allowed;
    if (missing <= shown) return kRoundsUnseen;  // what lacks is not among the first columns, or not shown yet
    double rounds = 0, fall = std::log(std::max(before, missing) / missing);
    for (int next = done + 1; missing > shown; ++next) {
        fall *= next < kLastWhole ? kEarly : next == kLastWhole ? kThird : kLate;
        if (fall < kLeastFall) {
            rounds += rounds_of_longer(kLonger, missing, allowed);
            break;
        }
        missing *= std::exp(-fall);
        rounds += next <= kLastWhole ? 1 : kLateCost;
    }
    return done == 0 ? std::min(rounds, kMostUnseen) : rounds;
}

double rounds_of_longer(int samples, double missing, double allowed) {
    double distances = 0;
    for (double p = samples; missing > allowed && p <= kMaxK; p *= 2, missing /= kFound)
        distances += kDistances * p * p;
    return distances / kOfRound;
}

}  // namespace gnnd::cpu

// SPDX-License-Identifier: MIT
// How long lists are going to take, from what they have found so far.
#include "gnnd/cpu/outlook.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace gnnd::cpu {
namespace {

/// Recalls of Recall@10 after the trees and each iteration, until 0.99 was shown or the lists had settled
/// (NOTEBOOK.md).
struct Seen {
    std::string set;
    std::vector<double> recalls;
    bool settles;
};
const std::vector<Seen> kSeen = {{"descriptors", {0.4957, 0.8660, 0.9906, 0.9977}, false},
                                 {"Gaussian 16", {0.3688, 0.7793, 0.9797, 0.9986}, false},
                                 {"12 dimensions in 96", {0.4797, 0.8996, 0.9988}, false},
                                 {"20 dimensions in 384", {0.2789, 0.6570, 0.9457, 0.9941}, false},
                                 {"Gaussian 8", {0.7246, 0.9855, 1}, false},
                                 {"clusters", {0.8340, 0.9946}, false},
                                 {"walk", {0.9688, 0.9998}, false},
                                 {"Gaussian 32", {0.1574, 0.4375, 0.8051, 0.9418, 0.9730, 0.9777}, true},
                                 {"Gaussian 64", {0.0914, 0.2730, 0.6055, 0.7652, 0.8359}, true},
                                 {"Gaussian 128", {0.0453, 0.1898, 0.5008, 0.6359, 0.6902}, true},
                                 {"sparse", {0.0477, 0.2750, 0.7598, 0.9344, 0.9676, 0.9766}, true},
                                 {"copies", {0.5488, 0.5961, 0.6805, 0.7270, 0.7562, 0.7824}, true}};

double after(const Seen& seen, int done) {
    const double before = done == 0 ? 1 : 1 - seen.recalls[std::size_t(done) - 1];
    return rounds_left(done, before, 1 - seen.recalls[std::size_t(done)], 0.01);
}

TEST(Outlook, TellsAfterOneIterationWhichSettle) {
    for (const Seen& seen : kSeen) {
        SCOPED_TRACE(seen.set);
        const double left = after(seen, 1);
        if (seen.settles)
            EXPECT_GT(left, 8);
        else
            EXPECT_LE(left, 4);
    }
}

TEST(Outlook, OfTreesExpectsMoreWhereTheyFindLess) {
    for (const Seen& seen : kSeen) {
        SCOPED_TRACE(seen.set);
        const double left = after(seen, 0);
        EXPECT_LE(left, 5);
        if (!seen.settles) {
            EXPECT_NEAR(left, double(seen.recalls.size()) - 1, 2);
        } else if (seen.set != "copies") {  // whose first entries trees do find
            EXPECT_GE(left, 4.5);
        }
    }
}

TEST(Outlook, IsFiniteWhateverIsFound) {
    for (const int done : {0, 1, 2, 3, 10, 30})
        for (const double before : {1.0, 0.5, 1e-3, 0.0})
            for (const double missing : {1.0, 0.5, 1e-3, 1e-9, 0.0})
                for (const double allowed : {1.0, 0.1, 1e-3, 1e-7, 0.0}) {
                    const double left = rounds_left(done, before, missing, allowed);
                    EXPECT_TRUE(std::isfinite(left) && left >= 0) << done << ' ' << before << ' ' << missing;
                }
    EXPECT_GE(rounds_left(3, 0.2, 0.2, 0.01), 8) << "nothing is found any more";
    EXPECT_GE(rounds_left(3, 0.1, 0.2, 0.01), 8) << "and less than before";
}

}  // namespace
}  // namespace gnnd::cpu

// SPDX-License-Identifier: MIT
#pragma once
/// \file outlook.h
/// How long lists that start from trees are going to take, from what they have found so far.

namespace gnnd::cpu {

/// Distances of an object in an iteration with the samples that are chosen at first, the unit of what follows.
inline constexpr double kOfRound = 2.0 * 22 * 22;

/// Iterations that lists take of which nothing is known.
inline constexpr double kRoundsUnseen = 2;

/// Iterations until no more is missing than is allowed, the later ones counted as the part of an earlier one that they
/// take. Lists that are to settle before take those until then and what it costs to find the rest with longer ones.
/// \param done     iterations that ran; 0: the trees alone
/// \param before   share of the true neighbours that was missing before the last of them (before the trees: 1)
/// \param missing  that is missing now
/// \param allowed  that may be missing
double rounds_left(int done, double before, double missing, double allowed);

/// What it takes to find with longer lists all but what may be missing.
/// \param samples  of these lists, to begin with; they are doubled where that does not suffice
double rounds_of_longer(int samples, double missing, double allowed);

}  // namespace gnnd::cpu

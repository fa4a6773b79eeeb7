// SPDX-License-Identifier: MIT
#pragma once
/// \file restore.h
/// From the lists of shards in an order of their own to rows and ids of the base.

#include <functional>

#include "gnnd/shards/folder.h"

namespace gnnd::shards {

/// Writes the results that are not there yet, each durable before the next one is begun. Every shard's lists have their
/// rows in the order of the base, so that what a result needs of them is read in one piece.
/// \param threads    0: all
/// \param interrupt  asked often; true ends the call
/// \throws Interrupted, IoError
void restore(Folder& folder, int threads, const std::function<bool()>& interrupt);

}  // namespace gnnd::shards

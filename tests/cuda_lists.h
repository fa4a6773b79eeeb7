// SPDX-License-Identifier: MIT
#pragma once
/// \file cuda_lists.h
/// Lists on the host, to try the kernels on one by one. Components and distances are small integers, so that every
/// engine is exact and results can be compared to the bit.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <vector>

#include "gnnd/cuda/algorithm.h"
#include "gnnd/cuda/device/launch.cuh"
#include "tests/gpu.h"

namespace gnnd::cuda {

using test::OnDevice;

struct Entry {
    float distance;
    u32 id;
    bool operator<(const Entry& other) const { return nearer(distance, id, other.distance, other.id); }
    bool operator==(const Entry&) const = default;
};

/// n lists, some of them short, NEW and OLD mixed, and what goes with them.
struct HostLists {
    int n, length;
    std::vector<u32> ids;
    std::vector<float> distances, bounds;

    HostLists(int n_, int length_) : n(n_), length(length_), ids(n * length, kNoId), distances(n * length, INFINITY) {
        bounds.assign(n, INFINITY);
    }
    void set(int object, std::vector<Entry> entries, std::mt19937* flags) {
        std::fill_n(&ids[object * length], length, kNoId);
        std::fill_n(&distances[object * length], length, INFINITY);
        std::sort(entries.begin(), entries.end());
        entries.resize(std::min<std::size_t>(entries.size(), length));
        for (std::size_t j = 0; j < entries.size(); ++j) {
            ids[object * length + j] = entries[j].id | (flags != nullptr && (*flags)() % 2 ? kNewBit : 0);
            distances[object * length + j] = entries[j].distance;
        }
        bounds[object] = distances[object * length + length - 1];
    }
    std::vector<Entry> get(int object) const {
        std::vector<Entry> entries;
        for (int j = 0; j < length; ++j)
            if (ids[object * length + j] != kNoId)
                entries.push_back({distances[object * length + j], ids[object * length + j] & ~kNewBit});
        return entries;
    }
};

inline std::vector<u32> some_ids(int n, int count, int self, std::mt19937& random) {
    std::set<u32> ids;
    while (int(ids.size()) < std::min(count, n - 1))
        if (const u32 id = random() % n; int(id) != self) ids.insert(id);
    std::vector<u32> shuffled(ids.begin(), ids.end());
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    return shuffled;
}

inline HostLists random_lists(int n, int length, std::mt19937& random) {
    HostLists lists(n, length);
    for (int i = 0; i < n; ++i) {
        std::vector<Entry> entries;
        for (const u32 id : some_ids(n, random() % 4 == 0 ? random() % (length + 1) : length, i, random))
            entries.push_back({float(random() % 1000), id});
        lists.set(i, entries, &random);
    }
    return lists;
}

class CudaKernelTest : public testing::Test {
  protected:
    void SetUp() override { SKIP_WITHOUT_GPU(); }
    std::mt19937 random{7};
};

}  // namespace gnnd::cuda

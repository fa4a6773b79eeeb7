// SPDX-License-Identifier: MIT
// Sampling and merging of lists against naive references. Without a GPU all of it is skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "gnnd/cuda/algorithm.h"
#include "gnnd/cuda/runtime/errors.h"
#include "tests/cuda_lists.h"

namespace gnnd::cuda {
namespace {

__global__ void empty_kernel(int) {}

TEST_F(CudaKernelTest, TooMuchSharedMemoryIsAnErrorThatSaysHowMuch) {
    try {
        launch("empty", empty_kernel, 1, kWarp, 1 << 20, nullptr, 0);
        FAIL();
    } catch (const InvalidArgument& error) {
        EXPECT_NE(std::string(error.what()).find("1048576"), std::string::npos) << error.what();
    }
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    launch("empty", empty_kernel, 1, kWarp, 1 << 10, nullptr, 0);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(CudaKernelTest, NodesAreSortedByPivotsAndStayInOrderOtherwise) {
    std::mt19937 random(4);
    for (const std::int64_t node : {256, 512, 513, 1024, 2048, 2049, 4096})
        for (const std::int64_t n : {std::int64_t(1), node - 1, node, 3 * node + 1, 5 * node - 1}) {
            const int pivots = int((node + 127) / 128);
            SCOPED_TRACE(testing::Message() << n << " in nodes of " << node);
            ASSERT_TRUE(can_sort_nodes(node, pivots));
            std::vector<u32> keys, objects(std::size_t(n), 0u), wanted(std::size_t(n), 0u);
            for (std::int64_t i = 0; i < n; ++i)
                keys.push_back(u32(i / node * pivots) + u32(random() % unsigned(pivots)));
            std::iota(objects.begin(), objects.end(), 0u);
            std::shuffle(objects.begin(), objects.end(), random);
            std::vector<u32> places(objects.size());
            std::iota(places.begin(), places.end(), 0u);
            std::stable_sort(places.begin(), places.end(), [&](u32 a, u32 b) { return keys[a] < keys[b]; });
            for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = objects[places[i]];
            const OnDevice<u32> by(std::size_t(n), keys.data()), order(std::size_t(n), objects.data());
            sort_nodes(by, order, n, node, pivots, nullptr);
            EXPECT_EQ(order.read(), wanted);
        }
    EXPECT_FALSE(can_sort_nodes(4097, 33));
    EXPECT_FALSE(can_sort_nodes(4096, 33));
}

__global__ void touch_kernel(int at) {
    extern __shared__ char bytes[];
    bytes[at] = 1;
}

/// The limit of shared memory is the kernel's, not the call's: another thread may be between raising it and its start.
TEST_F(CudaKernelTest, ASmallerLaunchTakesNoSharedMemoryFromALargerOne) {
    constexpr int kLarge = 60 << 10;
    launch("touch", touch_kernel, 1, kWarp, kLarge, nullptr, kLarge - 1);
    launch("touch", touch_kernel, 1, kWarp, 1 << 10, nullptr, 1023);
    touch_kernel<<<1, kWarp, kLarge>>>(kLarge - 1);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

class CudaSampleTest : public CudaKernelTest, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(CudaKernel, CudaSampleTest, testing::Values(1, 8, 33, 64));

/// Step 2: the first p NEW and OLD entries, and the objects that took each object.
TEST_P(CudaSampleTest, TakesTheFirstOfEachKind) {
    const int n = 700, length = 70, p = GetParam();
    const u32 salt = 0xfb4d2e3b;
    for (const detail::Pairs pairs : {detail::Pairs{}, detail::Pairs{300}})
        for (const auto& [deterministic, visited] : {std::pair{false, true}, std::pair{true, false}}) {
            HostLists before = random_lists(n, length, random);
            for (int i = 0; i < n / 2; ++i)  // object 3 is in many lists: more than 128 objects take it
                if (i != 3) before.set(i, {{0, 3}, {1, 5 == u32(i) ? 6u : 5u}}, &random);
            std::vector<u32> order(n);
            std::iota(order.begin(), order.end(), 0);
            std::shuffle(order.begin(), order.end(), random);
            const OnDevice<u32> ids(before.ids), visit(order), own(std::vector<u32>(n, ~0u)),
                reverse(std::vector<u32>(2 * n, ~0u)), samples(std::vector<u32>(n * 4 * p, ~0u)),
                edges(std::vector<u32>(n * 2 * p, 0)), words(std::vector<u32>(n * kFilterWords, 0));
            const OnDevice<u64> ends(std::vector<u64>(2 * n + 1, 7));
            const OnDevice<float> distances(before.distances), bounds(before.bounds);
            const OnDevice<StopFlag> stop(std::vector<StopFlag>(1, StopFlag{}));
            sample(
                {ids, distances, bounds, length, 1},
                {samples, own, reverse, deterministic ? ends.get() : nullptr, deterministic ? edges.get() : nullptr, p},
                {words, salt}, salt, pairs, visited ? visit.get() : nullptr, n, stop, nullptr);
            const auto after = ids.read(), got = samples.read(), got_own = own.read(), got_reverse = reverse.read();

            std::vector<std::vector<u32>> took[2] = {std::vector<std::vector<u32>>(n),
                                                     std::vector<std::vector<u32>>(n)};
            for (int i = 0; i < n; ++i) {
                std::vector<u32> first[2];
                for (int j = 0; j < length; ++j) {
                    const u32 entry = before.ids[i * length + j];
                    u32 expected = entry;
                    const int old = entry < kNewBit;
                    const bool useful = !old || pairs.all() || !pairs.count(u32(i), entry);
                    if (entry != kNoId && useful && int(first[old].size()) < p) {
                        first[old].push_back(entry & ~kNewBit);
                        took[old][entry & ~kNewBit].push_back(i);
                        expected = entry & ~kNewBit;
                    }
                    ASSERT_EQ(after[i * length + j], expected) << i << ' ' << j;
                }
                ASSERT_EQ(got_own[i], first[0].size() | first[1].size() << 16);
                for (int old = 0; old < 2; ++old)
                    ASSERT_TRUE(std::equal(first[old].begin(), first[old].end(), &got[(i * 2 + old) * 2 * p])) << i;
            }
            for (int i = 0; i < n; ++i)
                for (int old = 0; old < 2; ++old) {
                    std::vector<u32>& all = took[old][i];
                    ASSERT_EQ(got_reverse[2 * i + old], all.size());
                    const u32* kept = &got[(i * 2 + old) * 2 * p + p];
                    const std::size_t count = std::min<std::size_t>(p, all.size());
                    if (deterministic) {
                        std::sort(all.begin(), all.end(), [&](u32 a, u32 b) {
                            const u32 own_salt = mix(u32(i) ^ salt);
                            return mix(a ^ own_salt) < mix(b ^ own_salt);
                        });
                        ASSERT_TRUE(std::equal(kept, kept + count, all.begin())) << i;
                    } else {
                        const std::set<u32> distinct(kept, kept + count), sources(all.begin(), all.end());
                        ASSERT_EQ(distinct.size(), count);
                        ASSERT_TRUE(std::includes(sources.begin(), sources.end(), distinct.begin(), distinct.end()));
                    }
                }
            // No mark of the filter stands for an id that the list does not hold.
            const auto marks = words.read();
            for (int i = 0; i < n; ++i) {
                std::multiset<std::pair<u32, u32>> known;
                for (const Entry& entry : before.get(i)) {
                    const u32 hash = Filter{nullptr, salt}.hash_of(entry.id);
                    known.insert({Filter::word_of(hash), Filter::mark_of(hash)});
                }
                std::size_t found = 0;
                for (u32 word = 0; word < kFilterWords; ++word)
                    for (int byte = 0; byte < 4; ++byte)
                        if (const u32 mark = marks[i * kFilterWords + word] >> 8 * byte & 0xff; mark != 0) {
                            ASSERT_TRUE(known.count({word, mark}) > 0 && byte < 3);
                            ++found;
                        }
                std::size_t expected = 0;
                for (u32 word = 0; word < kFilterWords; ++word)
                    expected += std::min<std::size_t>(
                        3, std::count_if(known.begin(), known.end(), [&](auto& k) { return k.first == word; }));
                ASSERT_EQ(found, expected);
            }
        }
}

/// What offered, accepted and lost candidates add up to.
Counters sum_of(const OnDevice<Counters>& counters) {
    Counters sum{};
    for (const Counters& part : counters.read()) {
        sum.offered += part.offered;
        sum.accepted += part.accepted;
        sum.lost += part.lost;
    }
    return sum;
}

/// The state that apply_candidates() leaves.
struct Applied {
    HostLists lists;
    std::vector<u32> waiting;  ///< candidates of each object
    Counters sum;              ///< offered, accepted and lost ones
};

Applied apply(const HostLists& lists, const std::vector<u64>& entries, const std::vector<u32>& counts, int capacity) {
    const OnDevice<u32> ids(lists.ids), waiting(counts);
    const OnDevice<float> distances(lists.distances), bounds(lists.bounds);
    const OnDevice<u64> queue(entries);
    const OnDevice<StopFlag> stop(std::vector<StopFlag>(1, StopFlag{}));
    const OnDevice<Counters> counters(std::vector<Counters>(kSpread, Counters{}));
    apply_candidates({ids, distances, bounds, lists.length, 1}, {queue, waiting, capacity}, lists.n, stop, counters,
                     nullptr);
    Applied applied{lists, waiting.read(), sum_of(counters)};
    applied.lists.ids = ids.read();
    applied.lists.distances = distances.read();
    applied.lists.bounds = bounds.read();
    return applied;
}

class CudaMergeTest : public CudaKernelTest, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(CudaKernel, CudaMergeTest, testing::Values(1, 31, 32, 33, 64, 100, 200, 300, 600, 1024));

/// Step 4's second half: the nearest of list and candidates, each once, in order; what came in is NEW.
TEST_P(CudaMergeTest, KeepsTheNearestOfBoth) {
    const int n = 300, length = GetParam(), capacity = 45;
    HostLists lists = random_lists(n, length, random);
    std::vector<u64> entries(n * capacity, ~u64(0));
    std::vector<u32> counts(n);
    std::vector<std::vector<Entry>> expected(n);
    std::vector<std::set<u32>> fresh(n);
    u64 offered = 0, accepted = 0, lost = 0;
    for (int i = 0; i < n; ++i) {
        counts[i] = i % 5 == 0 ? 0 : random() % (capacity + 10);
        offered += counts[i];
        lost += std::max(0, int(counts[i]) - capacity);
        std::map<u32, float> distance_of_id;
        for (const Entry& entry : lists.get(i)) distance_of_id[entry.id] = entry.distance;
        const auto in_list = distance_of_id;
        for (int j = 0; j < std::min(int(counts[i]), capacity); ++j) {
            u32 id = random() % n;
            if (id == u32(i)) id = (id + 1) % n;
            const float distance = distance_of_id.emplace(id, float(random() % 1000)).first->second;
            entries[i * capacity + j] = u64(__builtin_bit_cast(u32, distance)) << 32 | id;
        }
        for (const auto& [id, distance] : distance_of_id) expected[i].push_back({distance, id});
        std::sort(expected[i].begin(), expected[i].end());
        if (int(expected[i].size()) > length) expected[i].resize(length);
        for (const Entry& entry : expected[i])
            if (!in_list.count(entry.id)) fresh[i].insert(entry.id);
        accepted += fresh[i].size();
    }
    const auto [after, waiting, sum] = apply(lists, entries, counts, capacity);
    for (int i = 0; i < n; ++i) {
        ASSERT_EQ(after.get(i), expected[i]) << i;
        ASSERT_EQ(after.bounds[i], after.distances[i * length + length - 1]);
        for (int j = 0; j < length; ++j)
            if (const u32 id = after.ids[i * length + j] & ~kNewBit; fresh[i].count(id))
                ASSERT_GE(after.ids[i * length + j], kNewBit);
    }
    EXPECT_EQ(waiting, std::vector<u32>(n, 0));
    EXPECT_EQ(sum.offered, offered);
    EXPECT_EQ(sum.lost, lost);
    EXPECT_GE(sum.accepted, accepted);  // later ones may have pushed out earlier ones
    EXPECT_LE(sum.accepted, 2 * accepted);
}

/// Sums of floats in another order give a pair another distance: whatever comes, an id stays once.
TEST_P(CudaMergeTest, AnIdStaysOnceWhateverItsDistances) {
    const int n = 300, length = GetParam(), capacity = 45;
    const HostLists lists = random_lists(n, length, random);
    std::vector<u64> entries(n * capacity, ~u64(0));
    const std::vector<u32> counts(n, capacity);
    std::vector<std::map<u32, std::set<float>>> offered(n);
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < capacity; ++j) {
            const std::vector<Entry> list = lists.get(i);
            const Entry known = list.empty() ? Entry{0, u32(i + 1) % n} : list[random() % list.size()];
            const u32 id = j % 3 == 0 ? known.id : u32(i + 1 + random() % 20) % n;
            const float distance = j % 3 == 0 ? known.distance + float(random() % 3) : float(random() % 1000);
            offered[i][id].insert(distance);
            entries[i * capacity + j] = u64(__builtin_bit_cast(u32, distance)) << 32 | id;
        }
    const HostLists after = apply(lists, entries, counts, capacity).lists;
    for (int i = 0; i < n; ++i) {
        std::map<u32, Entry> before;
        for (const Entry& entry : lists.get(i)) before[entry.id] = entry;
        const std::vector<Entry> got = after.get(i);
        ASSERT_TRUE(std::is_sorted(got.begin(), got.end())) << i;
        std::set<u32> once;
        for (const Entry& entry : got) {
            ASSERT_TRUE(once.insert(entry.id).second) << i << ": " << entry.id;
            const auto it = before.find(entry.id);
            ASSERT_TRUE((it != before.end() && entry == it->second) || offered[i][entry.id].count(entry.distance)) << i;
        }
        const float last = int(got.size()) == length ? got.back().distance : INFINITY;
        for (const auto& [id, all] : offered[i])
            if (*all.rbegin() < last && !before.count(id)) ASSERT_EQ(once.count(id), 1u) << i << ": " << id;
    }
}

/// Step 1 after some trees: whatever was in the lists, they hold the nearest candidates, each id once at its least
/// distance, in order and NEW, and nothing behind.
TEST_P(CudaMergeTest, FillsListsThatWereEmpty) {
    const int n = 300, length = GetParam();
    for (const int capacity : {8, 32, 45, 64, 96, kMostToFill})
        for (const bool exact : {true, false}) {
            SCOPED_TRACE(testing::Message() << "capacity " << capacity << (exact ? "" : ", distances that differ"));
            std::vector<u64> entries(n * capacity, ~u64(0));
            std::vector<u32> counts(n);
            std::vector<std::vector<Entry>> expected(n);
            u64 offered = 0, accepted = 0;
            for (int i = 0; i < n; ++i) {
                counts[i] = i % 5 == 0 ? 0 : random() % (capacity + 1);
                offered += counts[i];
                std::map<u32, float> distance_of_id;
                for (int j = 0; j < int(counts[i]); ++j) {
                    const bool none = random() % 10 == 0;
                    const u32 id = none ? kNoId : u32(i + 1 + random() % 60) % n;
                    const float distance = none    ? INFINITY
                                           : exact ? float(id * 37 % 101) - 20
                                                   : float(random() % 5 + id * 37 % 101);
                    entries[i * capacity + j] = u64(__builtin_bit_cast(u32, distance)) << 32 | id;
                    if (none) continue;
                    float& least = distance_of_id.emplace(id, distance).first->second;
                    least = std::min(least, distance);
                }
                for (const auto& [id, distance] : distance_of_id) expected[i].push_back({distance, id});
                std::sort(expected[i].begin(), expected[i].end());
                if (int(expected[i].size()) > length) expected[i].resize(length);
                accepted += expected[i].size();
            }
            const OnDevice<u32> ids(std::vector<u32>(n * length, 7)), waiting(counts);
            const OnDevice<float> distances(std::vector<float>(n * length, NAN)), bounds(std::vector<float>(n, NAN));
            const OnDevice<u64> queue(entries);
            const OnDevice<Counters> counters(std::vector<Counters>(kSpread, Counters{}));
            fill_lists({ids, distances, bounds, length, 1}, {queue, waiting, capacity}, n, counters, nullptr);
            HostLists after(n, length);
            after.ids = ids.read();
            after.distances = distances.read();
            after.bounds = bounds.read();
            for (int i = 0; i < n; ++i) {
                ASSERT_EQ(after.get(i), expected[i]) << i;
                for (int j = 0; j < length; ++j) {
                    const bool real = j < int(expected[i].size());
                    ASSERT_EQ(after.ids[i * length + j] >= kNewBit, real) << i << ' ' << j;
                    if (!real) {
                        ASSERT_EQ(after.distances[i * length + j], INFINITY) << i << ' ' << j;
                    }
                }
                ASSERT_EQ(after.bounds[i], after.distances[i * length + length - 1]) << i;
            }
            EXPECT_EQ(waiting.read(), std::vector<u32>(n, 0));
            const Counters sum = sum_of(counters);
            EXPECT_EQ(sum.offered, offered);
            EXPECT_EQ(sum.accepted, accepted);
        }
}

}  // namespace
}  // namespace gnnd::cuda

// SPDX-License-Identifier: MIT
// Steps 3 and 4 on every engine, from random samples and lists, against their definition. Without a GPU all of it is
// skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "tests/cuda_engine.h"
#include "tests/gpu.h"

namespace gnnd::cuda {
namespace {

class CudaCrossMatchTest : public CudaEngineTest {};
INSTANTIATE_TEST_SUITE_P(CudaKernel, CudaCrossMatchTest, testing::ValuesIn(kEngineCases),
                         testing::PrintToStringParamName());

/// With room for an object's bias behind each bound.
std::vector<float> in_pairs(const std::vector<float>& bounds) {
    std::vector<float> paired(2 * bounds.size(), NAN);
    for (std::size_t i = 0; i < bounds.size(); ++i) paired[2 * i] = bounds[i];
    return paired;
}

/// The samples of one object as a set, NEW before OLD.
struct Group {
    std::vector<u32> fresh, old;
};

TEST_P(CudaCrossMatchTest, UpdatesListsAsByDefinition) {
    struct Case {
        const char* name;
        Update update;
        int segments, kept;
        bool locks = true, many_samples = false, only_new = false;
    };
    for (const int p : {5, 16, 32, 64})
        for (const Case& variant :
             {Case{"auto", Update::automatic, 1, 2, false}, Case{"complete", Update::automatic, 1, 2},
              Case{"list", Update::selective, 1, 1}, Case{"segment", Update::selective, 2, 1},
              Case{"all", Update::all, 1, 0}, Case{"auto, many samples", Update::automatic, 1, 2, false, true},
              Case{"complete, many samples", Update::automatic, 1, 2, true, true},
              Case{"auto, only NEW", Update::automatic, 1, 2, false, false, true},
              Case{"complete, only NEW", Update::automatic, 1, 2, true, false, true}}) {
            if (!test::has_update(variant.update)) continue;
            if (variant.many_samples && p != 32) continue;  // elsewhere it changes nothing
            SCOPED_TRACE(testing::Message() << variant.name << ", p " << p);
            const int length = 50, objects = 60;
            const bool appends = variant.update == Update::automatic, merges = appends && variant.locks;
            const int capacity = merges ? 6 : 4 * objects;  // most find no room
            // Samples: the own list's and the reverse ones share ids, NEW and OLD share ids.
            std::vector<u32> ids(kN * 4 * p, kNoId), own(kN), reverse(2 * kN);
            std::vector<Group> groups(kN);
            for (int i = 0; i < objects; ++i) {
                std::set<u32> seen;
                for (int old = 0; old < 2; ++old) {
                    const auto mine = some_ids(kN, random() % (p + 1), i, random);
                    const auto others = some_ids(kN, random() % (p + 1), i, random);
                    own[i] |= u32(mine.size()) << 16 * old;
                    reverse[2 * i + old] = others.size() + (int(others.size()) == p ? 3 : 0);  // some found no room
                    std::copy(mine.begin(), mine.end(), &ids[(i * 2 + old) * 2 * p]);
                    std::copy(others.begin(), others.end(), &ids[(i * 2 + old) * 2 * p + p]);
                    for (const auto& part : {mine, others})
                        for (const u32 id : part)
                            if (seen.insert(id).second) (old ? groups[i].old : groups[i].fresh).push_back(id);
                }
            }
            if (variant.only_new)
                for (Group& group : groups) group.old.clear();
            HostLists lists(kN, length);
            for (int i = 0; i < kN; ++i) {
                std::vector<Entry> entries;
                for (const u32 id : some_ids(kN, i % 3 == 0 ? length / 2 : 2 * length, i, random))
                    entries.push_back({space->distance(i, int(id)), id});
                lists.set(i, entries, nullptr);
            }
            const OnDevice<u32> list_ids(lists.ids), sample_ids(ids), sample_own(own), sample_reverse(reverse),
                words(std::vector<u32>(kN * kFilterWords, 0)), counts(std::vector<u32>(kN, 0)),
                locks(std::vector<u32>(kN * 2, 0));
            const OnDevice<float> distances(lists.distances), bounds(in_pairs(lists.bounds));
            const OnDevice<u64> queue(std::vector<u64>(kN * capacity, ~u64(0)));
            const OnDevice<StopFlag> stop(std::vector<StopFlag>(1, StopFlag{}));
            const OnDevice<Counters> counters(std::vector<Counters>(kSpread, Counters{}));
            Lists here{list_ids, distances, bounds, length, 1, 2};
            pair_bounds(here, points().bias, kN, nullptr);
            if (variant.segments > 1) {
                HostLists divided(kN, length);
                split(here, variant.segments, kN, nullptr);
                divided.ids = list_ids.read();
                divided.distances = distances.read();
                for (int i = 0; i < kN; ++i) {  // each segment keeps the nearest of its own
                    std::vector<Entry> expected, got = divided.get(i);
                    std::vector<int> room(variant.segments, length / variant.segments);
                    for (const Entry& entry : lists.get(i))
                        if (room[here.segment_of(entry.id)]-- > 0) expected.push_back(entry);
                    std::sort(got.begin(), got.end());
                    ASSERT_EQ(got, expected) << i;
                }
                lists.ids = divided.ids;
                lists.distances = divided.distances;
            }
            engine_for(space->packed, space->metric)
                .cross_match(points(),
                             {.samples = {sample_ids, sample_own, sample_reverse, nullptr, nullptr, p},
                              .lists = here,
                              .variant = {variant.update,
                                          {words, 0x9e3779b1},
                                          {queue, counts, capacity},
                                          variant.locks ? locks.get() : nullptr},
                              .visit = nullptr,
                              .first = 0,
                              .stride = 1,
                              .many_samples = variant.many_samples,
                              .only_new = variant.only_new,
                              .stop = stop,
                              .counters = counters},
                             nullptr);
            if (merges) apply_candidates(here, {queue, counts, capacity}, kN, stop, counters, nullptr);

            // By definition. `sure` are the offers that no tie leaves to chance.
            std::vector<std::set<Entry>> offers(kN), sure(kN);
            u64 computed = 0;
            for (const Group& group : groups) {
                const auto offer = [&](u32 u, const std::vector<u32>& partners) {
                    std::vector<Entry> sorted;
                    for (const u32 v : partners)
                        if (v != u) sorted.push_back({space->distance(int(u), int(v)), v});
                    std::sort(sorted.begin(), sorted.end());
                    const std::size_t kept =
                        variant.kept == 0 ? sorted.size() : std::min<std::size_t>(variant.kept, sorted.size());
                    for (std::size_t j = 0; j < sorted.size(); ++j) {
                        if (kept == 0 || sorted[j].distance > sorted[kept - 1].distance) break;
                        offers[u].insert(sorted[j]);
                        if (kept == sorted.size() || sorted[j].distance < sorted[kept].distance)
                            sure[u].insert(sorted[j]);
                    }
                };
                const bool inside = GetParam().pairs.all();  // else NEW is compared with OLD only
                for (const u32 u : group.fresh)
                    offer(u, inside ? group.fresh : std::vector<u32>()), offer(u, group.old);
                for (const u32 u : group.old) offer(u, group.fresh);
                if (group.fresh.size() + group.old.size() >= 2)
                    computed += (inside ? group.fresh.size() * (group.fresh.size() - 1) / 2 : 0) +
                                group.fresh.size() * group.old.size();
            }
            u64 counted = 0, accepted = 0;
            for (const Counters& part : counters.read()) {
                counted += part.distances;
                accepted += part.accepted;
            }
            EXPECT_EQ(counted, computed);

            HostLists after(kN, length);
            after.ids = list_ids.read();
            after.distances = distances.read();
            const auto waiting = queue.read();
            const auto waiting_counts = counts.read();
            u64 entered = 0;
            int untied = 0;
            std::size_t missing = 0, wanted = 0;
            for (int u = 0; u < kN; ++u) {
                SCOPED_TRACE(testing::Message() << "object " << u);
                if (appends && !merges) {
                    ASSERT_LE(waiting_counts[u], u32(capacity));
                    std::set<Entry> got;
                    std::vector<Entry> all;
                    for (u32 j = 0; j < waiting_counts[u]; ++j) {
                        const u64 entry = waiting[u * capacity + j];
                        got.insert({__builtin_bit_cast(float, u32(entry >> 32)), u32(entry)});
                    }
                    expect_distances(u, {got.begin(), got.end()});
                    for (const Entry& entry : got) ASSERT_TRUE(offers[u].count(entry)) << entry.id;
                    for (const Entry& entry : sure[u]) {
                        wanted += entry.distance < lists.bounds[u];
                        missing += entry.distance < lists.bounds[u] && !got.count(entry);
                    }
                    continue;
                }
                // The nearest of list and offers, segment by segment; those that are sure must be among them.
                untied += sure[u] == offers[u];
                expect_distances(u, after.get(u));
                const std::vector<Entry> before = lists.get(u);
                const std::set<Entry> in_list(before.begin(), before.end());
                std::set<Entry> possible, certain;
                for (int segment = 0; segment < variant.segments; ++segment) {
                    std::set<Entry> both;
                    for (const Entry& entry : before)
                        if (here.segment_of(entry.id) == segment) both.insert(entry);
                    for (const Entry& entry : offers[u]) {
                        if (merges && entry.distance >= lists.bounds[u]) continue;
                        if (here.segment_of(entry.id) == segment) both.insert(entry);
                    }
                    int room = here.length / variant.segments;
                    for (const Entry& entry : both) {
                        possible.insert(entry);
                        if (room-- > 0 && (in_list.count(entry) > 0 || sure[u].count(entry) > 0)) certain.insert(entry);
                    }
                    // Sorted by itself, at the places of its own.
                    Entry last{-INFINITY, 0};
                    for (int place = segment; place < length; place += variant.segments) {
                        const u32 id = after.ids[u * length + place];
                        if (id == kNoId) continue;
                        ASSERT_EQ(here.segment_of(id & ~kNewBit), segment);
                        const Entry entry{after.distances[u * length + place], id & ~kNewBit};
                        ASSERT_TRUE(last < entry);
                        last = entry;
                    }
                }
                const std::vector<Entry> in_after = after.get(u);
                const std::set<Entry> got(in_after.begin(), in_after.end());
                ASSERT_TRUE(std::includes(possible.begin(), possible.end(), got.begin(), got.end()));
                ASSERT_TRUE(std::includes(got.begin(), got.end(), certain.begin(), certain.end()));
                if (sure[u] == offers[u]) ASSERT_EQ(got, certain);
                std::set<u32> listed;
                for (const Entry& entry : before) listed.insert(entry.id);
                for (int j = 0; j < length; ++j)
                    if (const u32 id = after.ids[u * length + j]; id != kNoId) {
                        ASSERT_EQ(id >= kNewBit, !listed.count(id & ~kNewBit));
                        entered += id >= kNewBit;
                    }
            }
            if (appends && !merges) {
                EXPECT_LE(missing, wanted / 20) << "the filter took too many for known ones";
            } else {
                EXPECT_GE(untied, kN * 3 / 4) << "distances must differ";
                EXPECT_GE(accepted, entered);  // later ones may have pushed out earlier ones
                EXPECT_EQ(locks.read(), std::vector<u32>(2 * kN, 0));
            }
        }
}

}  // namespace
}  // namespace gnnd::cuda

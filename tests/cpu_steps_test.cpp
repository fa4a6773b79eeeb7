// SPDX-License-Identifier: MIT
// Steps 2 to 4 on the CPU, sampling, cross-match and update, against naive ones, from lists that are known; and when
// they end.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "gnnd/cpu/steps.h"
#include "tests/cpu.h"
#include "tests/reference.h"

namespace gnnd::cpu {
namespace {

using List = std::vector<Entry>;
using Ids = std::vector<std::int32_t>;

TEST(CpuLists, EqualDistancesExchangeWithinARoundOnly) {
    HeapResources resources;
    Lists lists(1, 2, resources);
    const auto offer = [&](float key, std::int32_t id) {
        const Entry entry = make_entry(key, id, true);
        return lists.take(0, &entry, 1);
    };
    const auto ids = [&] { return Ids{id_of(lists.of(0)[0]), id_of(lists.of(0)[1])}; };
    EXPECT_EQ(offer(2, 7), 1);
    EXPECT_EQ(offer(1, 5), 1);
    EXPECT_EQ(offer(1, 5), 0) << "it is there already";
    EXPECT_EQ(ids(), (Ids{5, 7}));
    lists.start_round(0);
    EXPECT_LT(lists.bound(0), 2);
    EXPECT_EQ(offer(2, 3), 0) << "no nearer than the last one";
    EXPECT_EQ(offer(1, 9), 1);
    EXPECT_EQ(offer(1, 6), 1) << "whichever comes first, the round ends with the same ones";
    EXPECT_EQ(ids(), (Ids{5, 6}));
    lists.start_round(0);
    EXPECT_EQ(offer(1, 2), 0);
    EXPECT_EQ(offer(-1, 8), 1);
    EXPECT_EQ(ids(), (Ids{8, 5}));
}

TEST(CpuIterations, EndWithTheFirstThatChangesLessThanDelta) {
    const test::Vectors vectors = test::random_vectors(2000, 12, DType::f32);
    BuildParams params = test::cpu_params(10);
    params.init = Init::random;
    params.samples = 4;  // so that an iteration changes little less than the one before
    params.recall = 0;
    params.delta = 0;
    params.iterations = 20;
    const std::vector<IterationStats> all = build(vectors, params).stats.iterations;
    std::set<int> ends;
    for (int i = 1; i <= 20; ++i) {
        params.delta = float(double(all[i].changed + 1) / (2000 * 10));
        if (params.delta > 1) continue;
        int end = 1;
        while (double(all[end].changed) >= double(params.delta) * 2000 * 10) ++end;
        EXPECT_EQ(build(vectors, params).stats.iterations.back().iteration, end);
        ends.insert(end);
    }
    EXPECT_GE(ends.size(), 5u);
}

struct StepsCase {
    Update update;
    std::int32_t border;  ///< of GGM's two sets; 0: one set
    int threads;
    friend std::ostream& operator<<(std::ostream& out, const StepsCase& c) {
        return out << name_of(c.update) << (c.border != 0 ? "_merge_" : "_build_") << c.threads;
    }
};

class CpuSteps : public testing::TestWithParam<StepsCase> {
  protected:
    static constexpr std::int64_t kN = 150;
    static constexpr int kLength = 10, kP = 3;

    CpuSteps() {
        params_.update = GetParam().update;
        std::iota(state_.order.begin(), state_.order.end(), 0);
        std::mt19937 random(20261122);
        state_.size_blocks(1, 1);
        for (std::int32_t i = 0; i < kN; ++i) {
            // In GGM the entries of the own set are OLD, and those of the other one NEW until they are sampled.
            std::map<std::int32_t, bool> chosen;
            while (int(chosen.size()) < kLength)
                if (const auto id = std::int32_t(random() % kN); id != i)
                    chosen[id] = GetParam().border != 0 ? of_other_set(i, id) : random() % 2 == 0;
            List list;
            for (const auto& [id, is_new] : chosen) list.push_back(make_entry(key(i, id), id, is_new));
            std::sort(list.begin(), list.end());
            std::copy(list.begin(), list.end(), state_.lists.of(i));
            state_.lists.start_round(i);
        }
    }

    bool of_other_set(std::int32_t a, std::int32_t b) const {
        return (a < GetParam().border) != (b < GetParam().border);
    }
    float key(std::int32_t a, std::int32_t b) {
        Block& block = state_.workers[0].block;
        block.compute(&a, 1, &b, 1);
        return block.row(0)[0];
    }
    std::vector<List> lists() const {
        std::vector<List> all;
        for (std::int64_t i = 0; i < kN; ++i) all.emplace_back(state_.lists.of(i), state_.lists.of(i) + kLength);
        return all;
    }
    /// The first p ids of the list that are NEW, or OLD.
    Ids own_samples(std::int32_t i, const List& list, bool wanted) const {
        Ids ids;
        for (const Entry entry : list)
            // OLD entries of the other set are of no use in GGM.
            if (is_new(entry) == wanted && (wanted || GetParam().border == 0 || !of_other_set(i, id_of(entry))) &&
                int(ids.size()) < kP)
                ids.push_back(id_of(entry));
        return ids;
    }

    const test::Vectors vectors_ = test::random_vectors(kN, 8, DType::f32, true);
    BuildParams params_;
    Choices choices_;
    HeapResources resources_;
    const Team team_{GetParam().threads, nullptr};
    const Space space_{vectors_.view(), Metric::L2, team_, resources_};
    State state_{space_,
                 params_,
                 choices_,
                 detail::Pairs{std::uint32_t(GetParam().border)},
                 team_,
                 resources_,
                 Lists(kN, kLength, resources_),
                 std::vector<Worker>(std::size_t(team_.threads)),
                 Buffer<std::int32_t>(resources_, kN)};
};

TEST_P(CpuSteps, SamplesAreTheFirstOfTheListAndOfThoseThatTookTheObject) {
    const std::vector<List> before = lists();
    Samples samples(kN, kP, resources_);
    samples.draw(state_, 1);
    std::vector<std::set<std::int32_t>> took_as[2]{std::vector<std::set<std::int32_t>>(kN),
                                                   std::vector<std::set<std::int32_t>>(kN)};
    for (std::int32_t i = 0; i < kN; ++i)
        for (const bool wanted : {false, true})
            for (const std::int32_t v : own_samples(i, before[i], wanted)) took_as[wanted][v].insert(i);
    int full = 0, room = 0;
    for (std::int32_t i = 0; i < kN; ++i)
        for (const bool wanted : {false, true}) {
            const std::int32_t* found = wanted ? samples.new_of(i) : samples.old_of(i);
            const int count = wanted ? samples.new_count(i) : samples.old_count(i);
            const Ids own = own_samples(i, before[i], wanted);
            const std::set<std::int32_t>& sources = took_as[wanted][i];
            ASSERT_EQ(count, std::min(2 * kP, int(own.size() + sources.size()))) << "object " << i;
            ++(int(own.size() + sources.size()) > 2 * kP ? full : room);
            EXPECT_TRUE(std::equal(own.begin(), own.end(), found)) << "object " << i;
            const std::set<std::int32_t> reverse(found + own.size(), found + count);
            EXPECT_EQ(int(reverse.size()), count - int(own.size())) << "a source counts once";
            EXPECT_TRUE(std::includes(sources.begin(), sources.end(), reverse.begin(), reverse.end()));
        }
    EXPECT_GT(full, 10);
    EXPECT_GT(room, 10);
    const std::vector<List> after = lists();
    for (std::int32_t i = 0; i < kN; ++i) {
        const Ids taken = own_samples(i, before[i], true);
        for (int j = 0; j < kLength; ++j) {
            const bool sampled = std::find(taken.begin(), taken.end(), id_of(before[i][j])) != taken.end();
            EXPECT_EQ(after[i][j], sampled ? before[i][j] & ~Entry(1) : before[i][j]) << "NEW until it is sampled";
        }
    }
}

TEST_P(CpuSteps, CrossMatchOffersWhatTheUpdateSays) {
    Samples samples(kN, kP, resources_);
    samples.draw(state_, 1);
    const std::vector<List> before = lists();
    std::vector<std::set<std::int32_t>> offers(kN);
    const auto offer_nearest = [&](std::int32_t to, const Ids& partners) {
        std::int32_t nearest = -1;
        for (const std::int32_t v : partners)
            if (v != to && (nearest < 0 || key(to, v) < key(to, nearest))) nearest = v;
        if (nearest >= 0) offers[to].insert(nearest);
    };
    for (std::int32_t u = 0; u < kN; ++u) {
        const std::set<std::int32_t> unique(samples.new_of(u), samples.new_of(u) + samples.new_count(u));
        std::set<std::int32_t> others(samples.old_of(u), samples.old_of(u) + samples.old_count(u));
        for (const std::int32_t v : unique) others.erase(v);
        const Ids fresh(unique.begin(), unique.end()), old(others.begin(), others.end());
        const Ids partners = GetParam().border != 0 ? Ids() : fresh;  // in GGM NEW samples meet OLD ones only
        for (const std::int32_t v : fresh)
            if (params_.update == Update::all) {
                for (const Ids& met : {partners, old})
                    for (const std::int32_t w : met)
                        if (w != v) offers[v].insert(w), offers[w].insert(v);
            } else {
                offer_nearest(v, partners);
                offer_nearest(v, old);
            }
        if (params_.update != Update::all)
            for (const std::int32_t v : old) offer_nearest(v, fresh);
    }
    cross_match(state_, samples);
    state_.size_blocks(1, 1);
    int entered = 0;
    for (std::int32_t i = 0; i < kN; ++i) {
        List expected = before[i];
        for (const std::int32_t v : offers[i])
            if (std::none_of(before[i].begin(), before[i].end(), [v](Entry entry) { return id_of(entry) == v; }))
                expected.push_back(make_entry(key(i, v), v, true));
        std::sort(expected.begin(), expected.end());
        expected.resize(kLength);
        entered += expected != before[i];
        EXPECT_EQ(List(state_.lists.of(i), state_.lists.of(i) + kLength), expected) << "object " << i;
    }
    EXPECT_GT(entered, kN / 2);
}

class CpuMergeSteps : public CpuSteps {};

// Entries of the graphs that do not stay in the lists come back in the end, under the numbers that objects have now.
TEST_P(CpuMergeSteps, GraphsToMergeEnterTheListsAndAreTakenBack) {
    const std::int32_t border = GetParam().border;
    detail::Input input;
    KnnGraph graphs[2];
    std::vector<List> expected;
    std::mt19937 random(1);
    for (const int set : {0, 1}) {
        const std::int32_t begin = set * border, n = set == 0 ? border : std::int32_t(kN) - border;
        input.vectors[set] = vectors_.view();
        input.vectors[set].data = vectors_.view().row(begin);
        input.vectors[set].n = n;
        graphs[set] = KnnGraph(n, kLength, Metric::L2);
        for (std::int32_t i = 0; i < n; ++i) {
            std::set<Entry> row;
            while (int(row.size()) < kLength)
                if (const auto id = std::int32_t(random() % std::uint32_t(n)); id != i)
                    row.insert(make_entry(key(begin + i, begin + id), begin + id, false));
            int j = i * kLength;
            for (const Entry entry : row) {
                graphs[set].ids()[j] = id_of(entry) - begin;
                graphs[set].distances()[j++] = key_of(entry);
            }
            expected.emplace_back(row.begin(), row.end());
        }
        input.graphs[set] = graphs[set];
    }
    params_.k = params_.list_size = kLength;
    for (const Init init : kInits) {
        params_.init = init;
        for (std::int32_t i = 0; i < kN; ++i) std::fill_n(state_.lists.of(i), kLength, kEmpty);
        load_graphs(state_, input);
        const auto kept = std::ptrdiff_t(detail::kept_columns(input.graphs[0], params_));
        const std::vector<List> loaded = lists();
        for (std::int32_t i = 0; i < kN; ++i) {
            List first(expected[i].begin(), expected[i].begin() + kept);
            first.resize(kLength, kEmpty);
            EXPECT_EQ(loaded[i], first) << name_of(init) << " object " << i;
        }
        take_back(state_, input);
        EXPECT_EQ(lists(), expected) << name_of(init);
    }
}

std::vector<StepsCase> steps_cases(const std::vector<std::int32_t>& borders) {
    std::vector<StepsCase> cases;
    for (const Update update : {Update::all, Update::selective})
        for (const std::int32_t border : borders)
            for (const int threads : {1, 3}) cases.push_back({update, border, threads});
    return cases;
}

INSTANTIATE_TEST_SUITE_P(Updates, CpuSteps, testing::ValuesIn(steps_cases({0, 60})), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Updates, CpuMergeSteps, testing::ValuesIn(steps_cases({60})),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace gnnd::cpu

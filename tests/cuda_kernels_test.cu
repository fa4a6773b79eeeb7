// The kernels one by one against naive references. Components are small integers, so that every engine is exact and
// results can be compared to the bit. Without a GPU all of it is skipped.
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "gnnd/cuda/algorithm.h"
#include "gnnd/cuda/engine/engine.cuh"
#include "gnnd/cuda/errors.h"
#include "gnnd/cuda/init.cuh"
#include "tests/gpu.h"

namespace gnnd::cuda {
namespace {

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

std::vector<u32> some_ids(int n, int count, int self, std::mt19937& random) {
    std::set<u32> ids;
    while (int(ids.size()) < std::min(count, n - 1))
        if (const u32 id = random() % n; int(id) != self) ids.insert(id);
    std::vector<u32> shuffled(ids.begin(), ids.end());
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    return shuffled;
}

HostLists random_lists(int n, int length, std::mt19937& random) {
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

class CudaSampleTest : public CudaKernelTest, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(CudaKernel, CudaSampleTest, testing::Values(1, 8, 33, 64));

/// Step 2: the first p NEW and OLD entries, and the objects that took each object.
TEST_P(CudaSampleTest, TakesTheFirstOfEachKind) {
    const int n = 700, length = 70, p = GetParam();
    const u32 salt = 99;
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
            const OnDevice<Control> control(std::vector<Control>(1, Control{}));
            sample(
                {ids, distances, bounds, length, 1},
                {samples, own, reverse, deterministic ? ends.get() : nullptr, deterministic ? edges.get() : nullptr, p},
                {words, salt}, salt, pairs, visited ? visit.get() : nullptr, n, control, nullptr);
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
                    const u32 hash = mix(entry.id ^ salt);
                    known.insert({hash % kFilterWords, std::max(hash >> 24, 1u)});
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
    const OnDevice<u32> ids(lists.ids), waiting(counts);
    const OnDevice<float> distances(lists.distances), bounds(lists.bounds);
    const OnDevice<u64> queue(entries);
    const OnDevice<Control> control(std::vector<Control>(1, Control{}));
    const OnDevice<Counters> counters(std::vector<Counters>(kSpread, Counters{}));
    merge({ids, distances, bounds, length, 1}, {queue, waiting, capacity}, n, control, counters, nullptr);

    HostLists after(n, length);
    after.ids = ids.read();
    after.distances = distances.read();
    after.bounds = bounds.read();
    Counters sum{};
    for (const Counters& part : counters.read()) {
        sum.offered += part.offered;
        sum.accepted += part.accepted;
        sum.lost += part.lost;
    }
    for (int i = 0; i < n; ++i) {
        ASSERT_EQ(after.get(i), expected[i]) << i;
        ASSERT_EQ(after.bounds[i], after.distances[i * length + length - 1]);
        for (int j = 0; j < length; ++j)
            if (const u32 id = after.ids[i * length + j] & ~kNewBit; fresh[i].count(id))
                ASSERT_GE(after.ids[i * length + j], kNewBit);
    }
    EXPECT_EQ(waiting.read(), std::vector<u32>(n, 0));
    EXPECT_EQ(sum.offered, offered);
    EXPECT_EQ(sum.lost, lost);
    EXPECT_GE(sum.accepted, accepted);  // later ones may have pushed out earlier ones
    EXPECT_LE(sum.accepted, 2 * accepted);
}

/// The vectors of a test in the form of one engine, and their distances by definition.
struct Space {
    Cell cell;
    Metric metric;
    int n, d;
    std::vector<int> components;
    std::vector<std::uint8_t> rows;
    std::vector<u32> bias;
    int row_bytes, scale;

    Space(Cell cell_, Metric metric_, int n_, int d_, std::mt19937& random)
        : cell(cell_), metric(metric_), n(n_), d(d_), components(n * d) {
        const int bytes = cell == Cell::f16 ? 2 : 1;
        row_bytes = (d * bytes + kStep - 1) / kStep * kStep;
        rows.resize(std::size_t(n) * row_bytes);
        scale = metric == Metric::L2 ? -2 : metric == Metric::InnerProduct ? -1 : 1;
        for (int i = 0; i < n; ++i) {
            int norm = 0;
            for (int c = 0; c < d; ++c) {
                // Long rows of integers: so small that keys lose no bits. f16: sums below 2^16 survive the key's
                // rounding. chi2: 0 and 4 only, whose terms are integers.
                int x = cell == Cell::u8 ? int(random() % 256) : cell == Cell::i8 ? int(random() % 256) - 128 : 0;
                if (cell != Cell::f16 && row_bytes > kSlab) x /= 4;
                if (cell == Cell::f16) x = int(random() % 17) - (metric == Metric::L2 ? 8 : 0);
                if (metric == Metric::Linf) x *= 60;
                if (metric == Metric::ChiSquare) x = random() % 2 * 4;
                components[i * d + c] = x;
                norm += x * x;
                if (cell == Cell::f16)
                    reinterpret_cast<__half*>(&rows[std::size_t(i) * row_bytes])[c] = __float2half(float(x));
                else
                    rows[std::size_t(i) * row_bytes + c] = std::uint8_t(x);
            }
            bias.push_back(cell == Cell::f16 ? __builtin_bit_cast(u32, float(norm)) : u32(norm));
        }
    }
    float distance(int a, int b) const {
        double sum = 0;
        for (int c = 0; c < d; ++c) {
            const double x = components[a * d + c], y = components[b * d + c];
            switch (metric) {
                case Metric::L2:
                    sum += (x - y) * (x - y);
                    break;
                case Metric::InnerProduct:
                    sum -= x * y;
                    break;
                case Metric::L1:
                    sum += std::abs(x - y);
                    break;
                case Metric::Linf:
                    sum = std::max(sum, std::abs(x - y));
                    break;
                default:
                    sum += x + y == 0 ? 0 : (x - y) * (x - y) / (x + y);
            }
        }
        return float(sum);
    }
    /// With this shift integer keys are exact, and those of the values above fit.
    int shift() const { return cell == Cell::f16 ? 0 : kColumnBits; }
};

struct EngineCase {
    const char* name;
    Cell cell;
    Metric metric;
    int d;
    detail::Pairs pairs = {};
    friend std::ostream& operator<<(std::ostream& out, const EngineCase& c) { return out << c.name; }
};

class CudaEngineTest : public CudaKernelTest, public testing::WithParamInterface<EngineCase> {
  protected:
    static constexpr int kN = 400;
    void SetUp() override {
        CudaKernelTest::SetUp();
        if (IsSkipped()) return;
        const EngineCase& c = GetParam();
        space = std::make_unique<Space>(c.cell, c.metric, kN, c.d, random);
        rows = std::make_unique<OnDevice<std::uint8_t>>(space->rows);
        bias = std::make_unique<OnDevice<u32>>(space->bias);
    }
    Points points() const {
        const bool l2 = space->metric == Metric::L2;
        return {*rows,           kN, space->row_bytes, l2 ? bias->get() : nullptr, space->scale, space->shift(),
                GetParam().pairs};
    }
    /// What was computed as list entries for `object`, none twice.
    /// \param lowered  sums of floats may be less by 2^-14 of the product and the norms
    void expect_distances(int object, const std::vector<Entry>& entries, bool lowered = false) const {
        std::set<u32> seen;
        for (const Entry& entry : entries) {
            ASSERT_TRUE(entry.id < kN && int(entry.id) != object && seen.insert(entry.id).second) << entry.id;
            const float exact = space->distance(object, int(entry.id));
            const float terms = space->metric == Metric::L2 ? 4.0f * 8 * 8 * float(space->d) : exact;
            const float below = lowered && space->cell == Cell::f16 ? std::ldexp(terms, -13) : 0;
            ASSERT_LE(entry.distance, exact) << object << ' ' << entry.id;
            ASSERT_GE(entry.distance, exact - below) << object << ' ' << entry.id;
        }
    }

    std::unique_ptr<Space> space;
    std::unique_ptr<OnDevice<std::uint8_t>> rows;
    std::unique_ptr<OnDevice<u32>> bias;
};

INSTANTIATE_TEST_SUITE_P(CudaKernel, CudaEngineTest,
                         testing::Values(EngineCase{"l2_u8", Cell::u8, Metric::L2, 100},
                                         EngineCase{"l2_u8_short", Cell::u8, Metric::L2, 40},
                                         EngineCase{"l2_u8_long", Cell::u8, Metric::L2, 300},
                                         EngineCase{"ip_i8", Cell::i8, Metric::InnerProduct, 128},
                                         EngineCase{"ip_i8_long", Cell::i8, Metric::InnerProduct, 129},
                                         EngineCase{"l2_f16", Cell::f16, Metric::L2, 64},
                                         EngineCase{"l2_f16_long", Cell::f16, Metric::L2, 130},
                                         EngineCase{"l1", Cell::f16, Metric::L1, 96},
                                         EngineCase{"linf", Cell::f16, Metric::Linf, 20},
                                         EngineCase{"chi2", Cell::f16, Metric::ChiSquare, 200},
                                         EngineCase{"l2_u8_across", Cell::u8, Metric::L2, 100, {150}},
                                         EngineCase{"ip_i8_long_across", Cell::i8, Metric::InnerProduct, 129, {1}},
                                         EngineCase{"l2_f16_long_across", Cell::f16, Metric::L2, 130, {250}},
                                         EngineCase{"l1_across", Cell::f16, Metric::L1, 96, {399}}),
                         testing::PrintToStringParamName());

/// The samples of one object as a set, NEW before OLD.
struct Group {
    std::vector<u32> fresh, old;
};

/// Steps 3 and 4: what every variant of the update leads to, from random samples and lists.
TEST_P(CudaEngineTest, CrossMatchUpdatesListsAsByDefinition) {
    struct Case {
        const char* name;
        Update update;
        int segments, kept;
        bool locks = true;
    };
    for (const int p : {5, 16, 32, 64})
        for (const Case& variant : {Case{"auto", Update::automatic, 1, 2, false},
                                    Case{"complete", Update::automatic, 1, 2}, Case{"list", Update::selective, 1, 1},
                                    Case{"segment", Update::selective, 2, 1}, Case{"all", Update::all, 1, 0}}) {
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
            const OnDevice<float> distances(lists.distances), bounds(lists.bounds);
            const OnDevice<u64> queue(std::vector<u64>(kN * capacity, ~u64(0)));
            const OnDevice<Control> control(std::vector<Control>(1, Control{}));
            const OnDevice<Counters> counters(std::vector<Counters>(kSpread, Counters{}));
            Lists here{list_ids, distances, bounds, length, 1};
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
            engine_for(space->cell, space->metric)
                .cross_match(
                    points(), {sample_ids, sample_own, sample_reverse, nullptr, nullptr, p}, here,
                    {variant.update, {words, 1}, {queue, counts, capacity}, variant.locks ? locks.get() : nullptr},
                    nullptr, 0, 1, control, counters, nullptr);
            if (merges) merge(here, {queue, counts, capacity}, kN, control, counters, nullptr);

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
                // The nearest of list and offers, segment by segment.
                const bool tie = sure[u] != offers[u];
                expect_distances(u, after.get(u));
                std::vector<Entry> expected;
                for (int segment = 0; segment < variant.segments; ++segment) {
                    std::set<Entry> both;
                    for (const Entry& entry : lists.get(u))
                        if (here.segment_of(entry.id) == segment) both.insert(entry);
                    for (const Entry& entry : offers[u]) {
                        if (merges && entry.distance >= lists.bounds[u]) continue;
                        if (here.segment_of(entry.id) == segment) both.insert(entry);
                    }
                    int room = here.length / variant.segments;
                    for (const Entry& entry : both)
                        if (room-- > 0) expected.push_back(entry);
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
                std::sort(expected.begin(), expected.end());
                std::vector<Entry> got = after.get(u);
                std::sort(got.begin(), got.end());
                if (tie) {
                    ASSERT_LE(got.size(), expected.size());
                } else {
                    ASSERT_EQ(got, expected);
                }
                std::set<u32> listed;
                for (const Entry& entry : lists.get(u)) listed.insert(entry.id);
                for (int j = 0; j < length; ++j)
                    if (const u32 id = after.ids[u * length + j]; id != kNoId) {
                        ASSERT_EQ(id >= kNewBit, !listed.count(id & ~kNewBit));
                        entered += id >= kNewBit;
                    }
            }
            if (appends && !merges) {
                EXPECT_LE(missing, wanted / 20) << "the filter took too many for known ones";
            } else {
                EXPECT_GE(accepted, entered);  // later ones may have pushed out earlier ones
                EXPECT_EQ(locks.read(), std::vector<u32>(2 * kN, 0));
            }
        }
}

/// Step 1: random and given neighbours with their distances.
TEST_P(CudaEngineTest, SeedComputesDistances) {
    const int width = 12, capacity = 15;
    std::vector<std::int32_t> graph(kN * width, -1);
    for (int i = 0; i < kN; ++i) {
        const auto some = some_ids(kN, 1 + random() % width, i, random);
        std::copy(some.begin(), some.end(), &graph[i * width]);
    }
    graph[0] = 0;  // itself: left out
    const OnDevice<std::int32_t> given(graph);
    for (const bool random_ones : {false, true}) {
        const OnDevice<u64> queue(std::vector<u64>(kN * capacity, ~u64(0)));
        const OnDevice<u32> counts(std::vector<u32>(kN, 0));
        engine_for(space->cell, space->metric)
            .seed(points(), {queue, counts, capacity}, random_ones ? nullptr : given.get(), width, 2, 10, 5, nullptr);
        const auto entries = queue.read();
        EXPECT_EQ(counts.read(), std::vector<u32>(kN, 10));
        for (int i = 0; i < kN; ++i) {
            std::set<Entry> got;
            for (int j = 0; j < 10; ++j) {
                const u64 entry = entries[i * capacity + j];
                if (u32(entry) == kNoId) {
                    ASSERT_TRUE(random_ones || graph[i * width + 2 + j] == -1 || graph[i * width + 2 + j] == i);
                    continue;
                }
                if (!random_ones) ASSERT_EQ(int(u32(entry)), graph[i * width + 2 + j]);
                if (random_ones) ASSERT_TRUE(GetParam().pairs.count(u32(i), u32(entry)));
                got.insert({__builtin_bit_cast(float, u32(entry >> 32)), u32(entry)});
            }
            expect_distances(i, {got.begin(), got.end()}, true);
            const u32 partners = GetParam().pairs.partners(u32(i), kN);
            if (random_ones) ASSERT_GE(got.size(), std::min(partners, 5u));
        }
    }
}

/// Step 1: objects of a window meet, those of a merge only across its sets.
TEST_P(CudaEngineTest, MeetPutsTheNearestOfTheWindow) {
    struct Case {
        const char* name;
        u32 border;
        bool shuffled;
        int take;
    };
    const int n = 1100, capacity = 20, at = 3;  // the last window is not full, whichever its length
    const Space many(space->cell, space->metric, n, space->d, random);
    const OnDevice<std::uint8_t> many_rows(many.rows);
    const OnDevice<u32> many_bias(many.bias);
    const Engine& engine = engine_for(space->cell, space->metric);
    for (const Case& c : {Case{"one set", 0, true, 8}, Case{"balanced", n / 2, true, 8}, Case{"1:9", n / 10, true, 6},
                          Case{"the first three", 3, true, 16}, Case{"the last three", n - 3, true, 8},
                          // By number: a window of the first set, one of a few of it and more than 256 others, one of
                          // the second set.
                          Case{"apart", kWideWindow + 9, false, 8}}) {
        SCOPED_TRACE(c.name);
        std::vector<u32> order(n);
        std::iota(order.begin(), order.end(), 0);
        if (c.shuffled) std::shuffle(order.begin(), order.end(), random);
        Points points = this->points();
        points.rows = many_rows;
        points.n = n;
        if (points.bias != nullptr) points.bias = many_bias;
        points.pairs = {c.border};
        const OnDevice<u32> by(order), counts(std::vector<u32>(n, 0));
        const OnDevice<u64> queue(std::vector<u64>(n * capacity, ~u64(0)));
        engine.meet(points, by, {queue, counts, capacity}, at, c.take, nullptr);
        const auto entries = queue.read();
        EXPECT_EQ(counts.read(), std::vector<u32>(n, at + c.take));

        const int leaf = int(engine.leaf(points));
        const bool wide = leaf != kWindow;
        EXPECT_EQ(wide, engine.divide != nullptr && space->row_bytes <= kSlab && c.border != 0);
        std::vector<int> place(n);
        for (int i = 0; i < n; ++i) place[order[i]] = i;
        for (int i = 0; i < n; i += 3) {
            const u32 object = order[i];
            // Columns are the places in a window, or in a wide one the places among those of the same set there.
            std::vector<float> nearest[4], expected;
            const int window = i / leaf * leaf;
            for (int j = window, columns[2] = {}; j < std::min(window + leaf, n); ++j) {
                const int column = wide ? columns[order[j] < c.border]++ : j - window;
                if (j != i && points.pairs.count(object, order[j]))
                    nearest[column % 8 / 2].push_back(many.distance(int(object), int(order[j])));
            }
            for (std::vector<float>& quarter : nearest) {
                std::sort(quarter.begin(), quarter.end());
                if (quarter.size() > 4) quarter.resize(4);
                expected.insert(expected.end(), quarter.begin(), quarter.end());
            }
            std::sort(expected.begin(), expected.end());
            expected.resize(c.take, INFINITY);

            std::vector<float> got;
            std::set<u32> seen;
            for (int j = 0; j < capacity; ++j) {
                const u64 entry = entries[object * capacity + j];
                if (j < at || j >= at + c.take) {
                    ASSERT_EQ(entry, ~u64(0)) << j;
                    continue;
                }
                const u32 id = u32(entry);
                got.push_back(__builtin_bit_cast(float, u32(entry >> 32)));
                if (id == kNoId) {
                    ASSERT_EQ(got.back(), INFINITY);
                    continue;
                }
                ASSERT_TRUE(id < u32(n) && id != object && seen.insert(id).second) << id;
                ASSERT_TRUE(points.pairs.count(object, id));
                ASSERT_EQ(place[id] / leaf, i / leaf);
                ASSERT_EQ(got.back(), many.distance(int(object), int(id)));
            }
            ASSERT_EQ(got, expected) << object;
        }
    }
}

/// Step 1: every object goes to the nearest pivot of its node.
TEST_P(CudaEngineTest, DivideFindsTheNearestPivot) {
    const Engine& engine = engine_for(space->cell, space->metric);
    if (engine.divide == nullptr || space->metric != Metric::L2) GTEST_SKIP() << "divided by l2";
    std::vector<u32> order(kN);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    const OnDevice<u32> by(order);
    for (const auto& [node_size, pivots] : {std::pair{kN, 7}, std::pair{256, 100}}) {
        const OnDevice<u32> keys(std::vector<u32>(kN, ~0u));
        engine.divide(points(), by, node_size, pivots, 11, keys, nullptr);
        const auto got = keys.read();
        for (int i = 0; i < kN; ++i) {
            const int node = i / node_size, size = std::min(node_size, kN - node * node_size);
            const auto pivot_distance = [&](u32 t) {
                const u32 hash = mix(11 + mix(u32(node) * kMaxPivots + t));
                return space->distance(int(order[i]), int(order[node * node_size + scaled(hash, size)]));
            };
            float nearest = INFINITY;
            for (int t = 0; t < pivots; ++t) nearest = std::min(nearest, pivot_distance(t));
            ASSERT_EQ(int(got[i]) / pivots, node);
            ASSERT_EQ(pivot_distance(got[i] % pivots), nearest);
        }
    }
}

}  // namespace
}  // namespace gnnd::cuda

// SPDX-License-Identifier: MIT
// Weights of pairs: shared neighbours, UMAP's, HDBSCAN's; beside naive references and the packages' own numbers.
#include <gtest/gtest.h>

#include "gnnd/error.h"
#include "gnnd/operations.h"
#include "tests/operations.h"
#include "tests/weights_of_packages.h"

namespace gnnd {
namespace {

using test::expect_valid;
using test::graph_with_distances;
using test::naive_join;
using test::random_graph;
using test::Sparse;
using test::sparse_of;

/// Values may differ by `tolerance` of 1, and what is smaller than that may be left out.
void expect_near(const Sparse& made, const Sparse& expected, float tolerance) {
    ASSERT_EQ(made.size(), expected.size());
    for (std::size_t i = 0; i < made.size(); ++i) {
        for (const auto& [j, value] : expected[i]) {
            const auto at = made[i].find(j);
            ASSERT_NEAR(at == made[i].end() ? 0 : at->second, value, tolerance * std::max(1.f, value)) << i << ' ' << j;
        }
        for (const auto& [j, value] : made[i])
            if (!expected[i].contains(j)) {
                ASSERT_LE(value, tolerance) << i << ' ' << j;
            }
    }
}

/// The same, to the bit, on one thread and on several.
template <class Operation, class Params>
CsrGraph on_threads(const Operation& operation, const KnnGraphView& graph, Params params) {
    params.threads = 1;
    CsrGraph one = operation(graph, params, {}, nullptr);
    expect_valid(one, graph.n);
    params.threads = 3;
    EXPECT_TRUE(test::same(one, operation(graph, params, {}, nullptr)));
    const Sparse rows = sparse_of(one);
    for (std::size_t i = 0; i < rows.size(); ++i)
        for (const auto& [j, value] : rows[i]) {
            const auto back = rows[std::size_t(j)].find(std::int32_t(i));
            EXPECT_TRUE(back != rows[std::size_t(j)].end() && back->second == value) << i << ' ' << j;
        }
    return one;
}

std::int64_t columns_of(const KnnGraphView& graph, int neighbors) {
    return neighbors > 0 ? neighbors : graph.k;
}

Sparse naive_jaccard(const KnnGraphView& graph, const JaccardParams& params) {
    std::vector<std::set<std::int32_t>> sets(std::size_t(graph.n));
    Sparse rows(sets.size());
    for (std::int64_t i = 0; i < graph.n; ++i) {
        for (std::int64_t j = 0; j < columns_of(graph, params.neighbors); ++j)
            if (graph.ids_of(i)[j] >= 0) sets[i].insert(graph.ids_of(i)[j]);
        for (const std::int32_t j : sets[i]) rows[i][j] = 1;
        if (params.include_self) sets[i].insert(std::int32_t(i));
    }
    for (std::size_t i = 0; i < rows.size(); ++i)
        for (auto& [j, value] : rows[i]) {
            std::set<std::int32_t> all = sets[i];
            all.insert(sets[std::size_t(j)].begin(), sets[std::size_t(j)].end());
            const std::size_t shared = sets[i].size() + sets[std::size_t(j)].size() - all.size();
            value = float(shared) / float(all.size());
            if (shared == 0 || value < params.prune) value = NAN;
        }
    return naive_join(rows, [](float a, float b) { return std::isnan(a) ? b : a; });
}

/// umap's search for sigma, step by step in double precision.
double naive_sigma(const std::vector<double>& distances, double rho, double target) {
    double low = 0, high = 3.4028234663852886e38, sigma = 1;
    for (int step = 0; step < 2000; ++step) {
        double sum = 0;
        for (const double d : distances) sum += d > rho ? std::exp(-(d - rho) / sigma) : 1;
        if (std::abs(sum - target) < 1e-9) break;
        (sum > target ? high : low) = sigma;
        sigma = high > 3e38 ? std::min(2 * sigma, 1e38) : (low + high) / 2;
    }
    return sigma;
}

Sparse naive_fuzzy(const KnnGraphView& graph, const FuzzyParams& params) {
    const std::int64_t columns = columns_of(graph, params.neighbors);
    const double target = std::log2(double(columns) + 1) * params.bandwidth;
    std::vector<std::vector<double>> all(std::size_t(graph.n));
    double sum = 0, count = 0;
    for (std::int64_t i = 0; i < graph.n; ++i) {
        for (std::int64_t j = 0; j < columns && graph.ids_of(i)[j] >= 0; ++j)
            all[i].push_back(test::naive_distance(graph.metric, graph.distances_of(i)[j]));
        for (const double d : all[i]) sum += d;
        count += double(all[i].size()) + 1;
    }
    Sparse rows(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::vector<double> others;
        double own = 0;
        for (const double d : all[i]) {
            own += d;
            if (d > 0) others.push_back(d);
        }
        double rho = 0;
        const double connectivity = params.local_connectivity;
        if (double(others.size()) >= connectivity && !others.empty()) {
            const auto index = std::size_t(connectivity);
            const double share = connectivity - double(index);
            if (index > 0) rho = others[index - 1];
            if (index > 0 && share > 1e-5) rho += share * (others[index] - others[index - 1]);
            if (index == 0) rho = share * others[0];
        } else if (!others.empty()) {
            rho = others.back();
        }
        double sigma = naive_sigma(all[i], rho, target);
        sigma = std::max(sigma, 1e-3 * (rho > 0 ? own / (double(all[i].size()) + 1) : sum / count));
        for (std::size_t j = 0; j < all[i].size(); ++j) {
            const double d = all[i][j] - rho;
            rows[i][graph.ids_of(std::int64_t(i))[j]] = d <= 0 ? 1.f : float(std::exp(-d / sigma));
        }
    }
    return naive_join(rows, [&](float a, float b) {
        if (std::isnan(b)) b = 0;
        const float mix = params.set_op_mix_ratio;
        return mix * (a + b - a * b) + (1 - mix) * a * b;
    });
}

class WeightsTest : public testing::TestWithParam<Metric> {};
INSTANTIATE_TEST_SUITE_P(All, WeightsTest, testing::ValuesIn(test::kMetrics), test::metric_name);

TEST_P(WeightsTest, SharedNeighbours) {
    for (const std::int64_t n : {2, 30, 300})
        for (const int k : {1, 15, 40}) {
            const KnnGraph built = graph_with_distances(GetParam(), n, k);
            const KnnGraph random = random_graph(GetParam(), n, std::min(k, int(n) - 1), 5, true);
            for (const KnnGraphView graph : {built.view(), random.view()})
                for (const JaccardParams& params :
                     {JaccardParams{}, JaccardParams{0, true, 0, 0},
                      JaccardParams{int(graph.k + 1) / 2, false, 0.25f, 0}, JaccardParams{0, true, 1.f / 15, 0}}) {
                    SCOPED_TRACE(testing::Message() << n << ", k " << k << ", prune " << params.prune);
                    EXPECT_EQ(sparse_of(on_threads(jaccard_graph, graph, params)), naive_jaccard(graph, params));
                }
        }
}

TEST_P(WeightsTest, FuzzySets) {
    for (const std::int64_t n : {2, 30, 400})
        for (const int k : {1, 2, 15, 40}) {
            const KnnGraph graph = graph_with_distances(GetParam(), n, k);
            for (FuzzyParams params : {FuzzyParams{}, FuzzyParams{0, 0, 1, 1, 0}, FuzzyParams{0, 1.5f, 0.5f, 1, 0},
                                       FuzzyParams{(k + 1) / 2, 1, 0, 1, 0}, FuzzyParams{0, 1, 1, 0.5f, 0},
                                       FuzzyParams{0, 3, 0.25f, 1.3f, 0}}) {
                params.local_connectivity = std::min(params.local_connectivity, float(k));
                SCOPED_TRACE(testing::Message() << n << ", k " << k << ", connectivity " << params.local_connectivity
                                                << ", mix " << params.set_op_mix_ratio << ", " << params.bandwidth);
                expect_near(sparse_of(on_threads(fuzzy_simplicial_set, graph, params)), naive_fuzzy(graph, params),
                            1e-4f);
            }
        }
}

TEST_P(WeightsTest, MutualReachability) {
    for (const std::int64_t n : {2, 30, 500})
        for (const int k : {1, 6, 40})
            for (const float alpha : {1.f, 0.5f}) {
                const KnnGraph graph = graph_with_distances(GetParam(), n, k);
                for (const int min_samples : {1, (k + 1) / 2, k}) {
                    const ReachabilityParams params{0, min_samples, alpha, 2};
                    const Array<float> cores = core_distances(graph, params);
                    Sparse rows = test::naive_neighbors(graph, {0, GraphValues::distance, {}, 0});
                    for (std::int64_t i = 0; i < n; ++i) {
                        const std::int64_t last = std::min<std::int64_t>(min_samples, n - 1) - 1;
                        EXPECT_EQ(cores[i], test::naive_distance(GetParam(), graph.distances_of(i)[last]));
                        for (auto& [j, value] : rows[i]) value = std::max({value / alpha, cores[i], cores[j]});
                    }
                    const Sparse expected =
                        naive_join(rows, [](float a, float b) { return std::isnan(b) ? a : std::min(a, b); });
                    EXPECT_EQ(sparse_of(on_threads(mutual_reachability_graph, graph, params)), expected);
                }
            }
}

TEST_P(WeightsTest, HardSets) {
    const std::int64_t n = test::sized(1000);
    for (const test::HardSet& set : test::hard_sets()) {
        SCOPED_TRACE(set.name);
        test::Vectors vectors = test::vectors_of(set, n, DType::f32, GetParam() == Metric::ChiSquare);
        if (GetParam() == Metric::Cosine)
            for (std::int64_t i = 0; i < n; ++i) vectors.set(i, 0, 1);
        const KnnGraph graph = test::exact_graph(vectors, GetParam(), 15);
        EXPECT_EQ(sparse_of(on_threads(jaccard_graph, graph, JaccardParams{})), naive_jaccard(graph, {}));
        if (GetParam() == Metric::InnerProduct) continue;  // of any length: there are no distances
        expect_near(sparse_of(on_threads(fuzzy_simplicial_set, graph, FuzzyParams{})), naive_fuzzy(graph, {}), 1e-4f);
    }
}

TEST_P(WeightsTest, RowsThatEndEarly) {
    KnnGraph graph = random_graph(Metric::L1, 400, 12, 9, true);
    EXPECT_EQ(sparse_of(on_threads(jaccard_graph, graph, JaccardParams{})), naive_jaccard(graph, {}));
    expect_near(sparse_of(on_threads(fuzzy_simplicial_set, graph, FuzzyParams{})), naive_fuzzy(graph, {}), 1e-4f);
    // An object without entries is infinitely far from whoever names it.
    const CsrGraph reachable = on_threads(mutual_reachability_graph, graph, ReachabilityParams{});
    const Array<float> cores = core_distances(graph);
    int alone = 0;
    for (std::int64_t i = 0; i < graph.n(); ++i) {
        if (graph.ids_of(i)[0] >= 0) continue;
        ++alone;
        EXPECT_EQ(cores[i], INFINITY);
        EXPECT_EQ(reachable.indptr[i], reachable.indptr[i + 1]);
    }
    EXPECT_GT(alone, 5);
    for (const float value : reachable.values) EXPECT_TRUE(std::isfinite(value));
}

TEST_P(WeightsTest, NoObjectsAndOne) {
    const KnnGraphView none{0, 0, GetParam(), nullptr, nullptr};
    const KnnGraph one(1, 3, GetParam());
    for (const KnnGraphView graph : {none, one.view()}) {
        const int most = graph.n == 0 ? 5 : 3;
        EXPECT_EQ(on_threads(jaccard_graph, graph, JaccardParams{}).entries(), 0);
        EXPECT_EQ(on_threads(fuzzy_simplicial_set, graph, FuzzyParams{}).entries(), 0);
        EXPECT_EQ(on_threads(mutual_reachability_graph, graph, ReachabilityParams{0, most, 1, 0}).entries(), 0);
        EXPECT_EQ(std::ssize(core_distances(graph, {0, most, 1, 0})), graph.n);
    }
}

TEST_P(WeightsTest, BadParameters) {
    const KnnGraph graph = graph_with_distances(GetParam(), 30, 6);
    for (const float prune : {-0.1f, 1.1f, NAN})
        EXPECT_THROW(jaccard_graph(graph, {0, false, prune, 0}), InvalidArgument);
    for (const float bad : {-1.f, NAN, 7.f})
        EXPECT_THROW(fuzzy_simplicial_set(graph, {0, bad, 1, 1, 0}), InvalidArgument);
    for (const float bad : {-1.f, NAN, 1.5f})
        EXPECT_THROW(fuzzy_simplicial_set(graph, {0, 1, bad, 1, 0}), InvalidArgument);
    for (const float bad : {-1.f, NAN, 0.f, INFINITY}) {
        EXPECT_THROW(fuzzy_simplicial_set(graph, {0, 1, 1, bad, 0}), InvalidArgument);
        EXPECT_THROW(mutual_reachability_graph(graph, {0, 3, bad, 0}), InvalidArgument);
    }
    for (const int bad : {0, -1, 7}) EXPECT_THROW(core_distances(graph, {0, bad, 1, 0}), InvalidArgument);
    EXPECT_THROW(mutual_reachability_graph(graph, {4, 5, 1, 0}), InvalidArgument);
    EXPECT_THROW(jaccard_graph(graph, {7, false, 0, 0}), InvalidArgument);
    EXPECT_THROW(fuzzy_simplicial_set(graph, {0, 1, 1, 1, -1}), InvalidArgument);
}

TEST_P(WeightsTest, AnInterruptEndsThem) {
    const KnnGraph graph = graph_with_distances(GetParam(), 500, 6);
    const Callbacks stop{{}, [] { return true; }, {}};
    EXPECT_THROW(jaccard_graph(graph, {}, stop), Interrupted);
    EXPECT_THROW(fuzzy_simplicial_set(graph, {}, stop), Interrupted);
    EXPECT_THROW(core_distances(graph, {}, stop), Interrupted);
    EXPECT_THROW(mutual_reachability_graph(graph, {}, stop), Interrupted);
}

/// The graph whose weights the packages have computed.
KnnGraph graph_of_packages() {
    KnnGraph graph(test::kObjects, test::kNeighbors, Metric::L1);  // distances as they are
    std::copy(std::begin(test::kIds), std::end(test::kIds), graph.ids());
    std::copy(std::begin(test::kDistances), std::end(test::kDistances), graph.distances());
    return graph;
}

template <std::size_t N>
Sparse both_ways(const test::Weight (&pairs)[N]) {
    Sparse rows(test::kObjects);
    for (const auto& [i, j, value] : pairs) rows[std::size_t(i)][j] = rows[std::size_t(j)][i] = value;
    return rows;
}

TEST(Weights, AreUmaps) {
    const KnnGraph graph = graph_of_packages();
    const auto expect_same = [&](float connectivity, float mix, const Sparse& expected) {
        SCOPED_TRACE(testing::Message() << "local_connectivity " << connectivity << ", set_op_mix_ratio " << mix);
        const Sparse made = sparse_of(fuzzy_simplicial_set(graph, {0, connectivity, mix, 1, 0}));
        expect_near(made, expected, 1e-4f);
        for (std::size_t i = 0; i < made.size(); ++i) EXPECT_EQ(made[i].size(), expected[i].size()) << i;
    };
    expect_same(1, 1, both_ways(test::kFuzzy1x1));
    expect_same(1, 0.5f, both_ways(test::kFuzzy1x0p5));
    expect_same(1, 0, both_ways(test::kFuzzy1x0));
    expect_same(2, 1, both_ways(test::kFuzzy2x1));
    expect_same(1.5f, 1, both_ways(test::kFuzzy1p5x1));
    expect_same(0, 1, both_ways(test::kFuzzy0x1));
    expect_same(0.3f, 1, both_ways(test::kFuzzy0p3x1));
}

TEST(Weights, AreHdbscans) {
    const KnnGraph graph = graph_of_packages();
    const auto made = [&](int min_samples, float alpha) {
        return sparse_of(mutual_reachability_graph(graph, {0, min_samples, alpha, 0}));
    };
    expect_near(made(3, 1), both_ways(test::kReachable3), 1e-6f);
    expect_near(made(5, 1), both_ways(test::kReachable5), 1e-6f);
    expect_near(made(2, 0.5f), both_ways(test::kReachable2), 1e-6f);
}

}  // namespace
}  // namespace gnnd

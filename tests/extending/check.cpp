// SPDX-License-Identifier: MIT
// Uses what the patches add, on the CPU, as any program would use it. Prints what is wrong; the exit code says whether
// anything was.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "gnnd/builder.h"
#include "gnnd/error.h"

namespace {

int wrong = 0;

void expect(bool right, const char* what) {
    if (!right) std::printf("check: not so: %s\n", what);
    wrong += !right;
}

constexpr std::int64_t kN = 3000, kD = 16;
constexpr int kK = 10;

double canberra(const float* a, const float* b) {
    double sum = 0;
    for (int c = 0; c < kD; ++c)
        if (const double size = std::abs(double(a[c])) + std::abs(double(b[c])); size > 0)
            sum += std::abs(double(a[c]) - double(b[c])) / size;
    return sum;
}

/// Objects along a path through space, so that numbers that follow each other are near; of both signs, some zeros.
std::vector<float> rows_along_a_path() {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> rows(kN * kD), at(kD);
    for (std::int64_t i = 0; i < kN; ++i)
        for (int c = 0; c < kD; ++c) {
            at[c] = 0.99f * at[c] + 0.1f * normal(random);
            rows[i * kD + c] = c == i % kD ? 0 : at[c];
        }
    return rows;
}

void check_metric(const std::vector<float>& rows, const gnnd::BuildParams& params) {
    const gnnd::KnnGraph graph = gnnd::build({rows.data(), kN, kD}, params).graph;
    int hits = 0, asked = 0;
    bool values = true;
    for (std::int64_t i = 0; i < kN; i += 10) {
        std::vector<double> all;
        for (std::int64_t j = 0; j < kN; ++j)
            if (j != i) all.push_back(canberra(&rows[i * kD], &rows[j * kD]));
        std::nth_element(all.begin(), all.begin() + kK - 1, all.end());
        for (int j = 0; j < kK; ++j) {
            const double value = canberra(&rows[i * kD], &rows[graph.ids_of(i)[j] * kD]);
            values &= std::abs(graph.distances_of(i)[j] - value) < 1e-5 * kD;
            hits += value <= all[kK - 1];
            ++asked;
        }
    }
    std::printf("check: Recall@10 under canberra: %.4f\n", double(hits) / asked);
    expect(hits > 0.95 * asked, "recall under canberra is above 0.95");
    expect(values, "distances are Canberra's");
}

void check_init(const std::vector<float>& rows, gnnd::BuildParams params) {
    params.init = gnnd::parse_init("following");
    params.iterations = 0;
    params.samples = params.list_size = kK;
    const gnnd::KnnGraph start = gnnd::build({rows.data(), kN, kD}, params).graph;
    bool next = true;
    for (std::int64_t i = 0; i < kN; ++i)
        for (int j = 0; j < kK; ++j) {
            const std::int64_t ahead = (start.ids_of(i)[j] - i + kN) % kN, behind = kN - ahead;
            next &= std::min(ahead, behind) <= 2 * kK;
        }
    expect(next, "without iterations the lists hold the objects that follow");
}

void check_param() {
    gnnd::BuildParams params;
    expect(params.patience == 3, "the new field has its default");
    params.patience = 10;
    try {
        params.validate();
        expect(false, "patience = 10 is refused");
    } catch (const gnnd::InvalidArgument& error) {
        expect(std::string_view(error.what()) == "BuildParams::patience = 10, allowed are 1 to 9", error.what());
    }
}

}  // namespace

int main() {
    const std::vector<float> rows = rows_along_a_path();
    gnnd::BuildParams params;
    params.k = kK;
    params.metric = gnnd::parse_metric("canberra");
    params.device = gnnd::Device::parse("cpu");
    check_metric(rows, params);
    check_init(rows, params);
    check_param();
    return wrong > 0;
}

// SPDX-License-Identifier: MIT
#include "gnnd/shards/partition.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>

#include "gnnd/cpu/parallel.h"
#include "gnnd/error.h"
#include "gnnd/random.h"

namespace gnnd::shards {
namespace {

float dot(const float* a, const float* b, std::int64_t d) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t c = 0; c < d; ++c) sum += a[c] * b[c];
    return sum;
}

/// More do not turn the planes any more.
constexpr int kRounds = 6;
/// Cells are told by 16 bits.
constexpr int kMostLevels = 16;

}  // namespace

Partition::Partition(const VectorView& sample, Metric metric, int levels, std::uint64_t seed, const cpu::Team& team)
    : d_(sample.d),
      levels_(levels),
      normalized_(is_normalized(metric)),
      planes_(((std::size_t(1) << levels) - 1) * std::size_t(sample.d + 1)) {
    std::vector<Ranked> objects(std::size_t(sample.n));
    for (std::int64_t i = 0; i < sample.n; ++i) objects[std::size_t(i)] = {0, std::int32_t(i)};
    std::vector<std::vector<float>> rows(std::size_t(team.threads), std::vector<float>(std::size_t(d_)));
    // Node j of a level with 2^l nodes holds [j n / 2^l, (j + 1) n / 2^l) of the sample.
    const auto bound = [&](int level, std::int64_t node) { return (node * sample.n) >> level; };
    for (int level = 0; level < levels; ++level)
        team.for_chunks(std::int64_t(1) << level, 1, [&](int thread, std::int64_t node, std::int64_t) {
            const std::int64_t from = bound(level, node);
            const int number = int((std::int64_t(1) << level) - 1 + node);
            split(sample, number, objects.data() + from, bound(level, node + 1) - from,
                  bound(level + 1, 2 * node + 1) - from, seed, rows[std::size_t(thread)]);
        });
}

Partition::Partition(std::int64_t d, Metric metric, std::vector<float> planes)
    : d_(d),
      levels_(std::bit_width(planes.size() / std::size_t(d + 1))),
      normalized_(is_normalized(metric)),
      planes_(std::move(planes)) {
    if (planes_.size() != ((std::size_t(1) << levels_) - 1) * std::size_t(d + 1) || levels_ > kMostLevels)
        throw InvalidArgument(std::to_string(planes_.size()) + " numbers, which are no planes of a partition of " +
                              std::to_string(d) + " components");
}

void Partition::read_row(const VectorView& vectors, std::int64_t i, float* row) const {
    copy_as_f32(vectors, i, 1, row);
    if (!normalized_) return;
    const float norm = std::sqrt(dot(row, row, d_));
    for (std::int64_t c = 0; c < d_; ++c) row[c] /= norm;
}

/// The lesser half along the node's normal first.
void Partition::rank(const VectorView& sample, int node, Ranked* objects, std::int64_t count, std::int64_t half,
                     std::vector<float>& row) const {
    for (std::int64_t i = 0; i < count; ++i) {
        read_row(sample, objects[i].id, row.data());
        objects[i].value = dot(normal(node), row.data(), d_);
    }
    std::nth_element(objects, objects + half, objects + count, [](const Ranked& a, const Ranked& b) {
        return a.value < b.value || (a.value == b.value && a.id < b.id);
    });
}

/// 2-means whose halves are of the same size: the normal leads from one mean to the other, and the median along it
/// divides. It starts from two objects.
void Partition::split(const VectorView& sample, int node, Ranked* objects, std::int64_t count, std::int64_t half,
                      std::uint64_t seed, std::vector<float>& row) {
    if (count < 2) return;  // all that comes goes to the right
    Random random(seed, std::uint64_t(node));
    const std::int64_t a = random.below(std::uint32_t(count));
    std::int64_t b = random.below(std::uint32_t(count - 1));
    b += b >= a;
    float* const normal = this->normal(node);
    const auto add = [&](std::int64_t i, float weight) {
        read_row(sample, objects[i].id, row.data());
        for (std::int64_t c = 0; c < d_; ++c) normal[c] += weight * row[std::size_t(c)];
    };
    add(a, 1);
    add(b, -1);
    for (int round = 0; round < kRounds; ++round) {
        rank(sample, node, objects, count, half, row);
        std::fill_n(normal, d_, 0.f);
        for (std::int64_t i = 0; i < count; ++i) add(i, i < half ? -1 / float(half) : 1 / float(count - half));
    }
    rank(sample, node, objects, count, half, row);
    threshold(node) = objects[half].value;
}

void Partition::find(const VectorView& vectors, std::uint16_t* cells, const cpu::Team& team) const {
    std::vector<std::vector<float>> rows(std::size_t(team.threads), std::vector<float>(std::size_t(d_)));
    team.for_chunks(vectors.n, 256, [&](int thread, std::int64_t begin, std::int64_t end) {
        float* const row = rows[std::size_t(thread)].data();
        for (std::int64_t i = begin; i < end; ++i) {
            read_row(vectors, i, row);
            int node = 0;
            for (int level = 0; level < levels_; ++level)
                node = 2 * node + 1 + (dot(normal(node), row, d_) >= threshold(node));
            cells[i] = std::uint16_t(node - (this->cells() - 1));
        }
    });
}

}  // namespace gnnd::shards

// SPDX-License-Identifier: MIT
#include "gnnd/io/detail/moved.h"

#include <algorithm>
#include <cmath>

#include "gnnd/io/detail/digits.h"
#include "gnnd/io/vector_file.h"
#include "gnnd/metric.h"

namespace gnnd::io::detail {
namespace {

constexpr std::int64_t kRowsByColumns = 64;  // of a sample: each of their numbers is read by itself

/// What conversions took from objects: d components of each.
std::vector<double> lost(const std::vector<std::int64_t>& objects, std::int64_t d, const std::vector<Stored>& sets) {
    std::vector<double> all(objects.size() * std::size_t(d));
    std::int64_t first = 0;
    for (const Stored& set : sets) {
        std::vector<std::int64_t> rows;
        std::vector<std::size_t> places;
        for (std::size_t i = 0; set.read && i < objects.size(); ++i) {
            if (objects[i] < first || objects[i] >= first + set.n) continue;
            rows.push_back(objects[i] - first);
            places.push_back(i);
        }
        std::vector<double> wide(rows.size() * std::size_t(d));
        if (!rows.empty()) set.read(rows, wide.data());
        for (std::size_t i = 0; i < wide.size(); ++i)
            all[places[i / std::size_t(d)] * std::size_t(d) + i % std::size_t(d)] = wide[i] - double(float(wide[i]));
        first += set.n;
    }
    return all;
}

/// The distance of two vectors, of l2 its root.
double length_of(Metric metric, const double* a, const double* b, std::int64_t d) {
    double sum = 0;
    for (std::int64_t c = 0; c < d; ++c) {
        const double by = std::fabs(a[c] - b[c]);
        sum = metric == Metric::Linf ? std::max(sum, by) : sum + (metric == Metric::L2 ? by * by : by);
    }
    return metric == Metric::L2 ? std::sqrt(sum) : sum;
}

}  // namespace

std::vector<Stored> stored(const std::vector<const VectorFile*>& files) {
    std::vector<Stored> sets;
    for (const VectorFile* file : files) {
        sets.push_back({file->path(), file->n(), {}, file->is_by_columns()});
        if (!file->is_wide()) continue;
        sets.back().read = [file](const std::vector<std::int64_t>& rows, double* out) {
            for (const std::int64_t row : rows) {
                file->read_wide(row, out);
                out += file->d();
            }
        };
    }
    return sets;
}

std::string moved_warning(const KnnGraphView& graph, const std::int32_t* objects, int at, std::int64_t d,
                          const std::vector<Stored>& sets) {
    constexpr double kTimes = 256;
    std::string names;
    std::int64_t step = digits_step(graph.n, d);
    for (const Stored& set : sets) {
        if (!set.read) continue;
        names += (names.empty() ? "" : " and ") + set.name;
        if (set.by_columns) step = std::max(step, graph.n / kRowsByColumns);
    }
    if (names.empty() || !is_translation_invariant(graph.metric)) return "";
    std::vector<std::int64_t> ones, others;
    std::vector<double> reaches;
    for (std::int64_t i = 0; i < graph.n; i += step) {
        const std::int64_t other = graph.ids_of(i)[at - 1];
        if (other < 0) continue;
        const double value = graph.distances_of(i)[at - 1];
        ones.push_back(objects != nullptr ? objects[i] : i);
        others.push_back(other);
        reaches.push_back(graph.metric == Metric::L2 ? std::sqrt(value) : value);
    }
    const std::vector<double> of_ones = lost(ones, d, sets), of_others = lost(others, d, sets);
    std::vector<double> moved;
    std::size_t far = 0;
    for (std::size_t i = 0; i < ones.size(); ++i) {
        const std::size_t row = i * std::size_t(d);
        moved.push_back(length_of(graph.metric, &of_ones[row], &of_others[row], d));
        far += moved[i] > 0 && kTimes * moved[i] >= reaches[i];
    }
    if (ones.empty() || 2 * far < ones.size()) return "";
    return "float32, in which vectors are compared, moves those of " + names + " by " + two_digits(median(moved)) +
           " against each other, and at least half of the objects have their neighbour " + std::to_string(at) +
           " within 256 times that; the recall does not tell of it. Subtract their mean before: it changes no l2, l1 "
           "and linf, and leaves more digits";
}

}  // namespace gnnd::io::detail

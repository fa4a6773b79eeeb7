// SPDX-License-Identifier: MIT
#include "gnnd/detail/unresolved.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "gnnd/device.h"
#include "gnnd/dtype.h"
#include "gnnd/metric.h"
#include "gnnd/vectors.h"

namespace gnnd::detail {
namespace {

std::vector<std::byte> components(const Input& input, std::int64_t object) {
    const int of = input.set_of(object);
    const VectorView& set = input.vectors[of];
    std::vector<std::byte> row(std::size_t(set.d) * size_of(set.dtype));
    copy_to_host({set.row(of == 0 ? object : object - input.vectors[0].n), 1, set.d, set.dtype, 0}, row.data());
    return row;
}

bool are_copies(const Input& input, std::int64_t a, std::int64_t b) {
    return components(input, a) == components(input, b);
}

/// The metric's value of two objects, one of l2 and ip, in float64, and what it would be without signs.
std::pair<double, double> sums_of_products(const Input& input, std::int64_t a, std::int64_t b, bool of_differences) {
    const std::vector<std::byte> first = components(input, a), second = components(input, b);
    return visit(input.dtype(), [&](auto component) {
        double sum = 0, sum_of_sizes = 0;
        for (std::size_t at = 0; at < first.size(); at += sizeof component) {
            const auto read = [&](const std::vector<std::byte>& row) {
                std::memcpy(&component, &row[at], sizeof component);
                if constexpr (std::is_arithmetic_v<decltype(component)>)
                    return double(component);
                else
                    return double(to_float(component));
            };
            const double x = read(first), y = read(second);
            const double product = of_differences ? (x - y) * (x - y) : x * y;
            sum += product;
            sum_of_sizes += std::abs(product);
        }
        return std::pair(sum, sum_of_sizes);
    });
}

/// True where a value of l2 or ip is another than float64 has, by more than 1/256, and it is so since products vanish:
/// of those that cancel each other it may be, too.
bool is_lost(const KnnGraphView& graph, float value, const Input& input, std::int64_t object, std::int32_t neighbour) {
    const auto [exact, sizes] = sums_of_products(input, object, neighbour, !is_similarity(graph.metric));
    const bool vanish = sizes < std::ldexp(double(input.d()), -120);  // 2^29 times the least number each
    return vanish && std::abs(value - exact) > std::ldexp(std::abs(exact), -8);
}

}  // namespace

double unresolved_share(const KnnGraphView& graph, const std::int32_t* objects, int at, const Input& input) {
    constexpr std::int64_t kRows = 1000;
    const auto d = double(input.d());
    const bool cosines = is_normalized(graph.metric);
    if (!is_product(graph.metric) || (cosines && d == 1) || graph.n == 0) return 0;
    // What a look at a graph on a GPU takes was not measured, and builds of few vectors take a millisecond there.
    if (!cosines && device_of(graph.distances) >= 0) return 0;
    const std::int64_t step = std::max<std::int64_t>(1, graph.n / kRows), count = (graph.n + step - 1) / step;
    // Every step-th entry of the column, as vectors of one component.
    const std::int64_t stride = step * graph.k * std::int64_t(sizeof(float));
    std::vector<float> values(count);
    copy_to_host({graph.distances + at - 1, count, 1, DType::f32, stride}, values.data());
    const double limit =
        cosines ? float(best_value(graph.metric) - std::ldexp(std::sqrt(d), -16)) : std::ldexp(std::sqrt(d), -141);
    std::vector<std::int64_t> near;
    for (std::int64_t i = 0; i < count; ++i)
        if (cosines ? values[i] > limit : std::abs(values[i]) < limit) near.push_back(i);
    if (near.empty()) return 0;
    std::vector<std::int32_t> ids(count);
    copy_to_host({graph.ids + at - 1, count, 1, DType::i32, stride}, ids.data());
    // Of products the vectors of few are fetched, which takes a GPU long: ties at 0 are frequent among sparse ones.
    constexpr std::size_t kLooked = 16;
    const std::size_t looked = cosines ? near.size() : std::min(kLooked, near.size());
    std::size_t lost = 0;
    for (std::size_t one = 0; one < looked; ++one) {
        const std::int64_t i = near[one * near.size() / looked];
        const std::int64_t object = objects != nullptr ? objects[i * step] : i * step;
        if (cosines)
            lost += !are_copies(input, object, ids[i]);
        else
            lost += ids[i] >= 0 && is_lost(graph, values[i], input, object, ids[i]);
    }
    return double(lost * near.size()) / double(looked * count);
}

}  // namespace gnnd::detail

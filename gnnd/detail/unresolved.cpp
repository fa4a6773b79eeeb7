// SPDX-License-Identifier: MIT
#include "gnnd/detail/unresolved.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "gnnd/device.h"
#include "gnnd/dtype.h"
#include "gnnd/metric.h"
#include "gnnd/vectors.h"

namespace gnnd::detail {
namespace {

bool are_copies(const Input& input, std::int64_t a, std::int64_t b) {
    const auto components = [&](std::int64_t object) {
        const int of = input.set_of(object);
        const VectorView& set = input.vectors[of];
        std::vector<std::byte> row(std::size_t(set.d) * size_of(set.dtype));
        copy_to_host({set.row(of == 0 ? object : object - input.vectors[0].n), 1, set.d, set.dtype, 0}, row.data());
        return row;
    };
    return components(a) == components(b);
}

}  // namespace

double unresolved_share(const KnnGraphView& graph, const std::int32_t* objects, int at, const Input& input) {
    constexpr std::int64_t kRows = 1000;
    const auto d = double(input.d());
    if (!visit(graph.metric, [](auto m) { return m.normalized; }) || d == 1 || graph.n == 0) return 0;
    const std::int64_t step = std::max<std::int64_t>(1, graph.n / kRows), count = (graph.n + step - 1) / step;
    std::vector<float> values(count);
    std::vector<std::int32_t> ids(count);
    // Every step-th entry of the column, as vectors of one component.
    const std::int64_t stride = step * graph.k * std::int64_t(sizeof(float));
    copy_to_host({graph.distances + at - 1, count, 1, DType::f32, stride}, values.data());
    copy_to_host({graph.ids + at - 1, count, 1, DType::i32, stride}, ids.data());
    const float limit = float(best_value(graph.metric) - std::ldexp(std::sqrt(d), -16));
    std::int64_t near = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t object = objects != nullptr ? objects[i * step] : i * step;
        near += values[i] > limit && !are_copies(input, object, ids[i]);
    }
    return double(near) / double(count);
}

}  // namespace gnnd::detail

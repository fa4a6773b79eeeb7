// SPDX-License-Identifier: MIT
#include "gnnd/detail/unresolved.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gnnd/device.h"
#include "gnnd/metric.h"
#include "gnnd/vectors.h"

namespace gnnd::detail {

double unresolved_share(const KnnGraphView& graph, int at, std::int64_t d) {
    constexpr std::int64_t kObjects = 1000;
    if (!visit(graph.metric, [](auto m) { return m.normalized; }) || d == 1 || graph.n == 0) return 0;
    const std::int64_t step = std::max<std::int64_t>(1, graph.n / kObjects), count = (graph.n + step - 1) / step;
    // Every step-th entry of the column, as vectors of one component.
    const VectorView entries{graph.distances + at - 1, count, 1, DType::f32,
                             step * graph.k * std::int64_t(sizeof(float))};
    std::vector<float> values(count);
    copy_to_host(entries, values.data());
    const float limit = float(best_value(graph.metric) - std::ldexp(std::sqrt(double(d)), -16));
    const auto near = std::count_if(values.begin(), values.end(), [limit](float value) { return value > limit; });
    return double(near) / double(count);
}

}  // namespace gnnd::detail

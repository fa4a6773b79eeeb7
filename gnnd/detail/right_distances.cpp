// SPDX-License-Identifier: MIT
#include "gnnd/detail/right_distances.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gnnd/builder.h"
#include "gnnd/error.h"

namespace gnnd::detail {

void check_distances(const KnnGraphView& graph, const std::string& of, const VectorView& vectors,
                     const std::string& in) {
    constexpr std::int64_t kRows = 1000, kFewest = 16, kBytes = std::int64_t(1) << 26;
    const std::size_t bytes = std::size_t(vectors.d) * size_of(vectors.dtype);
    std::vector<std::byte> rows;  // an object and its nearest, side by side: what else there is takes time to prepare
    std::vector<float> stored;
    const auto take = [&](std::int64_t object) {
        rows.resize(rows.size() + bytes);
        std::memcpy(rows.data() + rows.size() - bytes, vectors.row(object), bytes);
    };
    const std::int64_t tried = std::min({graph.n, kRows, std::max(kFewest, kBytes / std::int64_t(bytes))});
    for (std::int64_t r = 0; r < tried; ++r) {
        const std::int64_t i = r * graph.n / tried;
        const std::int32_t nearest = graph.ids_of(i)[0];
        if (nearest < 0 || nearest >= graph.n) continue;  // an empty row, or one that is refused elsewhere
        take(i);
        take(nearest);
        stored.push_back(graph.distances_of(i)[0]);
    }
    const auto count = std::int64_t(stored.size());
    if (count == 0) return;
    std::vector<std::int32_t> objects, others;
    for (std::int32_t r = 0; r < count; ++r) {
        objects.push_back(2 * r);
        others.push_back(2 * r + 1);
    }
    std::vector<float> computed(stored.size());
    pair_distances({rows.data(), 2 * count, vectors.d, vectors.dtype, 0}, graph.metric, objects.data(), others.data(),
                   count, computed.data());
    std::int64_t same = 0;
    for (std::size_t r = 0; r < stored.size(); ++r)
        same += stored[r] == computed[r] || std::abs(stored[r] - computed[r]) <= 0.01f * std::abs(computed[r]);
    if (2 * same < count)
        throw InvalidArgument(of + ": its distances are not those of the vectors in " + in + ": of " +
                              std::to_string(count) + " compared " + std::to_string(same) + " agree");
}

}  // namespace gnnd::detail

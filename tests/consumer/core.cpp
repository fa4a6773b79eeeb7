// SPDX-License-Identifier: MIT
// Builds a graph of points on a line, whose neighbours are known, without FAISS.
#include <gnnd/builder.h>
#include <gnnd/io/graph_file.h>
#include <gnnd/io/vector_file.h>
#include <gnnd/version.h>

#include <cstdio>
#include <vector>

#if __has_include(<gnnd/names.h>) || __has_include(<gnnd/detail/checks.h>) || __has_include(<tests/invariants.h>)
#error "A private header of the library is in reach"
#endif

int main() {
    constexpr int kN = 1000;
    std::vector<float> points(kN);
    for (int i = 0; i < kN; ++i) points[i] = float(i);
    gnnd::BuildParams params;
    params.k = 2;
    const gnnd::BuildResult result = gnnd::build({points.data(), kN, 1}, params);
    const std::int32_t* neighbors = result.graph.ids_of(kN / 2);
    std::printf("gnnd %s, neighbours of %d: %d %d\n", GNND_VERSION_STRING, kN / 2, neighbors[0], neighbors[1]);
    return neighbors[0] == kN / 2 - 1 && neighbors[1] == kN / 2 + 1 ? 0 : 1;
}

#include "gnnd/merge.h"

#include <string>

#include "gnnd/detail/checks.h"
#include "gnnd/detail/input.h"
#include "gnnd/detail/run.h"
#include "gnnd/device.h"
#include "gnnd/error.h"

namespace gnnd {
namespace {

void check_set(const char* which, const VectorView& vectors, const KnnGraphView& graph, const BuildParams& params) {
    const auto refuse = [&](const std::string& what) { throw InvalidArgument(std::string("merge: ") + which + what); };
    if (vectors.n < 0) refuse(" vectors: n = " + std::to_string(vectors.n));
    if (graph.n != vectors.n)
        refuse(" graph has " + std::to_string(graph.n) + " objects, its vectors are " + std::to_string(vectors.n));
    if (vectors.n == 0) return;
    if (graph.metric != params.metric)
        refuse(" graph was made under " + std::string(name_of(graph.metric)) + ", asked for is " +
               std::string(name_of(params.metric)));
    if (graph.ids == nullptr || graph.distances == nullptr) refuse(" graph's arrays are null pointers");
    if (device_of(graph.ids) != device_of(graph.distances))
        refuse(" graph's ids and distances lie in different memories");
    detail::check_k(graph.k);
    detail::check_shape(vectors, 1);
}

/// What runs: both sets, or the only one that has objects, whose graph needs no work unless columns are missing.
struct Merge {
    Merge(const VectorView& x1, const KnnGraphView& g1, const VectorView& x2, const KnnGraphView& g2,
          const BuildParams& given)
        : params(given) {
        params.validate();
        check_set("the first", x1, g1, params);
        check_set("the second", x2, g2, params);
        if (x1.n + x2.n == 0) throw InvalidArgument("merge: both sets are empty");
        if (x1.n != 0 && x2.n != 0) {
            if (x1.d != x2.d || x1.dtype != x2.dtype)
                throw InvalidArgument("merge: vectors of " + std::to_string(x1.d) + " " +
                                      std::string(name_of(x1.dtype)) + " and of " + std::to_string(x2.d) + " " +
                                      std::string(name_of(x2.dtype)));
            input = {{x1, x2}, {g1, g2}};
            return;
        }
        input = x1.n != 0 ? detail::Input{{x1}, {g1}} : detail::Input{{x2}, {g2}};
        if (params.k <= input.graphs[0].k) params.iterations = 0;
    }
    detail::Input input;
    BuildParams params;
};

}  // namespace

BuildResult merge(const VectorView& x1, const KnnGraphView& g1, const VectorView& x2, const KnnGraphView& g2,
                  const BuildParams& params, const Callbacks& callbacks, Resources* resources) {
    const Merge merge(x1, g1, x2, g2, params);
    return detail::run(merge.input, merge.params, callbacks, resources);
}

BuildStats merge_into(const VectorView& x1, const KnnGraphView& g1, const VectorView& x2, const KnnGraphView& g2,
                      const BuildParams& params, std::int32_t* ids, float* distances, const Callbacks& callbacks,
                      Resources* resources) {
    const Merge merge(x1, g1, x2, g2, params);
    return detail::run_into("merge_into", merge.input, merge.params, ids, distances, callbacks, resources);
}

int merge_columns(const BuildParams& params) {
    KnnGraphView graph;
    graph.k = params.k;
    return int(detail::kept_columns(graph, params));
}

}  // namespace gnnd

// SPDX-License-Identifier: MIT
// Each form of numbers that a comparison of all pairs can use, against the host. Without a GPU all of it is skipped.
#include <gtest/gtest.h>

#include "gnnd/builder.h"
#include "gnnd/cuda/sweep/sweep.h"
#include "gnnd/cuda/sweep/swept_set.h"
#include "tests/cuda_lists.h"
#include "tests/gpu.h"
#include "tests/invariants.h"
#include "tests/reference.h"

namespace gnnd::cuda {
namespace {

/// The graph made exact in this form.
KnnGraph exact_in(SweepForm form, const VectorView& vectors, const KnnGraph& start) {
    const std::int64_t n = start.n(), k = start.k();
    const test::OnDevice<std::int32_t> ids(std::size_t(n * k), start.ids());
    const test::OnDevice<float> distances(std::size_t(n * k), start.distances()), bounds(std::size_t(n), nullptr);
    const Lists lists{.ids = reinterpret_cast<u32*>(ids.get()),
                      .distances = distances.get(),
                      .bounds = bounds.get(),
                      .length = int(k),
                      .segments = 1};
    HeapResources heap;
    const OwnedStream stream(heap);
    const detail::Input input{{vectors, {}}, {}};
    const SweptSet set(input, start.metric(), heap, stream);
    SweepSpace space = set.space();
    space.spare = std::size_t(1) << 30;
    open_graph(start.metric(), lists, n, stream);
    {
        Sweep sweep(space, int(k), heap, stream);
        sweep.make_exact(lists, form, {});
        EXPECT_EQ(int(sweep.form()), int(form));
    }
    close_graph(start.metric(), lists, n, stream);
    GNND_CUDA(cudaStreamSynchronize(stream));
    KnnGraph graph(n, k, start.metric());
    GNND_CUDA(cudaMemcpy(graph.ids(), ids.get(), std::size_t(n * k) * 4, cudaMemcpyDeviceToHost));
    GNND_CUDA(cudaMemcpy(graph.distances(), distances.get(), std::size_t(n * k) * 4, cudaMemcpyDeviceToHost));
    return graph;
}

TEST(CudaKernelSweep, IsExactInEveryForm) {
    SKIP_WITHOUT_GPU();
    // Rows of one tile, of some that stay in shared memory, and of some that do not.
    for (const std::int64_t d : {20, 100, 700})
        for (const Metric metric : {Metric::L2, Metric::InnerProduct, Metric::Cosine}) {
            const test::Vectors vectors = test::vectors_for(metric, 3000, d, DType::f32);
            BuildParams params = test::converging(test::gpu_params(10, metric));
            params.iterations = 1;
            const KnnGraph start = build(vectors, params).graph;
            const test::Truth truth(vectors, metric);
            for (const SweepForm form : {SweepForm::halves, SweepForm::split, SweepForm::floats}) {
                SCOPED_TRACE(testing::Message() << name_of(metric) << ", d = " << d << ", form " << int(form));
                const KnnGraph graph = exact_in(form, vectors, start);
                test::expect_valid_graph(graph, vectors);
                EXPECT_GE(truth.recall_of(graph), 0.9995);  // float32 may take two for equally far
            }
        }
}

}  // namespace
}  // namespace gnnd::cuda

// SPDX-License-Identifier: MIT
// Graphs of the vectors that indexes of FAISS hold on a GPU.
#include <faiss/IndexFlat.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexIVFPQ.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexScalarQuantizer.h>
#include <faiss/VectorTransform.h>
#include <faiss/gpu/GpuIndexIVFFlat.h>
#include <faiss/gpu/GpuIndexIVFPQ.h>
#include <faiss/gpu/GpuIndexIVFScalarQuantizer.h>

#include <memory>
#include <numeric>

#include "faiss_ext/evaluate.h"
#include "tests/faiss_gpu.h"

namespace gnnd::test {
namespace {

class FaissGpuIndexes : public FaissGpu {
  protected:
    /// The source's vectors, on the host, as float32.
    static std::vector<float> read(const VectorSource& source) {
        const gnnd::VectorView& x = source.on_host();
        std::vector<float> read(x.n * x.d);
        gnnd::copy_as_f32(x, 0, x.n, read.data());
        return read;
    }
    std::vector<idx_t> own_ids() const {
        std::vector<idx_t> ids(kRows);
        for (idx_t i = 0; i < kRows; ++i) ids[i] = 7 * (kRows - i);
        return ids;
    }
    /// A graph of the index is right, and the index afterwards as before.
    void expect_graph(const faiss::Index& index, const VectorSource& source) {
        std::vector<float> distances(20), again(20);
        std::vector<idx_t> labels(20), labels_again(20);
        index.search(4, rows.data(), 5, distances.data(), labels.data());
        const gnnd::KnnGraph graph = builder().build(source, 10);
        expect_valid_graph(graph, source.on_host());
        EXPECT_GT(faiss_ext::recall(source, graph, 10, 0, 1, gpu()).value, 0.97);
        index.search(4, rows.data(), 5, again.data(), labels_again.data());
        EXPECT_EQ(distances, again);
        EXPECT_EQ(labels, labels_again);
        EXPECT_EQ(index.ntotal, kRows);
    }
};

TEST_F(FaissGpuIndexes, FlatIsReadInPlace) {
    for (const bool float16 : {false, true})
        for (const auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            faiss::gpu::GpuIndexFlatConfig config;
            config.useFloat16 = float16;
            faiss::gpu::GpuIndexFlat index(&*resources, kDim, metric, config);
            index.add(kRows, rows.data());
            const VectorSource source(&index);
            EXPECT_EQ(source.device(), 0);
            EXPECT_EQ(source.vectors().dtype, float16 ? DType::f16 : DType::f32);
            const std::size_t free = driver_free();
            EXPECT_EQ(VectorSource(&index).vectors().data, source.vectors().data);
            EXPECT_EQ(driver_free(), free);
            std::vector<float> expected(kRows * kDim);
            index.reconstruct_n(0, kRows, expected.data());
            EXPECT_EQ(read(source), expected);
            EXPECT_TRUE(source.ids().empty());
            expect_graph(index, source);
        }
}

TEST_F(FaissGpuIndexes, WrappedOnesKeepTheirIds) {
    faiss::gpu::GpuIndexFlatL2 flat(&*resources, kDim);
    faiss::IndexIDMap map(&flat);
    const std::vector<idx_t> ids = own_ids();
    map.add_with_ids(kRows, rows.data(), ids.data());
    const VectorSource source(&map);
    EXPECT_EQ(source.device(), 0);
    EXPECT_EQ(source.ids(), ids);
    EXPECT_EQ(read(source), rows);
    expect_graph(map, source);

    faiss::gpu::GpuIndexFlatL2 inner(&*resources, kDim);
    faiss::RandomRotationMatrix rotation(kDim, kDim);
    rotation.init(3);
    faiss::IndexPreTransform rotated(&rotation, &inner);
    rotated.add(kRows, rows.data());
    const VectorSource in_its_space(&rotated);
    EXPECT_EQ(in_its_space.device(), 0);
    std::unique_ptr<const float[]> expected(rotation.apply(kRows, rows.data()));
    const std::vector<float> got = read(in_its_space);
    for (idx_t i = 0; i < kRows * kDim; ++i) ASSERT_FLOAT_EQ(got[i], expected[i]);
    expect_graph(rotated, in_its_space);
}

/// Expects the rows that the CPU's index of the same kind decodes, in the order of the ids.
template <class GpuIndex>
void expect_same_rows(const GpuIndex& index, const faiss::IndexIVF& cpu, const std::vector<float>& got,
                      const VectorSource& source) {
    const VectorSource expected(&cpu);
    std::vector<float> rows(kRows * kDim);
    gnnd::copy_as_f32(expected.vectors(), 0, kRows, rows.data());
    EXPECT_EQ(got, rows);
    EXPECT_EQ(source.ids(), expected.ids());
    EXPECT_EQ(index.ntotal, kRows);
}

TEST_F(FaissGpuIndexes, InvertedListsAreReadInTheOrderOfTheIds) {
    const std::vector<idx_t> ids = own_ids();
    const auto fill = [&](faiss::Index& index) {
        index.train(kRows, rows.data());
        index.add_with_ids(kRows, rows.data(), ids.data());
    };
    std::vector<idx_t> sorted = ids;
    std::sort(sorted.begin(), sorted.end());
    {
        faiss::gpu::GpuIndexIVFFlat index(&*resources, kDim, 20, faiss::METRIC_L2);
        fill(index);
        const VectorSource source(&index);
        EXPECT_EQ(source.ids(), sorted);
        const std::vector<float> got = read(source);
        for (idx_t i = 0; i < kRows; ++i)
            ASSERT_TRUE(std::equal(rows.end() - (i + 1) * kDim, rows.end() - i * kDim, got.begin() + i * kDim)) << i;
        faiss::IndexFlatL2 quantizer(kDim);
        faiss::IndexIVFFlat cpu(&quantizer, kDim, 20);
        index.copyTo(&cpu);
        expect_same_rows(index, cpu, got, source);
        index.nprobe = 20;
        expect_graph(index, source);
    }
    {
        faiss::gpu::GpuIndexIVFScalarQuantizer index(&*resources, kDim, 20, faiss::ScalarQuantizer::QT_8bit);
        fill(index);
        const VectorSource source(&index);
        EXPECT_EQ(source.ids(), sorted);
        faiss::IndexFlatL2 quantizer(kDim);
        faiss::IndexIVFScalarQuantizer cpu(&quantizer, kDim, 20, faiss::ScalarQuantizer::QT_8bit);
        index.copyTo(&cpu);
        expect_same_rows(index, cpu, read(source), source);
        expect_graph(index, source);
    }
    {
        faiss::gpu::GpuIndexIVFPQ index(&*resources, kDim, 20, 8, 8, faiss::METRIC_L2);
        fill(index);
        const VectorSource source(&index);
        EXPECT_EQ(source.ids(), sorted);
        faiss::IndexFlatL2 quantizer(kDim);
        faiss::IndexIVFPQ cpu(&quantizer, kDim, 20, 8, 8);
        index.copyTo(&cpu);
        expect_same_rows(index, cpu, read(source), source);
        const gnnd::KnnGraph graph = builder().build(source, 10);
        expect_valid_graph(graph, source.on_host());
    }
}

TEST_F(FaissGpuIndexes, RefusesIndexesWithoutVectors) {
    faiss::gpu::GpuIndexFlatL2 empty(&*resources, kDim);
    expect_faiss_error("GpuIndexFlatL2 is empty", [&] { VectorSource{&empty}; });
    empty.add(1, rows.data());
    const VectorSource one(&empty);
    GnndGraphBuilder gnnd = builder();
    expect_faiss_error("1 vectors", [&] { gnnd.build(one, 5); });
    expect_faiss_error("1 vectors", [&] { ExactGraphBuilder(gpu()).build(one, 5); });

    faiss::gpu::GpuIndexIVFFlat untrained(&*resources, kDim, 20, faiss::METRIC_L2);
    expect_faiss_error("not trained", [&] { VectorSource{&untrained}; });
    faiss::gpu::GpuIndexIVFFlatConfig config;
    config.indicesOptions = faiss::gpu::INDICES_IVF;
    faiss::gpu::GpuIndexIVFFlat without_ids(&*resources, kDim, 20, faiss::METRIC_L2, config);
    without_ids.train(kRows, rows.data());
    without_ids.add(kRows, rows.data());
    expect_faiss_error("GpuIndexIVFFlat", [&] { VectorSource{&without_ids}; });

    faiss::gpu::GpuIndexFlat canberra(&*resources, kDim, faiss::METRIC_Canberra);
    canberra.add(kRows, rows.data());
    expect_faiss_error("metric", [&] { VectorSource{&canberra}; });
}

}  // namespace
}  // namespace gnnd::test

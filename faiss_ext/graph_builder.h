// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file graph_builder.h
/// One interface for everything that makes a k-NN graph, so that a benchmark loops over GNND and its baselines.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "faiss_ext/gpu.h"
#include "faiss_ext/options.h"
#include "faiss_ext/vector_source.h"
#include "gnnd/builder.h"

namespace gnnd::detail {
struct AppendedRows;
class DeviceGraph;
}  // namespace gnnd::detail

namespace faiss_ext {

template <class FaissIndex>
class GnndIndex;
namespace detail {
struct IvfpqShape;
}

/// One step of a build.
struct StepTime {
    std::string step;  ///< its name, for instance "train"
    double seconds;    ///< wall time
};

/// Builds the k-NN graph of a set of vectors. All builders give graphs that follow the invariants of gnnd/graph.h:
/// distances are the metric's own values even where the search that found the neighbours was approximate.
class GraphBuilder {
  public:
    virtual ~GraphBuilder() = default;
    /// \param source  at least 2 vectors, finite, not zero under cosine
    /// \param k       neighbours per object, 1 to gnnd::kMaxK; rows are padded with -1 where n - 1 < k
    /// \throws faiss::FaissException. faiss::InterruptCallback is honoured ("computation interrupted").
    virtual gnnd::KnnGraph build(const VectorSource& source, int k) = 0;
    /// As in graph_builder_types().
    virtual std::string name() const = 0;

    bool verbose = false;          ///< print progress to standard output, as FAISS's indexes do
    std::vector<StepTime> timing;  ///< the steps of the last build(), for instance train, add, search
    bool on_gpu = false;           ///< whether the last build() ran there
};

/// gnnd's parameters without those that come from elsewhere: k and the metric, which build() is given. `device` says
/// where to run, with FAISS's resources too, and GraphBuilder::verbose what is printed.
struct GnndParams : gnnd::BuildParams {
  private:
    using BuildParams::k;
    using BuildParams::metric;
};

/// GNND itself.
class GnndGraphBuilder : public GraphBuilder {
  public:
    /// On the CPU or a GPU, as params.device says, with memory of its own; where that is `auto` and the source lies on
    /// a GPU, there.
    explicit GnndGraphBuilder(const GnndParams& params = {}) : params(params) {}
    /// On a GPU, with FAISS's resources: see FaissResources for what is taken from where. The device `auto` is GPU 0.
    /// \throws faiss::FaissException for null resources or a device that does not exist; build() does so for a device
    ///         that is set to the CPU
    explicit GnndGraphBuilder(faiss::gpu::GpuResourcesProvider* resources, const GnndParams& params = {});
    /// One of the same parameters, callbacks and device.
    GnndGraphBuilder(const GnndGraphBuilder& other);
    /// The same.
    GnndGraphBuilder& operator=(const GnndGraphBuilder& other);
    ~GnndGraphBuilder() override;
    gnnd::KnnGraph build(const VectorSource& source, int k) override;
    /// The same into arrays of n x k, on the host or on the GPU where it runs.
    /// \throws as build(); the arrays' content is undefined then
    void build_into(const VectorSource& source, int k, std::int32_t* ids, float* distances);
    /// A graph over the same vectors, of any k, made better: gnnd::refine().
    /// \throws as build(), also where the graph is not one of these vectors
    gnnd::KnnGraph refine(const VectorSource& source, const gnnd::KnnGraphView& graph, int k);
    /// The graph of a source and of vectors added to it: gnnd::append(). Both sources are of one metric.
    /// \param graph       of the source
    /// \param unmeasured  so many of its last vectors are measured as added, see there
    /// \return (n + added's n) x k; object j of `added` becomes n + j
    /// \throws as build(), also for sources of two metrics and a graph that is not the source's
    gnnd::KnnGraph append(const VectorSource& source, const gnnd::KnnGraphView& graph, const VectorSource& added, int k,
                          idx_t unmeasured = 0);
    /// Two sources' graphs become one: gnnd::merge(). Both sources are of one metric.
    /// \return (n1 + n2) x k; object j of the second source becomes n1 + j
    /// \throws as build(), also for sources of two metrics and a graph that is not its source's
    gnnd::KnnGraph merge(const VectorSource& first, const gnnd::KnnGraphView& graph1, const VectorSource& second,
                         const gnnd::KnnGraphView& graph2, int k);
    /// From here on with these resources of FAISS, as by the constructor; null: with memory of its own.
    /// \throws faiss::FaissException as the constructor
    void use(faiss::gpu::GpuResourcesProvider* resources);
    /// Of the GPU that it was given FAISS's resources for; null: none, gnnd's own memory.
    gnnd::Resources* resources() const { return resources_.get(); }
    /// "gnnd", and "exhaustive" where params.recall is 1.
    std::string name() const override { return params.recall == 1 ? "exhaustive" : "gnnd"; }

    GnndParams params;          ///< of the next build()
    gnnd::Callbacks callbacks;  ///< called beside faiss::InterruptCallback
    gnnd::BuildStats stats;     ///< of the last build()

  private:
    template <class FaissIndex>
    friend class GnndIndex;

    /// The rows that append() to a graph on the CPU changes, see gnnd/detail/append_rows.h; params.recall is not looked
    /// at.
    /// \param source  the graph's vectors and those added
    gnnd::detail::AppendedRows append_rows(const VectorSource& source, const gnnd::KnnGraphView& graph);
    /// The device of the next call, given vectors in host memory. \throws gnnd::Unavailable
    gnnd::Device place() const;
    /// build(), merge() and append() in the memory of that place, a GPU, see gnnd/detail/device_graph.h.
    void build_on(gnnd::detail::DeviceGraph& graph, const VectorSource& source, int k);
    void merge_on(gnnd::detail::DeviceGraph& graph, const VectorSource& first, const gnnd::KnnGraphView& graph1,
                  const VectorSource& second, const gnnd::KnnGraphView& graph2, int k);
    void append_on(gnnd::detail::DeviceGraph& graph, const VectorSource& added, int k, idx_t unmeasured);
    template <class Build>
    void run(const VectorSource& source, int k, const Build& build);
    template <class Make>
    gnnd::KnnGraph make(const VectorSource& source, int k, const Make& make);
    /// Makes resources_ for the GPU that params.device names.
    void take_resources();

    faiss::gpu::GpuResourcesProvider* provider_ = nullptr;  // null: gnnd's own memory
    std::unique_ptr<gnnd::Resources> resources_;
    int device_ = -1;  // the one that resources_ are for
};

/// Exact ground truth: FAISS flat search in batches, some more than k asked for, self dropped, distances computed anew
/// and put in order. FAISS expands |x-y|^2, which rounds when vectors are long and distances short: rows where the
/// rounding seen could have changed the neighbours are searched again by gnnd::exact_neighbors.
/// Cosine searches normalised vectors by inner product; chi2, which FAISS does not have, goes through
/// gnnd::exact_neighbors. Vectors that are not contiguous float32 rows are copied (4 n d bytes; on a GPU in parts where
/// they do not fit, all parts for every batch).
class ExactGraphBuilder : public GraphBuilder {
  public:
    /// Searches on the CPU, or where `gpu` says.
    explicit ExactGraphBuilder(const Gpu& gpu = {}) : gpu(gpu) {}
    gnnd::KnnGraph build(const VectorSource& source, int k) override;
    std::string name() const override { return "exact"; }

    /// Rows for some of the objects only; row i of the result belongs to objects[i].
    /// \throws faiss::FaissException, also when an object is not in [0, n)
    gnnd::KnnGraph search(const VectorSource& source, const std::vector<std::int32_t>& objects, int k);

    Gpu gpu;  ///< where to search; without resources on the CPU
    /// Queries per call into FAISS; 0: 4096, since its matrix products take so many at once. On a GPU at most 65536
    /// (what 0 means there), or 256 MiB of them.
    idx_t batch = 0;
    std::int64_t device_memory = 0;  ///< most bytes of vectors to copy to the GPU at a time; 0: 70% of what is free
};

/// Parameters of IvfpqGraphBuilder.
struct IvfpqParams {
    idx_t nlist = 0;      ///< coarse centroids; 0: 4 sqrt(n), at most 65536 (the paper's 2^16). At most n / 39, FAISS's
                          ///< least number of training points a centroid, and at least 1
    int code_bytes = 32;  ///< as in the paper; lowered to the largest divisor of d that is not above. 8 bits a code, or
                          ///< fewer when there are fewer than 256 vectors (which a GPU leaves to the CPU). On a GPU to
                          ///< one that FAISS has there, at most 96
    int nprobe = 32;      ///< lists visited per query; on a GPU at most 2048
    /// Training vectors of each coarse centroid at most; FAISS asks for 39 to 256. With 2^16 centroids of 10,000,000
    /// vectors training takes 137 of 177 s on an H200.
    int points_per_centroid = 256;
    std::uint64_t seed = 1234;  ///< of the training sample, the clustering and what fills short rows
};

/// The paper's baseline: every object searches an IVFPQ index of all of them. L2 and inner product. Where the lists
/// visited hold fewer than k others, the row is filled with random objects (their distances are true ones).
class IvfpqGraphBuilder : public GraphBuilder {
  public:
    /// Trains and searches on the CPU, or where `gpu` says.
    explicit IvfpqGraphBuilder(const IvfpqParams& params = {}, const Gpu& gpu = {}) : params(params), gpu(gpu) {}
    gnnd::KnnGraph build(const VectorSource& source, int k) override;
    std::string name() const override { return "ivfpq"; }

    IvfpqParams params;  ///< of the next build()
    Gpu gpu;             ///< where to train and search; without resources on the CPU
    /// The index stays, and the next build() of the same vectors, unchanged, by params that differ in nprobe alone
    /// searches it again. `timing` tells then what training and adding took when it was made. For comparing nprobe.
    bool keep_index = false;

  private:
    struct Filled;
    std::shared_ptr<const Filled> fill(const VectorSource& source, const detail::IvfpqShape& shape, int bits) const;
    std::shared_ptr<const Filled> filled_;
};

/// Parameters of NNDescentGraphBuilder.
struct NNDescentParams {
    int S = 10;                 ///< samples per list, as faiss::nndescent::NNDescent's; at least 2
    int R = 100;                ///< reverse neighbours per list, at least 2
    int L = 0;                  ///< length of the lists, at least k and S; 0 stands for k + 50
    int iterations = 10;        ///< how many, at least 0; all of them are run
    std::uint64_t seed = 1234;  ///< of all sampling
};

/// FAISS's own NN-Descent on the CPU, for every metric but chi2 (cosine as inner product of normalised vectors). FAISS
/// draws 2 S distinct random objects a list: sets of no more than 2 S + 1 are searched exactly instead.
class NNDescentGraphBuilder : public GraphBuilder {
  public:
    /// Runs on the CPU.
    explicit NNDescentGraphBuilder(const NNDescentParams& params = {}) : params(params) {}
    gnnd::KnnGraph build(const VectorSource& source, int k) override;
    std::string name() const override { return "nndescent"; }

    NNDescentParams params;  ///< of the next build()
};

/// A kind of builder, by name. `make` gives one with these values of its options, on a GPU where one is given.
using GraphBuilderType = Choice<std::function<std::unique_ptr<GraphBuilder>(const OptionValues&, const Gpu&)>>;

/// All of them, gnnd first. What programs offer, and what they say of it, follows from this list.
const std::vector<GraphBuilderType>& graph_builder_types();

/// The builder of that name.
/// \param gpu     where it runs; types without `gpu` run on the CPU all the same
/// \param values  of its options; gnnd, which has params of its own, has none
/// \throws faiss::FaissException that lists the names there are, of builders or of options
std::unique_ptr<GraphBuilder> make_graph_builder(const std::string& name, const Gpu& gpu = {},
                                                 const OptionValues& values = {});

}  // namespace faiss_ext

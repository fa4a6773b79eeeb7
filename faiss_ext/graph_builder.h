#pragma once
/// \file graph_builder.h
/// One interface for everything that makes a k-NN graph, so that a benchmark loops over GNND and its baselines.

#include <memory>
#include <string>

#include "faiss_ext/vector_source.h"
#include "gnnd/builder.h"

namespace faiss_ext {

/// Builds the k-NN graph of a set of vectors. All builders give graphs that follow the invariants of gnnd/graph.h:
/// distances are the metric's own values even where the search that found the neighbours was approximate.
class GraphBuilder {
  public:
    virtual ~GraphBuilder() = default;
    /// \param source  at least 2 vectors, finite, not zero under cosine
    /// \param k       neighbours per object, 1 to gnnd::kMaxK; rows are padded with -1 where n - 1 < k
    /// \throws faiss::FaissException. faiss::InterruptCallback is honoured ("computation interrupted").
    virtual gnnd::KnnGraph build(const VectorSource& source, int k) = 0;
    /// "gnnd", "exact", "ivfpq" or "nndescent".
    virtual std::string name() const = 0;

    bool verbose = false;  ///< print progress to standard output, as FAISS's indexes do
    /// Seconds of the steps of the last build(), for instance "train 0.100, add 0.200, search 3.000".
    std::string timing;
};

/// GNND itself. `params.k` and `params.metric` are taken from build()'s arguments instead.
class GnndGraphBuilder : public GraphBuilder {
  public:
    explicit GnndGraphBuilder(const gnnd::BuildParams& params = {}) : params(params) {}
    gnnd::KnnGraph build(const VectorSource& source, int k) override;
    std::string name() const override { return "gnnd"; }

    gnnd::BuildParams params;
    gnnd::Callbacks callbacks;  ///< called beside faiss::InterruptCallback
    gnnd::BuildStats stats;     ///< of the last build()
};

/// Exact ground truth: FAISS flat search in batches, some more than k asked for, self dropped, distances computed anew
/// and put in order. FAISS expands |x-y|^2, which rounds when vectors are long and distances short: rows where the
/// rounding seen could have changed the neighbours are searched again by gnnd::exact_neighbors.
/// Cosine searches normalised vectors by inner product; chi2, which FAISS does not have, goes through
/// gnnd::exact_neighbors. Vectors that are not contiguous float32 rows are copied (4 n d bytes).
class ExactGraphBuilder : public GraphBuilder {
  public:
    gnnd::KnnGraph build(const VectorSource& source, int k) override;
    std::string name() const override { return "exact"; }

    /// Rows for some of the objects only; row i of the result belongs to objects[i].
    /// \throws faiss::FaissException, also when an object is not in [0, n)
    gnnd::KnnGraph search(const VectorSource& source, const std::vector<std::int32_t>& objects, int k);

    idx_t batch = 4096;  ///< queries per call into FAISS; its matrix products take so many at once
};

struct IvfpqParams {
    idx_t nlist = 0;      ///< coarse centroids; 0: 4 sqrt(n), at most 65536 (the paper's 2^16). At most n / 39, FAISS's
                          ///< least number of training points a centroid, and at least 1
    int code_bytes = 32;  ///< as in the paper; lowered to the largest divisor of d that is not above. 8 bits a code, or
                          ///< fewer when there are fewer than 256 vectors
    int nprobe = 32;      ///< lists visited per query
    std::uint64_t seed = 1234;  ///< of the training sample, the clustering and what fills short rows
};

/// The paper's baseline: every object searches an IVFPQ index of all of them. L2 and inner product. Where the lists
/// visited hold fewer than k others, the row is filled with random objects (their distances are true ones).
class IvfpqGraphBuilder : public GraphBuilder {
  public:
    explicit IvfpqGraphBuilder(const IvfpqParams& params = {}) : params(params) {}
    gnnd::KnnGraph build(const VectorSource& source, int k) override;
    std::string name() const override { return "ivfpq"; }

    IvfpqParams params;
};

struct NNDescentParams {
    int S = 10, R = 100, L = 0;  ///< as faiss::nndescent::NNDescent, each at least 2; L = 0 stands for k + 50
    int iterations = 10;
    std::uint64_t seed = 1234;
};

/// FAISS's own NN-Descent on the CPU, for every metric but chi2 (cosine as inner product of normalised vectors). FAISS
/// draws 2 S distinct random objects a list: sets of no more than 2 S + 1 are searched exactly instead.
class NNDescentGraphBuilder : public GraphBuilder {
  public:
    explicit NNDescentGraphBuilder(const NNDescentParams& params = {}) : params(params) {}
    gnnd::KnnGraph build(const VectorSource& source, int k) override;
    std::string name() const override { return "nndescent"; }

    NNDescentParams params;
};

/// The builder of that name with its default parameters. \throws faiss::FaissException that lists the names
std::unique_ptr<GraphBuilder> make_graph_builder(const std::string& name);

}  // namespace faiss_ext

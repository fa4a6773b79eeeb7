// SPDX-License-Identifier: MIT
#pragma once
/// \file held_out.h
/// Queries that are not in an index, and how much of what there is to find an index finds.

#include <faiss/IndexFlat.h>
#include <faiss/utils/distances.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "faiss_ext/vector_source.h"
#include "gnnd/error.h"
#include "gnnd/io/vector_file.h"

namespace gnnd::benchs {

using faiss_ext::idx_t;

/// Vectors of a file, of which the last are the queries and never in an index, and what is found by comparing all.
class HeldOut {
  public:
    /// \param count  queries
    /// \param wanted  vectors, the first; 0: all but the queries
    /// \param k       neighbours of a query
    /// \param metric_name  l2, ip or cosine, which is ip of normalised vectors
    HeldOut(const std::string& path, std::int64_t count, std::int64_t wanted, int k, const std::string& metric_name)
        : metric(metric_of(metric_name)), k_(k) {
        const io::VectorFile file(path);
        d = file.d();
        const std::int64_t most = file.n() - count;
        if (most < 2) throw InvalidArgument(path + " has not so many vectors as queries and two more");
        n = wanted > 0 ? std::min(wanted, most) : most;
        rows.resize(std::size_t(file.n()) * d);
        copy_as_f32(file.view(), 0, file.n(), rows.data());
        if (parse_metric(metric_name) == Metric::Cosine) faiss::fvec_renorm_L2(d, file.n(), rows.data());
        queries.assign(rows.end() - count * d, rows.end());
        rows.resize(std::size_t(most) * d);
    }
    const float* row(std::int64_t i) const { return &rows[i * d]; }

    /// Recall@k of an index of rows [begin, end); ties are counted by distance.
    double recall(const faiss::Index& index, std::int64_t begin, std::int64_t end) {
        if (begin != begin_ || end != end_) {
            faiss::IndexFlat flat(int(d), metric);
            flat.add(end - begin, row(begin));
            truth_ = keys(search(flat), begin);
            begin_ = begin;
            end_ = end;
        }
        const std::vector<float> found = keys(search(index), begin);
        std::int64_t hits = 0;
        for (std::size_t i = 0; i < found.size(); ++i) {
            const float worst = truth_[i / k_ * k_ + k_ - 1];
            hits += found[i] <= worst + 1e-6f * std::abs(worst);
        }
        return double(hits) / double(found.size());
    }

    std::vector<idx_t> search(const faiss::Index& index) const {
        const auto count = idx_t(queries.size()) / d;
        std::vector<float> distances(count * k_);
        std::vector<idx_t> labels(count * k_);
        index.search(count, queries.data(), k_, distances.data(), labels.data());
        return labels;
    }

    std::int64_t n = 0, d = 0;   ///< vectors to begin with, components
    std::vector<float> rows;     ///< those that may be in an index, n of them or more
    std::vector<float> queries;  ///< those that never are
    const faiss::MetricType metric;

  private:
    static faiss::MetricType metric_of(const std::string& name) {
        const Metric metric = parse_metric(name);
        if (metric == Metric::L2) return faiss::METRIC_L2;
        if (metric == Metric::InnerProduct || metric == Metric::Cosine) return faiss::METRIC_INNER_PRODUCT;
        throw InvalidArgument("metric " + name + ": l2, ip and cosine are measured");
    }
    /// Distances to what was found, smaller is nearer: those of the vectors, whatever codes an index compares.
    std::vector<float> keys(const std::vector<idx_t>& labels, std::int64_t begin) const {
        std::vector<float> found(labels.size(), INFINITY);
        for (std::size_t i = 0; i < labels.size(); ++i) {
            if (labels[i] < 0) continue;
            const float *query = &queries[i / k_ * d], *object = row(begin + labels[i]);
            found[i] = metric == faiss::METRIC_L2 ? faiss::fvec_L2sqr(query, object, d)
                                                  : -faiss::fvec_inner_product(query, object, d);
        }
        return found;
    }

    const int k_;
    std::int64_t begin_ = -1, end_ = -1;
    std::vector<float> truth_;
};

}  // namespace gnnd::benchs

// SPDX-License-Identifier: MIT
#include "truth.h"

#include <algorithm>

#include "any_graph.h"
#include "faiss_ext/vector_source.h"
#include "files.h"
#include "gnnd/error.h"
#include "gnnd/io/vector_file.h"

namespace cli {

namespace {

void check_shape(const std::string& path, std::int64_t rows, std::int64_t columns, std::int64_t n, int k) {
    if (rows != n)
        throw gnnd::InvalidArgument(path + ": " + std::to_string(rows) + " rows for " + std::to_string(n) + " queries");
    if (columns < k)
        throw gnnd::InvalidArgument(path + ": " + std::to_string(columns) + " neighbours per row, k is " +
                                    std::to_string(k));
}

bool comparable(gnnd::Metric metric, faiss::MetricType searched) {
    const auto counterpart = faiss_ext::searched_metric(metric);
    return counterpart == searched && !gnnd::is_normalized(metric);
}

}  // namespace

Truth::Truth(const std::string& path, const gnnd::io::VectorFile& queries, int k, faiss::MetricType metric)
    : k_(k), from_graph_(!is_vector_file(path)), ids_(queries.n() * k) {
    const std::int64_t n = queries.n();
    if (!from_graph_) {
        const gnnd::io::VectorFile file(path);
        if (file.dtype() != gnnd::DType::i32)
            throw gnnd::InvalidArgument(path + ": holds " + std::string(name_of(file.dtype())) + ", not ids");
        check_shape(path, file.n(), file.d(), n, k);
        std::vector<std::int32_t> row(file.d());
        for (std::int64_t i = 0; i < n; ++i) {
            file.read(i, 1, row.data());
            std::copy_n(row.data(), k, ids_.data() + i * k);
        }
        return;
    }
    const AnyGraph file(path);
    check_shape(path, file.n(), file.k(), n, k);
    file.require_fit(queries);
    const gnnd::KnnGraph graph = file.read();
    if (comparable(graph.metric(), metric)) last_.resize(n);
    similarity_ = is_similarity(graph.metric());
    for (std::int64_t i = 0; i < n; ++i) {
        std::copy_n(graph.ids_of(i), k, ids_.data() + i * k);
        if (!last_.empty()) last_[i] = graph.distances_of(i)[k - 1];
    }
}

bool Truth::holds(std::int64_t query, faiss_ext::idx_t id, float distance) const {
    if (id < 0) return false;
    if (!last_.empty() && (similarity_ ? distance >= last_[query] : distance <= last_[query])) return true;
    const std::int32_t* row = ids_.data() + query * k_;
    return std::find(row, row + k_, id) != row + k_;
}

}  // namespace cli

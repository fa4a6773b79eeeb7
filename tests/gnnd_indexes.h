// SPDX-License-Identifier: MIT
#pragma once
/// \file gnnd_indexes.h
/// Both kinds of index with add() by GNND, for tests that do the same to each.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <ostream>
#include <type_traits>
#include <typeindex>
#include <vector>

#include "faiss_ext/check_index.h"
#include "faiss_ext/evaluate.h"
#include "faiss_ext/gnnd_index.h"
#include "tests/faiss_helpers.h"
#include "tests/graph_index.h"

namespace gnnd::test {

struct AnyGnndIndex {
    std::unique_ptr<faiss::Index> index;
    faiss_ext::GnndGraphBuilder* builder;
    std::function<const KnnGraph&()> graph;
    std::function<void(int)> set_beam;
};

template <class Gnnd>
AnyGnndIndex any_index(std::unique_ptr<Gnnd> index) {
    Gnnd* made = index.get();
    made->builder.params.device.kind = Device::Kind::cpu;
    return {std::move(index), &made->builder, [made]() -> const KnnGraph& { return made->graph(); },
            [made](int beam) {
                if constexpr (std::is_base_of_v<faiss::IndexNSG, Gnnd>)
                    made->nsg.search_L = beam;
                else
                    made->hnsw.efSearch = beam;
            }};
}

struct GnndKind {
    const char* name;
    std::type_index faiss_type;
    std::function<AnyGnndIndex(int d, faiss::MetricType)> make;
    std::function<AnyGnndIndex(const AnyGnndIndex&)> copy;
    /// Of FAISS's own, empty.
    std::function<std::unique_ptr<faiss::Index>(int d, faiss::MetricType)> by_faiss;
    std::function<AnyGnndIndex(std::unique_ptr<faiss::Index>)> continued;
    friend std::ostream& operator<<(std::ostream& out, const GnndKind& kind) { return out << kind.name; }
};

/// \param make  of (d, metric) by `operator()<Index>` the index with GNND and FAISS's
template <class Gnnd, class Make>
GnndKind gnnd_kind(const char* name, const Make& make) {
    using Faiss = typename Gnnd::Replaced;
    return {name,
            typeid(Faiss),
            [make](int d, faiss::MetricType metric) { return any_index(make.template operator()<Gnnd>(d, metric)); },
            [](const AnyGnndIndex& other) {
                return any_index(std::make_unique<Gnnd>(dynamic_cast<const Gnnd&>(*other.index)));
            },
            [make](int d, faiss::MetricType metric) { return make.template operator()<Faiss>(d, metric); },
            [](std::unique_ptr<faiss::Index> index) {
                return any_index(std::make_unique<Gnnd>(std::move(dynamic_cast<Faiss&>(*index))));
            }};
}

template <class Gnnd>
GnndKind flat_kind(const char* name, int links) {
    return gnnd_kind<Gnnd>(name, [links]<class Index>(int d, faiss::MetricType metric) {
        return std::make_unique<Index>(d, links, metric);
    });
}
template <class Gnnd>
GnndKind sq_kind(const char* name, int links) {
    return gnnd_kind<Gnnd>(name, [links]<class Index>(int d, faiss::MetricType metric) {
        return std::make_unique<Index>(d, faiss::ScalarQuantizer::QT_8bit, links, metric);
    });
}
/// Of codes of four components a byte, whatever the metric.
template <class Gnnd>
GnndKind pq_kind(const char* name, int links) {
    return gnnd_kind<Gnnd>(
        name, [links]<class Index>(int d, faiss::MetricType) { return std::make_unique<Index>(d, d / 4, links); });
}

inline const GnndKind kGnndKinds[] = {flat_kind<faiss_ext::IndexNSGGnnd>("nsg", 32),
                                      flat_kind<faiss_ext::IndexHNSWGnnd>("hnsw", 16)};
/// Those whose storages compress, which are to be trained.
inline const GnndKind kCodedKinds[] = {
    sq_kind<faiss_ext::IndexNSGSQGnnd>("nsg_sq", 32), pq_kind<faiss_ext::IndexNSGPQGnnd>("nsg_pq", 32),
    sq_kind<faiss_ext::IndexHNSWSQGnnd>("hnsw_sq", 16), pq_kind<faiss_ext::IndexHNSWPQGnnd>("hnsw_pq", 16)};

/// Rows of the real sample as FAISS takes them.
inline std::vector<float> sample_rows(std::int64_t begin, std::int64_t count) {
    std::vector<float> rows(count * 128);
    copy_as_f32(sample(begin + count), begin, count, rows.data());
    return rows;
}

/// To both.
inline void add_rows(faiss::Index& index, faiss::IndexFlat& flat, const std::vector<float>& rows) {
    index.add(faiss_ext::idx_t(rows.size()) / index.d, rows.data());
    flat.add(faiss_ext::idx_t(rows.size()) / index.d, rows.data());
}

/// Searches of a grown index find as much as those of one build, but for `less`.
inline void expect_as_good(const AnyGnndIndex& grown, const AnyGnndIndex& built, const faiss::IndexFlat& flat,
                           const std::vector<float>& queries, double less, const std::vector<int>& beams = {16, 64}) {
    for (const int beam : beams) {
        grown.set_beam(beam);
        built.set_beam(beam);
        const double one = search_recall(*built.index, flat, queries, 10);
        EXPECT_GE(search_recall(*grown.index, flat, queries, 10), one - less)
            << "beam " << beam << ", one build " << one;
    }
}

/// The index holds the same vectors as the flat one, is what a file may hold, reaches all, and keeps a good graph.
/// \param recall  of the graph at least
inline void expect_whole(const AnyGnndIndex& made, const faiss::IndexFlat& flat, double recall = 0.99) {
    ASSERT_EQ(made.index->ntotal, flat.ntotal);
    ASSERT_NO_THROW(faiss_ext::check_index(*made.index));
    EXPECT_EQ(reachable(*made.index), std::size_t(flat.ntotal));
    for (std::int64_t i = 0; i < flat.ntotal; ++i) {
        std::vector<std::int32_t> links = index_links(*made.index, i);
        links.erase(std::remove(links.begin(), links.end(), -1), links.end());
        std::sort(links.begin(), links.end());
        ASSERT_TRUE(std::adjacent_find(links.begin(), links.end()) == links.end()) << "object " << i;
        ASSERT_FALSE(std::binary_search(links.begin(), links.end(), std::int32_t(i))) << "object " << i;
    }
    std::vector<float> rows(flat.ntotal * flat.d), row(flat.d);
    for (std::int64_t i = 0; i < flat.ntotal; ++i) {
        made.index->reconstruct(i, row.data());
        ASSERT_TRUE(std::equal(row.begin(), row.end(), flat.get_xb() + i * flat.d)) << "object " << i;
    }
    const KnnGraph& graph = made.graph();
    ASSERT_EQ(graph.n(), flat.ntotal);
    if (flat.ntotal < 2) return;
    ASSERT_NO_THROW(check_structure(graph));
    const int k = std::min<int>(10, int(flat.ntotal) - 1);
    EXPECT_GE(faiss_ext::recall(faiss_ext::VectorSource(&flat), graph, k).value, recall);
}

}  // namespace gnnd::test

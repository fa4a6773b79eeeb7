// SPDX-License-Identifier: MIT
#include "faiss_ext/index_operations.h"

#include <faiss/IndexIDMap.h>
#include <faiss/clone_index.h>

#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "faiss_ext/detail/class_name.h"
#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/gnnd_kinds.h"
#include "faiss_ext/detail/wrappers.h"
#include "faiss_ext/gnnd_index.h"
#include "faiss_ext/index_factory.h"
#include "gnnd/detail/checks.h"

namespace faiss_ext {

using detail::fail;

namespace {

struct GnndCloner : faiss::Cloner {
    faiss::Index* clone_Index(const faiss::Index* index) override {
        if (auto* made_here = dynamic_cast<const WithGnnd*>(index)) return made_here->copy().release();
        return Cloner::clone_Index(index);
    }
};

template <class Map>
std::unique_ptr<faiss::Index> wrapped(std::unique_ptr<faiss::Index> inside, std::vector<idx_t> ids) {
    auto map = std::make_unique<Map>();
    map->d = inside->d;
    map->metric_type = inside->metric_type;
    map->is_trained = inside->is_trained;
    map->ntotal = inside->ntotal;
    map->id_map = std::move(ids);
    if constexpr (std::is_same_v<Map, faiss::IndexIDMap2>) map->construct_rev_map();
    map->index = inside.release();
    map->own_fields = true;
    return map;
}

}  // namespace

std::unique_ptr<faiss::Index> clone_index(const faiss::Index& index) {
    return detail::with_faiss_errors([&] { return std::unique_ptr<faiss::Index>(GnndCloner().clone_Index(&index)); });
}

std::unique_ptr<faiss::Index> merge_indexes(const faiss::Index& a, const faiss::Index& b) {
    return detail::with_faiss_errors([&] {
        auto *map_a = dynamic_cast<const faiss::IndexIDMap*>(&a), *map_b = dynamic_cast<const faiss::IndexIDMap*>(&b);
        if ((map_a != nullptr) != (map_b != nullptr))
            fail("merge_indexes: " + detail::class_of(a) + " and " + detail::class_of(b) + ", of which one has ids");
        if (map_a != nullptr) {
            std::unique_ptr<faiss::Index> inside = merge_indexes(*map_a->index, *map_b->index);
            std::vector<idx_t> ids = map_a->id_map;
            ids.insert(ids.end(), map_b->id_map.begin(), map_b->id_map.end());
            return dynamic_cast<const faiss::IndexIDMap2*>(&a) != nullptr
                       ? wrapped<faiss::IndexIDMap2>(std::move(inside), std::move(ids))
                       : wrapped<faiss::IndexIDMap>(std::move(inside), std::move(ids));
        }
        if (auto* made_here = dynamic_cast<const WithGnnd*>(&a)) return made_here->merged_with(b);
        std::unique_ptr<faiss::Index> made = detail::gnnd_copy_of(a);
        if (!made)
            fail("merge_indexes: " + detail::class_of(a) + " is none of " + detail::kGnndKinds +
                 ", alone or in an IndexIDMap");
        dynamic_cast<WithGnnd&>(*made).merge_copy_of(b);
        return made;
    });
}

void ParameterSpace::initialize(const faiss::Index* index) {
    faiss::ParameterSpace::initialize(index);
    auto* inside = const_cast<faiss::Index*>(index);  // only looked at
    inside = detail::innermost(inside);
    const bool nsg = dynamic_cast<const faiss::IndexNSG*>(inside) != nullptr;
    if (!nsg && dynamic_cast<const faiss::IndexHNSW*>(inside) == nullptr) return;
    std::vector<double>& beams = add_range(nsg ? "search_L" : "efSearch").values;
    if (!beams.empty()) return;
    for (int beam = 8; beam <= 1024; beam *= 2) beams.push_back(beam);
}

void ParameterSpace::set_index_parameter(faiss::Index* index, const std::string& name, double value) const {
    detail::with_faiss_errors([&] {
        if (name == "gnnd_recall") {
            GnndGraphBuilder* builder = builder_of(*index);
            if (builder == nullptr) fail("gnnd_recall: " + detail::class_of(*index) + " holds no index with GNND");
            gnnd::detail::check_range("ParameterSpace", "gnnd_recall", float(value), 0.0f, 1.0f);
            builder->params.recall = float(value);
        } else if (auto* nsg = dynamic_cast<faiss::IndexNSG*>(index); nsg != nullptr && name == "search_L") {
            gnnd::detail::check_range("ParameterSpace", "search_L", value, 1.0,
                                      double(std::numeric_limits<int>::max()));
            nsg->nsg.search_L = int(value);
        } else {
            faiss::ParameterSpace::set_index_parameter(index, name, value);
        }
    });
}

}  // namespace faiss_ext

// SPDX-License-Identifier: MIT
#include "faiss_ext/index_factory.h"

#include <faiss/IndexFlat.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/index_factory.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "faiss_ext/detail/class_name.h"
#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/wrappers.h"
#include "faiss_ext/gnnd_index.h"
#include "gnnd/params.h"
#include "gnnd/search_links.h"

namespace faiss_ext {

using detail::fail;

namespace detail {

faiss::Index** inner_of(faiss::Index& index) {
    if (auto* map = dynamic_cast<faiss::IndexIDMap*>(&index)) return &map->index;
    if (auto* transform = dynamic_cast<faiss::IndexPreTransform*>(&index)) return &transform->index;
    if (auto* refine = dynamic_cast<faiss::IndexRefine*>(&index)) return &refine->base_index;
    return nullptr;
}

}  // namespace detail

namespace {

/// GNND's part of a description.
struct GnndPart {
    bool nsg = false;
    int k = 64, links = 32;

    std::unique_ptr<faiss::Index> make(int d, faiss::MetricType metric) const {
        if (nsg) return make<IndexNSGGnnd>(d, metric);
        return make<IndexHNSWGnnd>(d, metric);
    }
    template <class Index>
    std::unique_ptr<faiss::Index> make(int d, faiss::MetricType metric) const {
        auto index = std::make_unique<Index>(d, links, metric);
        index->GK = k;
        return index;
    }
};

/// A description in parts: commas inside of parentheses are of the part.
std::vector<std::string> parts_of(const std::string& description) {
    std::vector<std::string> parts(1);
    int depth = 0;
    for (const char c : description) {
        depth += (c == '(') - (c == ')');
        if (c == ',' && depth == 0)
            parts.emplace_back();
        else
            parts.back() += c;
    }
    return parts;
}

/// Whether the part is this name with a number behind it, or without.
bool has_name(const std::string& part, std::string_view name) {
    return part.starts_with(name) && part.find_first_not_of("0123456789", name.size()) == std::string::npos;
}

/// The number behind a name of so many letters.
int number_of(const std::string& part, std::size_t letters, int otherwise, int most) {
    const std::string digits = part.substr(letters);
    if (digits.empty()) return otherwise;
    const int number = digits.size() > 9 ? most + 1 : std::stoi(digits);
    if (number < 1 || number > most)
        fail("index_factory: the number of " + part + " is none from 1 to " + std::to_string(most));
    return number;
}

/// Takes GNND's parts out of a description; "Flat" stands in their place.
GnndPart take_part(std::vector<std::string>& parts, std::vector<std::string>::iterator at) {
    constexpr std::string_view kGnnd = "GNND", kNsg = "NSG", kHnsw = "HNSW";
    GnndPart part;
    if (!has_name(*at, kGnnd)) fail("index_factory: " + *at + " is not GNND with a number of neighbours");
    part.k = number_of(*at, kGnnd.size(), part.k, gnnd::kMaxK);
    auto next = at + 1;
    if (next == parts.end() || !(has_name(*next, kNsg) || has_name(*next, kHnsw)))
        fail("index_factory: behind " + *at + " comes NSG or HNSW, not " +
             (next == parts.end() ? std::string("the end") : "'" + *next + "'"));
    part.nsg = has_name(*next, kNsg);
    part.links = number_of(*next, part.nsg ? kNsg.size() : kHnsw.size(), part.links, gnnd::kMaxDegree);
    ++next;
    if (next != parts.end() && *next == "Flat") ++next;
    const auto wraps = [](const std::string& suffix) {
        return suffix == "RFlat" || suffix == "IDMap" || suffix == "IDMap2" ||
               (suffix.starts_with("Refine(") && suffix.find("GNND") == std::string::npos);
    };
    if (next != parts.end() && !wraps(*next))
        fail("index_factory: '" + *next + "' cannot stand behind " + *at +
             "; Flat, RFlat, Refine(...), IDMap and IDMap2 can, and GNND once");
    *at = "Flat";
    parts.erase(at + 1, next);
    return part;
}

/// What `make` gives of the innermost index comes in its place.
template <class Make>
std::unique_ptr<faiss::Index> put_inside(std::unique_ptr<faiss::Index> index, const Make& make) {
    faiss::Index* outer = index.get();
    faiss::Index*& slot = detail::innermost(outer);
    std::unique_ptr<faiss::Index> made = make(*slot);
    if (slot == outer) return made;
    delete std::exchange(slot, made.release());
    return index;
}

/// Null unless the index is such a one.
template <class Gnnd, class FlatIndex>
std::unique_ptr<faiss::Index> taken_over(faiss::Index& index) {
    auto* flat = dynamic_cast<FlatIndex*>(&index);
    return flat == nullptr ? nullptr : std::make_unique<Gnnd>(std::move(*flat));
}

}  // namespace

std::unique_ptr<faiss::Index> index_factory(int d, const std::string& description, faiss::MetricType metric) {
    return detail::with_faiss_errors([&] {
        std::vector<std::string> parts = parts_of(description);
        const auto begins = [](const std::string& part) { return part.find("GNND") != std::string::npos; };
        const auto at = std::find_if(parts.begin(), parts.end(), begins);
        if (at == parts.end())
            return std::unique_ptr<faiss::Index>(faiss::index_factory(d, description.c_str(), metric));
        const GnndPart part = take_part(parts, at);
        std::string of_faiss;
        for (const std::string& each : parts) of_faiss += (of_faiss.empty() ? "" : ",") + each;
        std::unique_ptr<faiss::Index> index(faiss::index_factory(d, of_faiss.c_str(), metric));
        return put_inside(std::move(index), [&](faiss::Index& inside) {
            if (dynamic_cast<faiss::IndexFlat*>(&inside) == nullptr)
                fail("index_factory: GNND cannot stand inside of " + detail::class_of(inside));
            return part.make(inside.d, metric);
        });
    });
}

std::unique_ptr<faiss::Index> with_gnnd(std::unique_ptr<faiss::Index> index) {
    return detail::with_faiss_errors([&] {
        if (index == nullptr) fail("with_gnnd: the index is null");
        return put_inside(std::move(index), [](faiss::Index& inside) {
            std::unique_ptr<faiss::Index> made = taken_over<IndexNSGGnnd, faiss::IndexNSGFlat>(inside);
            if (!made) made = taken_over<IndexHNSWGnnd, faiss::IndexHNSWFlat>(inside);
            if (!made)
                fail("with_gnnd: " + detail::class_of(inside) + " is neither an IndexNSGFlat nor an IndexHNSWFlat");
            return made;
        });
    });
}

GnndGraphBuilder* builder_of(faiss::Index& index) {
    if (auto* nsg = dynamic_cast<IndexNSGGnnd*>(&index)) return &nsg->builder;
    if (auto* hnsw = dynamic_cast<IndexHNSWGnnd*>(&index)) return &hnsw->builder;
    faiss::Index** inner = detail::inner_of(index);
    return inner == nullptr || *inner == nullptr ? nullptr : builder_of(**inner);
}

}  // namespace faiss_ext

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
#include "faiss_ext/detail/gnnd_kinds.h"
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

/// True where the part is this name with a number behind it, or without; what follows an underscore is not looked at.
bool has_name(const std::string& part, std::string_view name) {
    const std::string here = part.substr(0, part.find('_'));
    return here.starts_with(name) && here.find_first_not_of("0123456789", name.size()) == std::string::npos;
}

/// The number behind a name of so many letters, checked.
int number_of(const std::string& part, std::size_t letters, int otherwise, int least, int most) {
    const std::string digits = part.substr(letters, part.find('_') - letters);
    if (digits.empty()) return otherwise;
    const int number = digits.size() > 9 ? most + 1 : std::stoi(digits);
    if (number < least || number > most)
        fail("index_factory: the number of " + part + " is none from " + std::to_string(least) + " to " +
             std::to_string(most));
    return number;
}

/// Takes GNND's part out of a description and leaves one of FAISS. \return the number of columns
int take_part(std::vector<std::string>& parts, std::vector<std::string>::iterator at) {
    constexpr std::string_view kGnnd = "GNND", kNsg = "NSG", kHnsw = "HNSW";
    if (!has_name(*at, kGnnd) || at->find('_') != std::string::npos)
        fail("index_factory: " + *at + " is not GNND with a number of neighbours");
    const int k = number_of(*at, kGnnd.size(), 64, 1, gnnd::kMaxK);
    const auto graph = at + 1;
    if (graph == parts.end() || !(has_name(*graph, kNsg) || has_name(*graph, kHnsw)))
        fail("index_factory: behind " + *at + " comes NSG or HNSW, not " +
             (graph == parts.end() ? std::string("the end") : "'" + *graph + "'"));
    if (has_name(*graph, kNsg))
        number_of(*graph, kNsg.size(), 32, 1, gnnd::kMaxDegree);
    else
        number_of(*graph, kHnsw.size(), 32, 2, gnnd::kMaxDegree / 2);
    auto next = graph + 1;
    const auto is_storage = [](const std::string& part) {
        return part == "Flat" || part.starts_with("SQ") || part.starts_with("PQ");
    };
    if (next != parts.end() && is_storage(*next) && graph->find('_') == std::string::npos) ++next;
    const auto wraps = [](const std::string& suffix) {
        return suffix == "RFlat" || suffix == "IDMap" || suffix == "IDMap2" ||
               (suffix.starts_with("Refine(") && suffix.find("GNND") == std::string::npos);
    };
    if (next != parts.end() && !wraps(*next))
        fail("index_factory: '" + *next + "' cannot stand behind " + *at +
             "; Flat, SQ and PQ, then RFlat, Refine(...), IDMap and IDMap2 can, and GNND once");
    parts.erase(at);
    return k;
}

/// Replaces the innermost index by the one that `make` makes of it.
template <class Make>
std::unique_ptr<faiss::Index> put_inside(std::unique_ptr<faiss::Index> index, const Make& make) {
    faiss::Index* outer = index.get();
    faiss::Index*& slot = detail::innermost(outer);
    std::unique_ptr<faiss::Index> made = make(*slot);
    if (slot == outer) return made;
    delete std::exchange(slot, made.release());
    return index;
}

}  // namespace

std::unique_ptr<faiss::Index> index_factory(int d, const std::string& description, faiss::MetricType metric) {
    return detail::with_faiss_errors([&] {
        std::vector<std::string> parts = parts_of(description);
        const auto begins = [](const std::string& part) { return part.find("GNND") != std::string::npos; };
        const auto at = std::find_if(parts.begin(), parts.end(), begins);
        if (at == parts.end())
            return std::unique_ptr<faiss::Index>(faiss::index_factory(d, description.c_str(), metric));
        const int k = take_part(parts, at);
        std::string of_faiss;
        for (const std::string& each : parts) of_faiss += (of_faiss.empty() ? "" : ",") + each;
        std::unique_ptr<faiss::Index> index(faiss::index_factory(d, of_faiss.c_str(), metric));
        return put_inside(std::move(index), [&](faiss::Index& inside) {
            std::unique_ptr<faiss::Index> made = detail::take_over(inside);
            if (!made) fail("index_factory: GNND does not build " + detail::class_of(inside));
            dynamic_cast<WithGnnd&>(*made).set_graph_k(k);
            return made;
        });
    });
}

std::unique_ptr<faiss::Index> with_gnnd(std::unique_ptr<faiss::Index> index) {
    return detail::with_faiss_errors([&] {
        if (index == nullptr) fail("with_gnnd: the index is null");
        return put_inside(std::move(index), [](faiss::Index& inside) {
            std::unique_ptr<faiss::Index> made = detail::take_over(inside);
            if (!made) fail("with_gnnd: " + detail::class_of(inside) + " is none of " + detail::kGnndKinds);
            return made;
        });
    });
}

GnndGraphBuilder* builder_of(faiss::Index& index) {
    if (auto* made_here = dynamic_cast<WithGnnd*>(&index)) return &made_here->builder;
    faiss::Index** inner = detail::inner_of(index);
    return inner == nullptr || *inner == nullptr ? nullptr : builder_of(**inner);
}

}  // namespace faiss_ext

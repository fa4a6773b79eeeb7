// SPDX-License-Identifier: MIT
#include "links.h"

#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "gnnd/cpu/backend.h"
#include "gnnd/cpu/space.h"
#include "gnnd/detail/checks.h"
#include "gnnd/detail/far_links.h"
#include "gnnd/detail/link_levels.h"
#include "gnnd/detail/link_tree.h"
#include "gnnd/device.h"
#include "gnnd/search_links.h"
#include "hooks.h"
#include "values.h"

namespace gnnd::python {

namespace {

/// The metric between objects, for the tree that reaches all of them.
class MetricDistances final : public detail::ObjectDistances {
  public:
    explicit MetricDistances(const cpu::Space& space) : space_(space), block_(space, 1, 1, detail::or_heap(nullptr)) {}
    std::unique_ptr<ObjectDistances> clone() const override { return std::make_unique<MetricDistances>(space_); }
    float between(std::int32_t a, std::int32_t b) override {
        block_.compute(&a, 1, &b, 1);
        return block_.row(0)[0];
    }

  private:
    const cpu::Space& space_;
    cpu::Block block_;
};

/// \param upper_degree  links on each level above the one that all are on; 0: there are none
/// \param links         one row, filled: n x degree, where there are levels as detail::LinkLayout says
/// \param levels        one row of n, filled: on how many each object is, where there are any above
/// \param entry         every object can be reached from this one afterwards; -1: some may not
void links_for_search(const Array& x, const nb::tuple& graph, int degree, int upper_degree, const Array& links,
                      const Array& levels, std::int64_t entry, nb::handle given_threads, const std::string& device) {
    const KnnGraphView view = graph_of(graph);
    const int threads = value_of<int>("threads", given_threads);
    Hooks hooks{nb::none()};
    const Callbacks callbacks = hooks.callbacks();
    hooks.run([&] {
        LinkParams params;
        params.degree = degree;
        params.device = Device::parse(device);
        params.threads = threads;
        if (std::size_t(links.columns) != detail::LinkLevels::places_for(view.n, degree, upper_degree) ||
            levels.columns != view.n)
            throw InvalidArgument("links and levels of another number of objects than the graph");
        if (entry < -1 || entry >= view.n)
            throw InvalidArgument("entry = " + std::to_string(entry) + " of " + std::to_string(view.n) + " objects");
        const VectorView vectors = x.vectors();
        const bool far =
            entry >= 0 && detail::needs_far_links(vectors, view, upper_degree > 0 ? &vectors : nullptr, callbacks);
        (far ? detail::choose_far_links : search_links)(vectors, view, params, links.ids(), callbacks, nullptr);
        if (entry < 0) return;
        detail::LinkLayout layout{degree};
        std::vector<std::size_t> offsets;
        if (upper_degree > 0) {
            params.degree = upper_degree;
            const detail::LinkLevels upper(vectors, view.metric, std::int32_t(entry), params, callbacks, nullptr);
            offsets.resize(std::size_t(view.n) + 1);
            upper.put_into(degree, links.ids(), levels.ids(), offsets.data());
            layout = {degree, offsets.data(), upper.top(), upper_degree};
        } else {
            detail::link_anywhere(far, view.n, degree, std::int32_t(entry), links.ids());
        }
        const cpu::Team team{cpu::Team::resolve(threads), &callbacks.interrupt};
        const cpu::Space space(vectors, view.metric, team, detail::or_heap(nullptr));
        MetricDistances distances(space);
        std::vector<std::int32_t> parents(view.n, -1);
        detail::LinkRows rows(links.ids(), layout, std::int32_t(entry), parents);
        detail::TreeGrowth growth(distances, rows, callbacks);
        growth.follow(std::int32_t(entry));
        growth.attach_others();
        growth.open_ways();
    });
}

}  // namespace

void bind_links(nb::module_& module) {
    module.def("places_of_links", &detail::LinkLevels::places_for, nb::arg("n"), nb::arg("degree"),
               nb::arg("upper_degree"));
    module.def("search_links", &links_for_search, nb::arg("x"), nb::arg("graph"), nb::arg("degree"),
               nb::arg("upper_degree"), nb::arg("links"), nb::arg("levels"), nb::arg("entry"),
               nb::arg("threads").none(), nb::arg("device"));
    module.def(
        "check_graph", [](const nb::tuple& graph) { check_structure(graph_of(graph)); }, nb::arg("graph"));
    module.def(
        "check_vectors",
        [](const Array& x, const std::string& metric) {
            Hooks hooks{nb::none()};
            const Callbacks callbacks = hooks.callbacks();
            hooks.run([&] { cpu::check_vectors(x.vectors(), parse_metric(metric), 0, callbacks); });
        },
        nb::arg("x"), nb::arg("metric"));
}

}  // namespace gnnd::python

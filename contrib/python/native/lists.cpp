// SPDX-License-Identifier: MIT
#include "lists.h"

#include <nanobind/stl/string.h>

#include <string>

#include "gnnd/dtype.h"
#include "gnnd/io/vector_file.h"
#include "gnnd/metric.h"

namespace gnnd::python {

namespace nb = nanobind;

namespace {

nb::list names_of_metrics() {
    nb::list names;
    for (const Metric metric : kMetrics) names.append(std::string(name_of(metric)));
    return names;
}

/// The traits of gnnd/metric.h by name. `faiss_metric` is the number of FAISS's metric that searches for it, after the
/// vectors were divided by their norms where the metric is `normalized`; None where FAISS has none.
nb::dict traits_of(const std::string& metric) {
    return visit(parse_metric(metric), []<class M>(M) {
        constexpr int kInFaiss = M::normalized ? metrics::InnerProduct::faiss_metric : M::faiss_metric;
        nb::dict traits;
        traits["similarity"] = M::similarity;
        traits["normalized"] = M::normalized;
        traits["translation_invariant"] = M::translation_invariant;
        traits["nonnegative"] = M::nonnegative;
        traits["best"] = M::best;
        traits["faiss_metric"] = kInFaiss < 0 ? nb::object(nb::none()) : nb::object(nb::int_(kInFaiss));
        return traits;
    });
}

nb::list names_of_dtypes() {
    nb::list names;
    for (const DType dtype : kVectorDTypes) names.append(std::string(name_of(dtype)));
    return names;
}

/// The type that files of each format hold; None where each file tells its own.
nb::dict types_of_formats() {
    nb::dict types;
    for (const io::VectorFormat format : io::kVectorFormats) {
        const auto dtype = io::dtype_of(format);
        const std::string name(name_of(format));
        types[name.c_str()] = dtype ? nb::object(nb::str(std::string(name_of(*dtype)).c_str())) : nb::none();
    }
    return types;
}

}  // namespace

void bind_lists(nb::module_& module) {
    module.attr("metrics") = names_of_metrics();
    module.attr("vector_dtypes") = names_of_dtypes();
    module.attr("vector_formats") = types_of_formats();
    module.def(
        "is_similarity", [](const std::string& metric) { return is_similarity(parse_metric(metric)); },
        nb::arg("metric"));
    module.def("metric_traits", &traits_of, nb::arg("metric"));
}

}  // namespace gnnd::python

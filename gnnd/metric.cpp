#include "gnnd/metric.h"

#include <string>

#include "gnnd/names.h"

namespace gnnd {
namespace {

constexpr NameTable<Metric, 6> kMetricNames{"metric",
                                            {{{Metric::L2, "l2"},
                                              {Metric::InnerProduct, "ip"},
                                              {Metric::Cosine, "cosine"},
                                              {Metric::L1, "l1"},
                                              {Metric::Linf, "linf"},
                                              {Metric::ChiSquare, "chi2"}}}};

}  // namespace

std::string_view name_of(Metric metric) {
    return kMetricNames.name_of(metric);
}

void throw_unknown(Metric metric) {
    throw InvalidArgument("unknown metric number " + std::to_string(std::uint32_t(metric)));
}

Metric parse_metric(std::string_view name) {
    return kMetricNames.parse(name);
}

}  // namespace gnnd

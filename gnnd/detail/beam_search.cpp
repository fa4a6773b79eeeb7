// SPDX-License-Identifier: MIT
#include "gnnd/detail/beam_search.h"

#include <algorithm>

namespace gnnd::detail {

bool BeamSearch::find(std::int32_t object) {
    seen_.clear();
    beam_.clear();
    visit(object, links_.entry);
    std::int32_t next = -1;
    for (int step = 0; step < steps_ && (next = beam_.next()) >= 0; ++step) {
        const std::int32_t* links = links_.rows + std::int64_t(next) * links_.degree;
        const int count = next == links_.entry ? links_.of_entry : links_.degree;
        for (int j = 0; j < count && links[j] >= 0; ++j) visit(object, links[j]);
    }
    return cpu::key_of(found().front()) <= distances_.between(object, object);
}

bool BeamSearch::find_near(std::int32_t object) {
    if (find(object)) return true;
    const std::int32_t* links = links_.rows + std::int64_t(object) * links_.degree;
    linked_.clear();
    for (int j = 0; j < links_.degree && links[j] >= 0; ++j) linked_.push_back(distances_.between(object, links[j]));
    if (linked_.empty()) return false;
    const auto middle = linked_.begin() + std::ptrdiff_t(linked_.size() / 2);
    std::nth_element(linked_.begin(), middle, linked_.end());
    return cpu::key_of(found().front()) <= *middle;
}

void BeamSearch::visit(std::int32_t object, std::int32_t id) {
    if (seen_.add(id)) beam_.add(distances_.between(object, id), id);
}

}  // namespace gnnd::detail

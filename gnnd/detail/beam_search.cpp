// SPDX-License-Identifier: MIT
#include "gnnd/detail/beam_search.h"

#include <algorithm>

namespace gnnd::detail {

bool BeamSearch::find(std::int32_t object) {
    seen_.clear();
    beam_.clear();
    visit(object, &links_.entry, 1);
    std::int32_t next = -1;
    for (int step = 0; step < steps_ && (next = beam_.next()) >= 0; ++step) {
        const std::int32_t* links = links_.rows + std::int64_t(next) * links_.degree;
        const int count = next == links_.entry ? links_.of_entry : links_.degree;
        visit(object, links, count);
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

/// \param ids  at most `count`, up to the first -1
void BeamSearch::visit(std::int32_t object, const std::int32_t* ids, int count) {
    fresh_.clear();
    for (int j = 0; j < count && ids[j] >= 0; ++j) {
        if (!seen_.add(ids[j])) continue;
        distances_.prefetch(ids[j]);
        fresh_.push_back(ids[j]);
    }
    for (const std::int32_t id : fresh_) beam_.add(distances_.between(object, id), id);
}

}  // namespace gnnd::detail

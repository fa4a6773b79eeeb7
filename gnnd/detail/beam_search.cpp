// SPDX-License-Identifier: MIT
#include "gnnd/detail/beam_search.h"

#include <algorithm>

namespace gnnd::detail {

bool BeamSearch::find(std::int32_t object) {
    return search(object, false);
}

bool BeamSearch::finds(std::int32_t object) {
    return search(object, true);
}

/// \param to_tell  ends where the answer is known: whatever comes, the nearest entry gets no farther away
bool BeamSearch::search(std::int32_t object, bool to_tell) {
    const float own = distances_.between(object, object);
    seen_.clear();
    beam_.clear();
    visit(object, &links_.entry, 1);
    const auto is_found = [&] { return cpu::key_of(found().front()) <= own; };
    std::int32_t next = -1;
    for (int step = 0; step < steps_ && !(to_tell && is_found()) && (next = beam_.next()) >= 0; ++step) {
        const std::int32_t* links = links_.rows + std::int64_t(next) * links_.degree;
        const int count = next == links_.entry ? links_.of_entry : links_.degree;
        visit(object, links, count);
    }
    return is_found();
}

bool BeamSearch::find_near(std::int32_t object) {
    if (finds(object)) return true;
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

// SPDX-License-Identifier: MIT
#include "gnnd/detail/beam_search.h"

#include <algorithm>
#include <limits>

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
    walked_.clear();
    const std::int32_t start = come_down(object);
    visit(object, &start, 1);
    const auto is_found = [&] { return cpu::key_of(found().front()) <= own; };
    std::int32_t next = -1;
    while (int(walked_.size()) < steps_ && !(to_tell && is_found()) && (next = beam_.next()) >= 0) {
        visit(object, links_of(next), next == links_.entry ? links_.of_entry : links_.layout.degree);
        walked_.push_back(next);
        if (int(walked_.size()) == steps_ / 2) by_half_ = found();
    }
    if (int(walked_.size()) < steps_ / 2) by_half_ = found();
    return is_found();
}

/// \return where the walk begins: on each level what is nearer is followed, as long as there is any
std::int32_t BeamSearch::come_down(std::int32_t object) {
    std::int32_t nearest = links_.entry;
    float key = links_.layout.top > 0 ? distances_.between(object, nearest) : 0;
    for (int level = links_.layout.top; level > 0; --level)
        for (std::int32_t from = -1; from != nearest;) {
            from = nearest;
            const std::int32_t* links = links_.rows + links_.layout.begin_of(from, level);
            const auto count = int(std::find(links, links + links_.layout.upper_degree, -1) - links);
            distances_.between_all(object, links, count, keys_.data());
            for (int j = 0; j < count; ++j)
                if (keys_[j] < key) {
                    key = keys_[j];
                    nearest = links[j];
                }
        }
    return nearest;
}

bool BeamSearch::find_near(std::int32_t object) {
    if (finds(object)) return true;
    const cpu::Entry nearest = found().front();
    const float key = cpu::key_of(nearest);
    if (!(key <= middle_of_links(object))) return false;
    return !lies_apart(key, middle_of_links(cpu::id_of(nearest)));
}

/// How far the middle one of those lies that the object is linked to; -inf where it is linked to none.
float BeamSearch::middle_of_links(std::int32_t object) {
    const std::int32_t* links = links_of(object);
    const auto count = int(std::find(links, links + links_.layout.degree, -1) - links);
    if (count == 0) return -std::numeric_limits<float>::infinity();
    distances_.between_all(object, links, count, keys_.data());
    const auto middle = keys_.begin() + count / 2;
    std::nth_element(keys_.begin(), middle, keys_.begin() + count);
    return *middle;
}

/// \param ids  at most `count`, up to the first -1
void BeamSearch::visit(std::int32_t object, const std::int32_t* ids, int count) {
    fresh_.clear();
    for (int j = 0; j < count && ids[j] >= 0; ++j) {
        if (!seen_.add(ids[j])) continue;
        distances_.prefetch(ids[j]);
        fresh_.push_back(ids[j]);
    }
    distances_.between_all(object, fresh_.data(), int(fresh_.size()), keys_.data());
    for (std::size_t i = 0; i < fresh_.size(); ++i) beam_.add(keys_[i], fresh_[i]);
}

}  // namespace gnnd::detail

// SPDX-License-Identifier: MIT
// The part of a sweep that finds the nearest of chosen objects.
#include <algorithm>
#include <numeric>
#include <vector>

#include "gnnd/cuda/algorithm.h"
#include "gnnd/cuda/sweep/chosen_rows.h"
#include "gnnd/cuda/sweep/sweep.h"
#include "gnnd/cuda/sweep/sweep_layout.h"

namespace gnnd::cuda {
namespace {

/// Where some are compared again they have the places of the others, up to so many times as many.
constexpr u32 kMorePlaces = 16;

/// A hit beside the neighbours reads a row, which takes as long as codes of all components save, beside float16, of so
/// many pairs of its object; shorter ones save more. Rows that have more of them count against codes.
constexpr double kObjectsOfHit = 2000;

/// A form that more than one row in so many overflow in tells too little.
constexpr u32 kManyOverflow = 32;

}  // namespace

/// The rows of chosen objects in the form that is in use.
void Sweep::gather(SweepRows& rows) {
    if (form_ == SweepForm::floats) return;
    rows.packed = {some_.packed.rows, rows.count, space_.rows.row_bytes};
    gather_rows(space_.rows, rows.objects, rows.count, const_cast<std::uint8_t*>(rows.packed.rows), stream_);
}

void Sweep::choose_again(const std::int32_t* objects, u32 overflowed, std::vector<u32>& places) {
    std::vector<u32> rows(overflowed), numbers(overflowed);
    const std::size_t bytes = overflowed * sizeof(u32);
    GNND_CUDA(cudaMemcpyAsync(rows.data(), some_.overflowed, bytes, cudaMemcpyDeviceToHost, stream_));
    GNND_CUDA(cudaStreamSynchronize(stream_));
    std::sort(rows.begin(), rows.end());
    for (u32 i = 0; i < overflowed; ++i) {
        rows[i] = places[rows[i]];
        numbers[i] = u32(objects[rows[i]]);
    }
    places = std::move(rows);
    const auto copy = [&](const u32* to, const std::vector<u32>& from) {
        GNND_CUDA(cudaMemcpyAsync(const_cast<u32*>(to), from.data(), bytes, cudaMemcpyHostToDevice, stream_));
    };
    copy(places_, places);
    copy(again_.objects, numbers);
    again_.count = overflowed;
    const auto whole = std::lower_bound(places.begin(), places.end(), some_.wanted.whole) - places.begin();
    again_.wanted = {u32(whole), some_.wanted.at};
    again_.hits = some_.hits;
    again_.hits.capacity *= int(std::clamp(some_.count / overflowed, 1u, kMorePlaces));
    again_.thresholds = some_.thresholds;
    again_.overflowed = some_.overflowed;
    again_.is_overflowed = some_.is_overflowed;
    take_lists(some_.lists, places_, overflowed, again_.lists, stream_);
}

void Sweep::make_room(u32 count) {
    if (count <= room_) return;
    room_ = 0;
    some_ = {};  // before the others are taken
    some_ = allocate_rows(count, hits_of_some(k_), nullptr);
    room_ = count;
}

bool Sweep::are_worthwhile(const std::vector<std::int32_t>& objects, const u32* ids, int stride, int width) {
    const u32 count = std::min(kTrialObjects, u32(objects.size()));
    return compare_chosen(objects.data(), count, ids, stride, width, {}, hits_of_some(k_)) <= count / kManyOverflow;
}

/// Once. \return how many had more hits than places in a step
u32 Sweep::compare_chosen(const std::int32_t* objects, u32 count, const u32* ids, int stride, int width, Wanted wanted,
                          int most) {
    prepare();
    make_room(count);
    const double d = double(space_.raw.d), saved = (2 * d - double(space_.rows.row_bytes)) / d;
    const double worthwhile = k_ + k_ / 4 + saved * double(space_.raw.n) / kObjectsOfHit;
    const int places = is_codes(form_) ? int(std::clamp(worthwhile, double(k_), double(most))) : most;
    some_.hits.capacity = places;
    some_.count = count;
    some_.wanted = wanted;
    GNND_CUDA(cudaMemcpyAsync(const_cast<u32*>(some_.objects), objects, std::size_t(count) * sizeof(u32),
                              cudaMemcpyHostToDevice, stream_));
    gather(some_);
    clear(some_.lists, some_.hits, count, stream_);
    if (ids != nullptr) {
        lists_as_hits(some_.objects, count, ids, stride, std::min(width, places), wanted, k_, some_.hits, stream_);
        take_hits(some_);
    }
    const bool bounded = some_.ceilings != nullptr;
    return compare_all(some_,
                       bounded          ? even_steps(some_, 1)
                       : ids != nullptr ? two_steps(some_)
                                        : growing_steps(some_, 1),
                       {});
}

Lists Sweep::nearest_of(const std::int32_t* objects, u32 count, const u32* ids, int stride, int width, Wanted wanted) {
    u32 overflowed = compare_chosen(objects, count, ids, stride, width, wanted, hits_of_some(k_));
    const u32 few = count / kManyOverflow;
    crowded_ = overflowed > count / kCrowded;
    if (overflowed == 0) return some_.lists;

    // Only rows that overflow are compared again; where many do after that, in a finer form. In the end no step has
    // more columns than there are places.
    if (is_codes(form_) && overflowed > few) use_form(finer_form());
    some_.hits.capacity = hits_of_some(k_);
    std::vector<u32> places(count);
    std::iota(places.begin(), places.end(), 0u);
    const auto compare_again = [&](u32 steps) {
        choose_again(objects, overflowed, places);
        gather(again_);
        overflowed = compare_all(again_, steps == 0 ? growing_steps(again_, 1) : even_steps(again_, steps), {});
        put_back(again_.lists, places_, again_.count, some_.lists, stream_);
    };
    compare_again(0);  // the bounds are better now, and there are more places
    while (overflowed > few && form_ != SweepForm::integers && form_ != SweepForm::floats) {
        use_form(finer_form());
        compare_again(2);
    }
    const u32 width_in_all = width_of(some_);
    for (u32 steps = 16; overflowed != 0 && steps < 8 * width_in_all; steps *= 8) compare_again(steps);
    return some_.lists;
}

}  // namespace gnnd::cuda

// SPDX-License-Identifier: MIT
// Scans of rows of distances, and updates of lists. Compiled once per instruction set, under the same rules as
// kernels_isa.cpp.
#include "gnnd/cpu/kernels.h"
#include "gnnd/cpu/simd.h"

namespace gnnd::cpu::GNND_ISA {
namespace {

int nearest(const float* row, int begin, int end) {
    int j = begin;
    float best = row[begin];
    int index = begin;
    if (end - begin >= F32::lanes) {
        F32::Raw values = F32::load(row + j).v;
        I32::Raw where;
        for (int l = 0; l < F32::lanes; ++l) where[l] = j + l;
        I32::Raw here = where;
        for (j += F32::lanes; j + F32::lanes <= end; j += F32::lanes) {
            here += F32::lanes;
            const F32::Raw next = F32::load(row + j).v;
            where = next < values ? here : where;
            values = next < values ? next : values;
        }
        best = values[0];
        index = where[0];
        for (int l = 1; l < F32::lanes; ++l)
            if (values[l] < best || (values[l] == best && where[l] < index)) {
                best = values[l];
                index = where[l];
            }
    }
    for (; j < end; ++j)
        if (row[j] < best) {
            best = row[j];
            index = j;
        }
    return index;
}

void keep_nearer(const float* row, int begin, int end, int i, float* best, std::int32_t* index) {
    for (int j = begin; j < end; ++j) {
        const bool nearer = row[j] < best[j];
        best[j] = nearer ? row[j] : best[j];
        index[j] = nearer ? i : index[j];
    }
}

int within(const float* row, int begin, int end, float bound, const float* bounds, std::int32_t* hits) {
    int count = 0;
    int j = begin;
    const F32::Raw limit = F32::fill(bound).v;
#if defined(__AVX512F__)
    const __m512i numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#endif
    for (; j + F32::lanes <= end; j += F32::lanes) {
        const F32::Raw values = F32::load(row + j).v, limits = F32::load(bounds + j).v;
        I32 inside{(values <= limit) | (values <= limits)};
#if defined(__AVX512F__)
        const __mmask16 mask = _mm512_movepi32_mask((__m512i)inside.v);
        if (mask == 0) continue;
        const __m512i found = _mm512_add_epi32(_mm512_maskz_compress_epi32(mask, numbers), _mm512_set1_epi32(j));
        _mm512_storeu_si512(hits + count, found);  // what follows the hits is overwritten by the next ones
        count += __builtin_popcount(mask);
#else
#if defined(__AVX2__)
        unsigned mask = _mm256_movemask_ps((__m256)inside.v);
#elif defined(__SSE2__)
        unsigned mask = _mm_movemask_ps((__m128)inside.v);
#else
        unsigned mask = 0;
        for (int l = 0; l < F32::lanes; ++l) mask |= (inside.v[l] & 1u) << l;
#endif
        for (; mask != 0; mask &= mask - 1) hits[count++] = j + __builtin_ctz(mask);
#endif
    }
    for (; j < end; ++j)
        if (row[j] <= bound || row[j] <= bounds[j]) hits[count++] = j;
    return count;
}

using Word = std::uint64_t;

int take_one_by_one(Word* list, int length, const Word* offers, int count, Word limit) {
    int entered = 0;
    for (int c = 0; c < count; ++c) {
        const Word entry = offers[c];
        if (entry >= list[length - 1] || entry > limit) continue;
        // The place of an entry is as good as random: a search without branches has nothing to mispredict.
        Word* place = list;
        for (int left = length; left > 1;) {
            const int half = left / 2;
            place += (place[half - 1] < (entry & ~Word(1))) * half;
            left -= half;
        }
        if ((*place | 1) == entry) continue;  // the same object; entry < last, so place is inside
        std::memmove(place + 1, place, (list + length - place - 1) * sizeof(Word));
        *place = entry;
        ++entered;
    }
    return entered;
}

#if defined(__AVX512F__)
/// The same with the list in B registers while it takes in what is offered: every place takes the larger one of the
/// entry and what stands before it, unless what stands there is less.
template <int B>
int take_in_registers(Word* list, int length, const Word* offers, int count, Word limit) {
    // The forms with a mask, for GCC 12 warns of the others that they read what is not set.
    constexpr int kLanes = 8;
    constexpr __mmask8 kAll = 0xff;
    const int rest = length - (B - 1) * kLanes;  // in the last register
    const __mmask8 tail = __mmask8((1 << rest) - 1), last = __mmask8(1 << (rest - 1));
    __m512i v[B];
    for (int b = 0; b < B - 1; ++b) v[b] = _mm512_loadu_si512(list + b * kLanes);
    v[B - 1] = _mm512_mask_loadu_epi64(_mm512_set1_epi64(-1), tail, list + (B - 1) * kLanes);
    const __m512i flag = _mm512_set1_epi64(1);
    int entered = 0;
    for (int c = 0; c < count; ++c) {
        if (offers[c] > limit) continue;
        const __m512i entry = _mm512_set1_epi64((long long)offers[c]);
        if ((_mm512_cmplt_epu64_mask(entry, v[B - 1]) & last) == 0) continue;
        unsigned same = 0;
        for (int b = 0; b < B; ++b) same |= _mm512_cmpeq_epi64_mask(_mm512_or_si512(v[b], flag), entry);
        if (same != 0) continue;
        for (int b = B - 1; b >= 0; --b) {
            const __m512i before = _mm512_maskz_alignr_epi64(kAll, v[b], b > 0 ? v[b - 1] : __m512i{}, kLanes - 1);
            v[b] = _mm512_maskz_min_epu64(kAll, v[b], _mm512_maskz_max_epu64(kAll, before, entry));
        }
        ++entered;
    }
    if (entered == 0) return 0;
    for (int b = 0; b < B - 1; ++b) _mm512_storeu_si512(list + b * kLanes, v[b]);
    _mm512_mask_storeu_epi64(list + (B - 1) * kLanes, tail, v[B - 1]);
    return entered;
}
#elif defined(__AVX2__)
/// True where an entry, which is marked NEW, is in the list, be it NEW or OLD there. length >= 4
bool is_in(const Word* list, int length, Word entry) {
    const __m256i wanted = _mm256_set1_epi64x((long long)entry), flag = _mm256_set1_epi64x(1);
    const auto same = [&](int j) {
        return _mm256_cmpeq_epi64(_mm256_or_si256(_mm256_loadu_si256((const __m256i*)(list + j)), flag), wanted);
    };
    __m256i found = same(length - 4);
    for (int j = 0; j < length - 4; j += 4) found = _mm256_or_si256(found, same(j));
    return _mm256_testz_si256(found, found) == 0;
}

/// The same; but most of what is offered is in the list already (seven of ten offers, measured), and a search for the
/// place of an entry is long where a comparison with all of them at once is short.
int take_unknown(Word* list, int length, const Word* offers, int count, Word limit) {
    constexpr int kAtOnce = 16;
    Word unknown[kAtOnce];
    int entered = 0;
    for (int first = 0; first < count; first += kAtOnce) {
        const int last = first + kAtOnce < count ? first + kAtOnce : count;
        int kept = 0;
        for (int c = first; c < last; ++c) {
            unknown[kept] = offers[c];
            kept += !is_in(list, length, offers[c]);
        }
        entered += take_one_by_one(list, length, unknown, kept, limit);
    }
    return entered;
}
#endif

int take(Word* list, int length, const Word* offers, int count, Word limit) {
#if defined(__AVX512F__)
    switch ((length + 7) / 8) {
        case 1:
            return take_in_registers<1>(list, length, offers, count, limit);
        case 2:
            return take_in_registers<2>(list, length, offers, count, limit);
        case 3:
            return take_in_registers<3>(list, length, offers, count, limit);
        case 4:
            return take_in_registers<4>(list, length, offers, count, limit);
        case 5:
            return take_in_registers<5>(list, length, offers, count, limit);
        case 6:
            return take_in_registers<6>(list, length, offers, count, limit);
        case 7:
            return take_in_registers<7>(list, length, offers, count, limit);
        case 8:
            return take_in_registers<8>(list, length, offers, count, limit);
        default:
            break;
    }
#elif defined(__AVX2__)
    if (length >= 4) return take_unknown(list, length, offers, count, limit);
#endif
    return take_one_by_one(list, length, offers, count, limit);
}

}  // namespace

void add_scans(Kernels& kernels);
void add_scans(Kernels& kernels) {
    kernels.nearest = nearest;
    kernels.keep_nearer = keep_nearer;
    kernels.within = within;
}

TakeEntries taker();
TakeEntries taker() {
    return take;
}

}  // namespace gnnd::cpu::GNND_ISA

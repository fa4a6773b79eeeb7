// SPDX-License-Identifier: MIT
#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/operations/join.cuh"
#include "gnnd/detail/checks.h"

namespace gnnd::cuda {
namespace {

/// A warp a row. An entry's place is the number of smaller ids; with k^2 / 32 comparisons a lane that is less than
/// moving entries about, up to some thousand of them. first_double may be null.
/// \param keys          n x columns, written
/// \param lengths       n, written
/// \param first_double  1: the first row that holds an id twice
__global__ void __launch_bounds__(kRowThreads)
    sort_rows_kernel(Edges edges, EdgeKey* keys, std::int64_t* lengths, u64* first_double) {
    const std::int64_t i = warp_number();
    if (i >= edges.n) return;
    const std::int32_t* ids = edges.ids_of(i);
    const float* values = edges.values_of(i);
    // Those that do not count are larger than any id.
    const auto id_at = [&](std::int64_t j) {
        return j < edges.columns && edges.counts(ids[j], values[j]) ? u32(ids[j]) : ~0u;
    };
    std::int64_t length = 0;
    bool twice = false;
    for (std::int64_t first = 0; first < edges.columns; first += kWarp) {
        const std::int64_t j = first + lane_id();
        const u32 id = id_at(j);
        std::int64_t place = 0;
        for (std::int64_t others = 0; others < edges.columns; others += kWarp) {
            const u32 other_id = id_at(others + lane_id());
            for (int lane = 0; lane < kWarp; ++lane) {
                const u32 other = __shfl_sync(kAllLanes, other_id, lane);
                const bool same = other == id && others + lane < j;  // each of two gets a place of its own
                place += int(other < id || same);
                twice |= same && id != ~0u;
            }
        }
        if (id != ~0u) keys[i * edges.columns + place] = make_key(std::int32_t(id), values[j]);
        length += __popc(__ballot_sync(kAllLanes, id != ~0u));
    }
    twice = __any_sync(kAllLanes, twice);
    if (lane_id() != 0) return;
    lengths[i] = length;
    if (twice && first_double != nullptr) atomicMin(first_double, u64(i));
}

/// A thread an entry: the row that it names, n for none, and what it is there.
/// \param keys, named, turned  n x columns, the last two written
__global__ void __launch_bounds__(kRowThreads)
    turn_kernel(EdgeRows rows, const EdgeKey* keys, u32* named, EdgeKey* turned) {
    const std::int64_t e = thread_number();
    if (e >= rows.n * rows.columns) return;
    const std::int64_t i = e / rows.columns;
    const bool counts = e - i * rows.columns < rows.lengths[i];
    named[e] = counts ? u32(key_id(keys[e])) : u32(rows.n);
    turned[e] = counts ? make_key(std::int32_t(i), key_value(keys[e])) : kNoKey;
}

/// A thread a row, and one more: the first place of those that name the row or a later one.
/// \param named   count, ascending
/// \param begins  n + 1, written
__global__ void __launch_bounds__(kRowThreads)
    begins_kernel(const u32* named, std::int64_t count, std::int64_t n, std::int64_t* begins) {
    const std::int64_t i = thread_number();
    if (i > n) return;
    std::int64_t begin = 0;
    while (count > 0) {
        const std::int64_t half = count / 2;
        const bool smaller = std::int64_t(named[begin + half]) < i;
        begin += smaller ? half + 1 : 0;
        count = smaller ? count - half - 1 : half;
    }
    begins[i] = begin;
}

/// A warp a row: every entry of both directions to its place in `joined`, kNoKey for those that go.
/// \param keys    n x columns, sorted by id
/// \param turned  n x columns, those of turn_kernel() sorted by the row that they name
/// \param joined  2 n x columns, written
/// \param counts  n, written: those that stay
template <class Rule>
__global__ void __launch_bounds__(kRowThreads)
    join_kernel(Rule rule, EdgeRows rows, const EdgeKey* keys, const EdgeKey* turned, EdgeKey* joined,
                std::int64_t* counts) {
    const std::int64_t i = warp_number();
    if (i >= rows.n) return;
    const EdgeKey *own = keys + i * rows.columns, *other = turned + rows.begins[i];
    const std::int64_t owns = rows.lengths[i], others = rows.begins[i + 1] - rows.begins[i];
    EdgeKey* out = joined + rows.begin(i);
    std::int64_t kept = 0;
    const auto put = [&](std::int64_t place, bool there, std::int32_t id, float value) {
        const bool keep = there && rule.keeps(value);
        out[place] = keep ? make_key(id, value) : kNoKey;
        kept += int(keep);
    };
    for (std::int64_t p = lane_id(); p < owns; p += kWarp) {
        const std::int32_t id = key_id(own[p]);
        const std::int64_t q = smaller_ones(other, others, id);
        const bool same = q < others && key_id(other[q]) == id;
        const float value = key_value(own[p]);
        put(p + q, same || Rule::keeps_one, id, same ? rule.both(value, key_value(other[q])) : rule.one(value));
    }
    for (std::int64_t q = lane_id(); q < others; q += kWarp) {
        const std::int32_t id = key_id(other[q]);
        const std::int64_t p = smaller_ones(own, owns, id);
        const bool same = p < owns && key_id(own[p]) == id;  // then it has come with the row's own
        put(q + p + int(same), Rule::keeps_one && !same, id, rule.one(key_value(other[q])));
    }
    kept = warp_sum(kept);
    if (lane_id() == 0) counts[i] = kept;
}

/// A warp a row: the entries without gaps.
/// \param keys             those of rows
/// \param indptr           n + 1
/// \param indices, values  indptr[n], written
__global__ void __launch_bounds__(kRowThreads)
    compact_kernel(EdgeRows rows, const EdgeKey* keys, const std::int64_t* indptr, std::int32_t* indices,
                   float* values) {
    const std::int64_t i = warp_number();
    if (i >= rows.n) return;
    const EdgeKey* row = keys + rows.begin(i);
    const std::int64_t count = rows.count(i);
    std::int64_t out = indptr[i];
    for (std::int64_t first = 0; first < count; first += kWarp) {
        const EdgeKey key = first + lane_id() < count ? row[first + lane_id()] : kNoKey;
        const u32 those = __ballot_sync(kAllLanes, key != kNoKey);
        if (key != kNoKey) {
            indices[out + rank_in(those)] = key_id(key);
            values[out + rank_in(those)] = key_value(key);
        }
        out += __popc(those);
    }
}

/// The arrays of a matrix whose n is set, in host memory.
CsrSpan in(CsrGraph& matrix, std::int64_t entries) {
    matrix.indptr.resize(std::size_t(matrix.n) + 1);
    matrix.indices.resize(std::size_t(entries));
    matrix.values.resize(std::size_t(entries));
    return {matrix.indptr.data(), matrix.indices.data(), matrix.values.data()};
}

/// Memory for a kernel to write to: the array itself, or `own` in its place where it lies on the host.
template <class T>
T* seen_from_device(T* array, DeviceArray<T>& own, std::int64_t count, Work& work) {
    if (on_device(array)) return array;
    own = DeviceArray<T>(work, count);
    return own;
}

/// The other direction: its entries, and where each row begins.
struct TurnedRows {
    DeviceArray<EdgeKey> keys[2];
    DeviceArray<std::int64_t> begins;

    TurnedRows(const EdgeRows& rows, const EdgeKey* own, Work& work) : begins(work, rows.n + 1) {
        const std::int64_t entries = rows.n * rows.columns;
        const DeviceArray<u32> named[2] = {{work, entries}, {work, entries}};
        for (DeviceArray<EdgeKey>& array : keys) array = DeviceArray<EdgeKey>(work, entries);
        launch_threads("turn_kernel", turn_kernel, entries, work.stream, rows, own, named[0].get(), keys[0].get());
        cub::DoubleBuffer<u32> by(named[0], named[1]);
        cub::DoubleBuffer<EdgeKey> what(keys[0], keys[1]);
        std::size_t bytes = 0;
        const auto sort = [&](void* room) {
            GNND_CUDA(cub::DeviceRadixSort::SortPairs(room, bytes, by, what, entries, 0, std::bit_width(u64(rows.n)),
                                                      cudaStream_t(work.stream)));
        };
        sort(nullptr);
        const DeviceArray<std::byte> room(work, std::int64_t(bytes));
        sort(room);
        launch_threads("begins_kernel", begins_kernel, rows.n + 1, work.stream, by.Current(), entries, rows.n,
                       begins.get());
        if (what.Current() != keys[0]) std::swap(keys[0], keys[1]);
        keys[1] = {};
    }
};

}  // namespace

SortedRows::SortedRows(const Edges& edges, bool refuse_doubles, Work& work)
    : keys(work, edges.n * edges.columns), lengths(work, edges.n + 1) {
    const First twice(work);
    launch_warps("sort_rows_kernel", sort_rows_kernel, edges.n, work.stream, edges, keys.get(), lengths.get(),
                 refuse_doubles ? twice.get() : nullptr);
    if (!refuse_doubles) return;
    if (const std::int64_t i = twice.read(work); i >= 0) detail::refuse_double(i);
}

CsrGraph to_matrix(const EdgeRows& rows, const EdgeKey* keys, std::int64_t* counts, const CsrRoom& room, Work& work) {
    std::size_t bytes = 0;
    const auto add_up = [&](void* room) {
        GNND_CUDA(cub::DeviceScan::ExclusiveSum(room, bytes, counts, counts, rows.n + 1, cudaStream_t(work.stream)));
    };
    GNND_CUDA(cudaMemsetAsync(counts + rows.n, 0, sizeof *counts, work.stream));
    add_up(nullptr);
    {
        const DeviceArray<std::byte> scratch(work, std::int64_t(bytes));
        add_up(scratch);
    }
    const std::int64_t entries = work.read(counts + rows.n);
    CsrGraph matrix;
    matrix.n = rows.n;
    const CsrSpan to = room ? room(rows.n, entries) : in(matrix, entries);
    int device = 0;
    GNND_CUDA(cudaGetDevice(&device));
    detail::check_reach({Device::Kind::cuda, device}, {to.indptr, to.indices, to.values});
    DeviceArray<std::int32_t> indices;
    DeviceArray<float> values;
    const Drain drain(work.stream);
    launch_warps("compact_kernel", compact_kernel, rows.n, work.stream, rows, keys, counts,
                 seen_from_device(to.indices, indices, entries, work),
                 seen_from_device(to.values, values, entries, work));
    const auto copy = [&]<class T>(T* out, const T* from, std::int64_t count) {
        if (from != nullptr && count > 0)
            copy_out(out, from, std::size_t(count) * sizeof(T), work.resources, work.stream);
    };
    copy(to.indptr, static_cast<const std::int64_t*>(counts), rows.n + 1);
    copy(to.indices, static_cast<const std::int32_t*>(indices.get()), entries);
    copy(to.values, static_cast<const float*>(values.get()), entries);
    await(work.stream, work.callbacks);
    GNND_CUDA(cudaStreamSynchronize(work.stream));
    return matrix;
}

template <class Rule>
CsrGraph join_directions(const Edges& edges, const Rule& rule, const CsrRoom& room, Work& work) {
    SortedRows own(edges, true, work);
    EdgeRows rows{edges.n, edges.columns, own.lengths, nullptr};
    TurnedRows turned(rows, own.keys, work);
    rows.begins = turned.begins;
    const DeviceArray<EdgeKey> joined(work, 2 * edges.n * edges.columns);
    const DeviceArray<std::int64_t> counts(work, edges.n + 1);
    launch_warps("join_kernel", join_kernel<Rule>, edges.n, work.stream, rule, rows, own.keys.get(),
                 turned.keys[0].get(), joined.get(), counts.get());
    own.keys = {};
    turned.keys[0] = {};
    return to_matrix(rows, joined, counts, room, work);
}

template CsrGraph join_directions(const Edges&, const detail::Nearer<false, false>&, const CsrRoom&, Work&);
template CsrGraph join_directions(const Edges&, const detail::Nearer<false, true>&, const CsrRoom&, Work&);
template CsrGraph join_directions(const Edges&, const detail::Nearer<true, false>&, const CsrRoom&, Work&);
template CsrGraph join_directions(const Edges&, const detail::Nearer<true, true>&, const CsrRoom&, Work&);
template CsrGraph join_directions(const Edges&, const detail::FuzzyRule&, const CsrRoom&, Work&);

}  // namespace gnnd::cuda

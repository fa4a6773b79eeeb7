// SPDX-License-Identifier: MIT
#include "gnnd/shards/restore.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "gnnd/array.h"
#include "gnnd/cpu/parallel.h"
#include "gnnd/error.h"
#include "gnnd/shards/ids.h"

namespace gnnd::shards {
namespace {

/// Rows of a shard's lists that are read at a time.
constexpr std::int64_t kRows = 1 << 13;

/// Objects at the same distance are in the order of their ids.
template <class Id>
void sort_ties(std::int64_t k, Id* ids, const float* distances) {
    for (std::int64_t begin = 0, end = 0; begin < k && ids[begin] >= 0; begin = end) {
        for (end = begin + 1; end < k && ids[end] >= 0 && distances[end] == distances[begin];) ++end;
        std::sort(ids + begin, ids + end);
    }
}

/// \tparam Id  of the lists and the results
template <class Id>
void restore_as(Folder& folder, const Manifest& manifest, int threads, const std::function<bool()>& interrupt) {
    const io::VectorFile order_file = folder.open_order();
    const void* const order = order_file.view().data;
    Ordered ordered{static_cast<const std::int32_t*>(order), order_file.path(),
                    [&](int shard) { return folder.open_lists(shard); }};
    if (order_file.d() == 2) ordered.order = static_cast<const std::int64_t*>(order);
    const std::int64_t k = manifest.params.k;
    for (int result = 0; result < manifest.count(); ++result) {
        if (manifest.shards[result].result) continue;
        const std::int64_t rows = manifest.rows(result);
        Array<Id> ids(static_cast<std::size_t>(rows * k));
        Array<float> distances(static_cast<std::size_t>(rows * k));
        restore_rows(ordered, manifest, result, ids.data(), distances.data(), threads, interrupt);
        folder.put_result(result, GraphView<Id>{rows, k, manifest.params.metric, ids.data(), distances.data()});
        folder.commit();
    }
}

/// \tparam Row  of the order
template <class Row, class Id>
void restore_by(const Row* order, const Ordered& ordered, const Manifest& manifest, int result, Id* result_ids,
                float* result_distances, int threads, const std::function<bool()>& interrupt) {
    const std::int64_t k = manifest.params.k, n = manifest.base.n;
    const std::int64_t begin = manifest.begin(result), rows = manifest.rows(result);
    const cpu::Team team{cpu::Team::resolve(threads), &interrupt};
    const auto refuse = [&] { throw IoError(ordered.name + ": altered: it is no order of the base"); };
    std::vector<char> filled(static_cast<std::size_t>(rows));
    for (int shard = 0; shard < manifest.count(); ++shard) {
        const Row *first = order + manifest.begin(shard), *last = order + manifest.begin(shard + 1);
        const Row* const from = std::lower_bound(first, last, begin);
        const Row* const to = std::lower_bound(from, last, begin + rows);
        if (from == to) continue;
        const io::GraphFile lists = ordered.open_lists(shard);
        team.for_chunks(to - from, kRows, [&](int, std::int64_t chunk, std::int64_t end) {
            std::vector<Id> places(std::size_t((end - chunk) * k));
            std::vector<float> distances(places.size());
            lists.read_into(from - first + chunk, end - chunk, places.data(), distances.data());
            for (std::int64_t i = 0; i < end - chunk; ++i) {
                const std::int64_t row = from[chunk + i] - begin;
                if (row < 0 || row >= rows || std::exchange(filled[std::size_t(row)], 1) != 0) refuse();
                Id* const ids = result_ids + row * k;
                for (std::int64_t j = 0; j < k; ++j) {
                    const Id place = places[std::size_t(i * k + j)];
                    ids[j] = place < 0 ? Id(-1) : Id(order[place]);
                    if (ids[j] < -1 || ids[j] >= n) refuse();
                }
                std::copy_n(distances.data() + i * k, k, result_distances + row * k);
                sort_ties(k, ids, distances.data() + i * k);
            }
        });
    }
    if (std::find(filled.begin(), filled.end(), 0) != filled.end()) refuse();
}

}  // namespace

template <class Id>
void restore_rows(const Ordered& ordered, const Manifest& manifest, int result, Id* ids, float* distances, int threads,
                  const std::function<bool()>& interrupt) {
    std::visit(
        [&](const auto* order) { restore_by(order, ordered, manifest, result, ids, distances, threads, interrupt); },
        ordered.order);
}
template void restore_rows(const Ordered&, const Manifest&, int, std::int32_t*, float*, int,
                           const std::function<bool()>&);
template void restore_rows(const Ordered&, const Manifest&, int, std::int64_t*, float*, int,
                           const std::function<bool()>&);

void restore(Folder& folder, int threads, const std::function<bool()>& interrupt) {
    const Manifest manifest = folder.manifest();
    with_id_type(manifest.id_bytes, [&]<class Id>(Id) { restore_as<Id>(folder, manifest, threads, interrupt); });
}

}  // namespace gnnd::shards

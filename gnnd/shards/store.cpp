// SPDX-License-Identifier: MIT
#include "gnnd/shards/store.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>

#include "gnnd/cpu/parallel.h"
#include "gnnd/detail/fold.h"
#include "gnnd/error.h"
#include "gnnd/shards/ids.h"
#include "gnnd/shards/threads.h"

namespace gnnd::shards {
namespace {

/// Of a graph with local ids.
constexpr std::uint64_t kEntryBytes = sizeof(std::int32_t) + sizeof(float);

thread_local Traffic* current_traffic = nullptr;

void count_read(std::uint64_t bytes) {
    if (current_traffic != nullptr) current_traffic->read += bytes;
}
void count_written(std::uint64_t bytes) {
    if (current_traffic != nullptr) current_traffic->written += bytes;
}

/// Files that are written at a time where many are: each waits for the disk to say that it is durable.
constexpr int kFlushers = 8;

/// One thread neither copies nor touches new memory as fast as a disk reads; more rows at a time than these are no
/// faster.
constexpr std::int64_t kReadRows = 1 << 16;
/// More read no faster, and each thread that reads has so many of its own, to be started and ended.
constexpr int kReaders = 16;

/// All of the file, as a PinnedGraph has it.
template <class Id = std::int32_t>
void read_graph(const io::GraphFile& file, std::byte* data, int threads) {
    auto* ids = reinterpret_cast<Id*>(data);
    auto* distances = reinterpret_cast<float*>(ids + file.n() * file.k());
    const std::int64_t rows = std::max<std::int64_t>(1, kReadRows / file.block_rows()) * file.block_rows();
    cpu::Team{threads, nullptr}.for_chunks(file.n(), rows, [&](int, std::int64_t begin, std::int64_t end) {
        file.read_into(begin, end - begin, ids + begin * file.k(), distances + begin * file.k());
    });
    count_read(file.bytes());
}

bool contains(const std::vector<int>& sorted, int value) {
    return std::binary_search(sorted.begin(), sorted.end(), value);
}

}  // namespace

CountTraffic::CountTraffic(Traffic* traffic) : before_(std::exchange(current_traffic, traffic)) {}

CountTraffic::~CountTraffic() {
    current_traffic = before_;
}

std::function<void()> counted(std::function<void()> job) {
    return [job = std::move(job), traffic = current_traffic] {
        const CountTraffic count(traffic);
        job();
    };
}

HostBudget host_budget(const Manifest& manifest, int workers) {
    const bool alone = manifest.count() == 1;
    const auto rows = std::uint64_t(manifest.most_rows());
    const std::uint64_t vectors = rows * std::uint64_t(manifest.base.d) * size_of(manifest.base.dtype);
    const std::uint64_t local = alone ? 0 : rows * std::uint64_t(manifest.local_columns()) * kEntryBytes;
    const std::uint64_t lists = rows * std::uint64_t(manifest.params.k) * manifest.list_entry_bytes();
    const std::uint64_t pair = 2 * rows * std::uint64_t(manifest.params.k) * kEntryBytes;
    const std::uint64_t result = alone ? 0 : pair;
    // With wide ids lists lie beside what was built.
    const std::uint64_t build = vectors + local + lists + (manifest.has_wide_ids() ? pair : 0);
    const std::uint64_t merge = alone ? 0 : 2 * (vectors + local) + result;
    const std::uint64_t fold = alone ? 0 : result + lists;  // or, less, a new shard that is being written
    const auto busy = std::uint64_t(std::min(workers, manifest.count()));
    HostBudget need;
    need.least = busy * std::max(build, alone ? 0 : merge + lists);
    need.overlapped = busy * (fold + std::max(build, merge) + (alone ? 0 : vectors + local));
    return need;
}

Store::Store(const io::VectorReader& base, Folder& folder, std::uint64_t host_bytes, int threads, Resources& resources,
             RecallSample* recall)
    : base_(base),
      folder_(folder),
      manifest_(folder.manifest()),
      threads_(cpu::Team::resolve(threads)),
      recall_(recall),
      cache_(host_bytes, resources, [this](const Cache::Key& key, const std::byte* data) { write(key, data); }) {
    for (const ShardRecord& shard : manifest_.shards) merged_.push_back(shard.merged);
}

bool Store::merged(const Task& merge) const {
    return contains(manifest_.shards[merge.first].merged, merge.second) &&
           contains(manifest_.shards[merge.second].merged, merge.first);
}

int Store::readers() const {
    return std::min(threads_, kReaders);
}

PinnedVectors Store::vectors(int shard) {
    const std::int64_t n = rows(shard);
    const std::size_t bytes = std::size_t(n) * std::size_t(base_.d()) * size_of(base_.dtype());
    Cache::Pin pin = cache_.pin({Cache::Kind::vectors, shard}, bytes, [&](std::byte* data) {
        const std::size_t row = bytes / std::size_t(n);
        cpu::Team{readers(), nullptr}.for_chunks(n, kReadRows, [&](int, std::int64_t begin, std::int64_t end) {
            base_.read(manifest_.begin(shard) + begin, end - begin, data + std::size_t(begin) * row);
        });
        count_read(bytes);
    });
    const VectorView view{pin.data(), n, base_.d(), base_.dtype(), 0};
    return {std::move(pin), view};
}

PinnedGraph Store::graph(Cache::Kind kind, int shard, std::int64_t k, int id_bytes, const Cache::Fill& fill) {
    // The same size for all, so that any can have the memory of any that is not needed any more.
    const std::uint64_t bytes = std::uint64_t(manifest_.most_rows() * k) * (std::uint64_t(id_bytes) + sizeof(float));
    return {cache_.pin({kind, shard}, bytes, fill), rows(shard), k, manifest_.params.metric, id_bytes};
}

PinnedGraph Store::local(int shard) {
    return graph(Cache::Kind::local, shard, manifest_.local_columns(), sizeof(std::int32_t),
                 [&](std::byte* data) { read_graph(folder_.open_local(shard), data, readers()); });
}

PinnedGraph Store::new_local(int shard) {
    return graph(Cache::Kind::local, shard, manifest_.local_columns(), sizeof(std::int32_t), nullptr);
}

PinnedGraph Store::lists(int shard) {
    return graph(Cache::Kind::lists, shard, manifest_.params.k, manifest_.id_bytes, [&](std::byte* data) {
        with_id_type(manifest_.id_bytes,
                     [&]<class Id>(Id) { read_graph<Id>(folder_.open_lists(shard), data, readers()); });
    });
}

PinnedGraph Store::take_lists(int shard, std::vector<int>& merged) {
    PinnedGraph graph = lists(shard);
    merged = merged_[shard];
    return graph;
}

void Store::taken(PinnedGraph&& lists) {
    cache_.forget(std::move(lists.pin));
}

PinnedGraph Store::new_lists(int shard) {
    return graph(Cache::Kind::lists, shard, manifest_.params.k, manifest_.id_bytes, nullptr);
}

void Store::given(int shard, const PinnedGraph& lists, const std::vector<int>& merged) {
    merged_[shard] = merged;
    lists.pin.mark_dirty();
}

PinnedGraph Store::scratch(std::int64_t rows) {
    const std::int64_t k = manifest_.params.k;
    const std::int64_t most = std::max(rows, 2 * manifest_.most_rows());  // as graph()
    return {cache_.scratch(std::uint64_t(most * k) * kEntryBytes), rows, k, manifest_.params.metric};
}

PinnedGraph Store::new_graph(int shard) {
    if (manifest_.shards[shard].built() || manifest_.has_wide_ids()) return scratch(rows(shard));
    return new_lists(shard);
}

void Store::split_build(int shard, const PinnedGraph& built) {
    if (manifest_.count() > 1) {
        const PinnedGraph local = new_local(shard);
        constexpr std::int64_t kRows = 4096;
        cpu::Team{threads_, nullptr}.for_chunks(built.n, kRows, [&](int, std::int64_t first, std::int64_t last) {
            for (std::int64_t i = first; i < last; ++i) {
                std::copy_n(built.ids() + i * built.k, local.k, local.ids() + i * local.k);
                std::copy_n(built.distances() + i * built.k, local.k, local.distances() + i * local.k);
            }
        });
        local.pin.mark_dirty();
    }
    if (manifest_.shards[shard].built()) return;
    const PinnedGraph lists = new_lists(shard);  // narrow ones are what was built there
    with_id_type(lists.id_bytes, [&]<class Id>(Id) {
        detail::put_rows(built.view(), manifest_.begin(shard), lists.ids<Id>(), lists.distances(), threads_);
    });
    lists.pin.mark_dirty();
}

void Store::fold_pair(const Task& task, const KnnGraphView& result) {
    const std::int64_t n1 = rows(task.first), n2 = rows(task.second);
    KnnGraphView found = result;
    found.n = n1;
    fold_into(task.first, task.second, found, std::int32_t(n1));
    found = {n2, result.k, result.metric, result.ids_of(n1), result.distances_of(n1)};
    fold_into(task.second, task.first, found, 0);
}

/// \param first  id of the partner's first object in what was found
void Store::fold_into(int shard, int partner, const KnnGraphView& found, std::int32_t first) {
    const PinnedGraph lists = this->lists(shard);
    std::vector<int>& merged = merged_[shard];
    if (contains(merged, partner))
        return;                         // before the last run ended, when its lists were written and the other's not
    merged.reserve(merged.size() + 1);  // so that nothing can fail once the lists are changed
    const detail::Partner objects{first, std::int32_t(first + rows(partner)), manifest_.begin(partner)};
    with_id_type(lists.id_bytes, [&]<class Id>(Id) {
        detail::fold(found, objects, lists.k, lists.ids<Id>(), lists.distances(), threads_);
    });
    merged.insert(std::lower_bound(merged.begin(), merged.end(), partner), partner);
    lists.pin.mark_dirty();
}

void Store::write_lists_of(int shard) {
    flush([&](const Cache::Key& key) { return key.kind == Cache::Kind::lists && key.number == shard; }, 1);
    cache_.forget({Cache::Kind::lists, shard});
}

void Store::flush() {
    flush([](const Cache::Key&) { return true; }, kFlushers);
}

void Store::flush_lists() {
    flush([](const Cache::Key& key) { return key.kind == Cache::Kind::lists; }, kFlushers);
}

/// One manifest for all. What must go from memory meanwhile waits for it too.
void Store::flush(const std::function<bool(const Cache::Key&)>& wanted, int threads) {
    ++flushes_;
    std::mutex mutex;
    std::exception_ptr error;
    const std::function<void()> job = counted([&] {
        try {
            cache_.flush(wanted);  // passes over what another thread is writing
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (!error) error = std::current_exception();
        }
    });
    {
        Threads others;
        try {
            for (int i = 1; i < threads; ++i) others.start(job);
        } catch (const Error&) {  // those that are there do it
        }
        job();
    }
    --flushes_;
    try {
        folder_.commit();
    } catch (const IoError&) {  // the first error is told
        if (!error) throw;
    }
    if (error) std::rethrow_exception(error);
}

void Store::write(const Cache::Key& key, const std::byte* data) {
    const int shard = int(key.number);
    if (key.kind == Cache::Kind::local) {
        const std::int64_t k = manifest_.local_columns();
        const auto* ids = reinterpret_cast<const std::int32_t*>(data);
        folder_.put_local(shard, {rows(shard), k, manifest_.params.metric, ids,
                                  reinterpret_cast<const float*>(ids + rows(shard) * k)});
        count_written(io::graph_file_bytes(rows(shard), k));
    } else {
        with_id_type(manifest_.id_bytes, [&]<class Id>(Id) { write_lists<Id>(shard, data); });
    }
    if (flushes_ == 0) folder_.commit();
}

template <class Id>
void Store::write_lists(int shard, const std::byte* data) {
    const std::int64_t n = rows(shard), k = manifest_.params.k;
    const auto* ids = reinterpret_cast<const Id*>(data);
    const GraphView<Id> lists{n, k, manifest_.params.metric, ids, reinterpret_cast<const float*>(ids + n * k)};
    folder_.put_lists(shard, lists, merged_[shard]);
    if (recall_ != nullptr) recall_->take_lists(shard, lists);
    count_written(io::graph_file_bytes(n, k, false, false, sizeof(Id)));
}

}  // namespace gnnd::shards

// SPDX-License-Identifier: MIT
// What a graph in shards will take before it is built: time, and bytes on the disk, the bus and the device. Goes
// through the tasks in their order with the contents of device and host memory, as a GPU's executor and the store keep
// them, and with rates measured on the machine (sharded_bench prints them). One line for each number of shards.
//
//   sharded_plan --n 1000000000 -k 32 --shards 40,64 --host 500
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gnnd/dtype.h"
#include "gnnd/error.h"
#include "gnnd/shards/folder.h"
#include "gnnd/shards/manifest.h"
#include "gnnd/shards/schedule.h"

namespace {

using gnnd::shards::Manifest;
using gnnd::shards::Task;

/// Sizes in GB, rates in GB/s and in seconds per 1,000,000 objects.
struct Machine {
    int workers = 1;
    double device = 140, host = 96;
    double work = 892e-9;  ///< of device memory, for each object of a merge, beside vectors and result
    double checkpoint = 60;
    double build = 0.056;   ///< objects of the shard
    double merge = 0.0375;  ///< objects of both shards
    double read = 1.6, write = 1.2;
    double to_device = 18, from_device = 15, between = 300;
};

/// A part of a shard (v: vectors, l: local graph, g: lists) or, on a device, the whole (s).
using Key = std::pair<char, int>;

/// Memory of a given size; what was used least recently goes first.
class Memory {
  public:
    struct Item {
        double bytes;
        int used;
        bool changed;
    };

    explicit Memory(double room) : room_(room) {}

    /// \param evicted  called with what has to go
    /// \return whether it was not there
    template <class Evicted>
    bool add(const Key& key, double bytes, const Evicted& evicted) {
        const auto [item, is_new] = items.try_emplace(key, Item{bytes, 0, false});
        item->second.used = ++clock_;
        if (!is_new) return false;
        held_ += bytes;
        while (held_ > room_ && items.size() > 1) {
            const auto oldest = std::min_element(
                items.begin(), items.end(), [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
            const auto [gone, state] = *oldest;
            drop(gone);
            evicted(gone, state);
        }
        most = std::max(most, held_);
        return true;
    }
    void drop(const Key& key) {
        const auto item = items.find(key);
        if (item == items.end()) return;
        held_ -= item->second.bytes;
        items.erase(item);
    }

    std::map<Key, Item> items;
    double most = 0;

  private:
    double room_, held_ = 0;
    int clock_ = 0;
};

class Worker;

/// What all workers share.
struct Host {
    Memory memory;
    std::set<int> has_local;          ///< shards whose local graph a worker has given
    std::map<int, Worker*> lists_at;  ///< whose device holds a shard's lists, where all shards stay on devices
};

/// Of one worker. The GPU, what moves shards, what delivers finished lists and what writes them each go on by
/// themselves and wait for each other as the runner's threads do.
class Worker {
  public:
    Worker(const Machine& machine, const Manifest& manifest, Host& host)
        : machine_(machine),
          host_(host),
          millions_(double(manifest.most_rows()) * 1e-6),
          vectors_(millions_ * double(manifest.base.d) * double(size_of(manifest.base.dtype)) * 1e-3),
          local_(millions_ * manifest.local_columns() * 8e-3),
          lists_(millions_ * manifest.params.k * 8e-3),
          fixed_(2 * (vectors_ + lists_ + millions_ * 1e6 * machine.work)),
          slots(std::min(manifest.count(), int((machine.device - fixed_) / (vectors_ + local_ + lists_)))),
          takes_over_(machine.workers > 1 && slots == manifest.count()),
          device_(slots * (vectors_ + local_ + lists_) * (1 + 1e-9)) {}

    /// \param following  of the next round, if it can be prepared: a build
    void run(const std::vector<Task>& tasks, const Task* following, bool last_round) {
        if (!tasks.empty()) fetch(tasks[0]);
        for (std::size_t i = 0; i < tasks.size(); ++i) {
            const Task& task = tasks[i];
            const double begin = std::max(computed_, fetched_);
            fetched_ = begin;
            if (const Task* next = i + 1 < tasks.size() ? &tasks[i + 1] : following) fetch(*next);
            const bool build = task.kind == Task::Kind::build;
            const double took = millions_ * (build ? machine_.build : 2 * machine_.merge);
            busy += took;
            computed_ = begin + took;
            for (const int shard : std::set{task.first, task.second}) {
                device_.items.at({'s', shard}).changed = true;
                if (--left[shard] == 0) finish(shard);
            }
            if (computed_ - checkpoint_ >= machine_.checkpoint) checkpoint();
        }
        fetched_ = std::max(fetched_, computed_);
        if (!last_round && !takes_over_) deliver();
    }
    double end(bool last_round) const { return std::max({computed_, fetched_, last_round ? written_ : 0.0}); }
    void wait_until(double time) { computed_ = fetched_ = time; }
    double device_bytes() const { return fixed_ + slots * (vectors_ + local_ + lists_); }

  private:
    const Machine& machine_;
    Host& host_;
    const double millions_, vectors_, local_, lists_, fixed_;

  public:
    const int slots;
    std::map<int, int> left;  ///< tasks of a shard, of all workers
    double busy = 0, read = 0, written = 0, copied = 0;

  private:
    /// Seconds, where workers share the disk.
    double on_disk(double& total, double bytes, double rate) const {
        total += bytes;
        return bytes / rate * machine_.workers;
    }
    bool hold(const Key& key, double bytes) {
        return host_.memory.add(key, bytes, [&](const Key&, const Memory::Item& item) {
            if (item.changed) fetched_ += on_disk(written, item.bytes, machine_.write);
        });
    }
    void bring(const Key& key, double bytes) {
        if (hold(key, bytes)) fetched_ += on_disk(read, bytes, machine_.read);
        fetched_ += bytes / machine_.to_device;
        copied += bytes;
    }
    void give(const Key& key, double bytes) {
        hold(key, bytes);
        host_.memory.items.at(key).changed = true;
        fetched_ += bytes / machine_.from_device;
        copied += bytes;
    }
    /// Lists, and the local graph once.
    void give_graphs(int shard) {
        give({'g', shard}, lists_);
        if (host_.has_local.insert(shard).second) give({'l', shard}, local_);
    }
    void fetch(const Task& task) {
        for (const int shard : std::set{task.first, task.second}) {
            const bool absent =
                device_.add({'s', shard}, vectors_ + local_ + lists_, [&](const Key& key, const Memory::Item& item) {
                    if (item.changed) give_graphs(key.second);
                });
            if (takes_over_ && host_.lists_at.contains(shard)) {
                take_over(shard, absent);
                continue;
            }
            host_.lists_at[shard] = this;
            if (!absent) continue;
            bring({'v', shard}, vectors_);
            if (task.kind == Task::Kind::build) continue;
            bring({'l', shard}, local_);
            bring({'g', shard}, lists_);
            host_.memory.drop({'g', shard});
        }
    }
    /// From another device.
    void take_over(int shard, bool absent) {
        if (absent) fetched_ += (vectors_ + local_) / machine_.between;
        Worker* const from = std::exchange(host_.lists_at[shard], this);
        if (from == this) return;
        fetched_ += lists_ / machine_.between;
        from->device_.items.at({'s', shard}).changed = false;
    }
    void finish(int shard) {
        if (device_.items.count({'s', shard}) != 0) {
            hold({'g', shard}, lists_);
            copied += lists_;
            delivered_ = std::max(delivered_, computed_) + lists_ / machine_.from_device;
        }
        device_.drop({'s', shard});
        if (const auto item = host_.memory.items.find({'g', shard}); item != host_.memory.items.end())
            item->second.changed = false;
        written_ = std::max(written_, std::max(delivered_, computed_)) + on_disk(written, lists_, machine_.write);
    }
    void deliver() {
        for (auto& [key, item] : device_.items)
            if (std::exchange(item.changed, false)) give_graphs(key.second);
    }
    void checkpoint() {
        fetched_ = std::max(fetched_, computed_);
        deliver();
        computed_ = checkpoint_ = fetched_;
        for (auto& [key, item] : host_.memory.items)
            if (std::exchange(item.changed, false))
                written_ = std::max(written_, computed_) + on_disk(written, item.bytes, machine_.write);
    }

    const bool takes_over_;  ///< all shards stay on devices, from one of which to another they are copied
    Memory device_;
    double computed_ = 0, fetched_ = 0, delivered_ = 0, written_ = 0, checkpoint_ = 0;  ///< up to when
};

void print_row(const Manifest& manifest, const Machine& machine, int slots, double seconds, double busy, double read,
               double written, double copied, double host, double device) {
    std::printf("| %d | %d | %d | %.1f | %.2f | %.0f%% | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f |\n", manifest.count(),
                manifest.pairs(), slots, seconds, seconds / 3600, 100 * busy / seconds, read, written, copied,
                double(gnnd::shards::disk_need(manifest, machine.workers)) * 1e-9, host, device);
}

/// From the disk to the device and back, one after the other.
void print_one(const Machine& machine, const Manifest& manifest) {
    const double millions = double(manifest.base.n) * 1e-6, lists = millions * manifest.params.k * 8e-3;
    const double vectors = millions * double(manifest.base.d) * double(size_of(manifest.base.dtype)) * 1e-3;
    const double busy = millions * machine.build + vectors / machine.to_device + lists / machine.from_device;
    const double device = vectors + lists + millions * 1e6 * machine.work;
    if (device > machine.device)
        std::printf("| 1 | does not fit the device |\n");
    else
        print_row(manifest, machine, 0, busy + vectors / machine.read + lists / machine.write, busy, vectors, lists,
                  vectors + lists, vectors + lists, device);
}

void print(const Machine& machine, const Manifest& manifest) {
    if (manifest.count() == 1) return print_one(machine, manifest);
    const gnnd::shards::Schedule schedule = gnnd::shards::make_schedule(manifest.count(), machine.workers);
    Host host{Memory(machine.host), {}, {}};
    std::vector<Worker> workers(machine.workers, Worker(machine, manifest, host));
    if (workers[0].slots < std::min(3, manifest.count())) {
        std::printf("| %d | does not fit the device |\n", manifest.count());
        return;
    }
    double seconds = 0;
    for (std::size_t round = 0; round < schedule.rounds.size(); ++round) {
        const bool last = round + 1 == schedule.rounds.size();
        for (std::size_t w = 0; w < workers.size(); ++w) {
            // A shard is through when no later round uses it.
            workers[w].left.clear();
            for (std::size_t later = round; later < schedule.rounds.size(); ++later)
                for (const auto& tasks : schedule.rounds[later])
                    for (const Task& task : tasks)
                        for (const int shard : std::set{task.first, task.second}) ++workers[w].left[shard];
            workers[w].wait_until(seconds);
            const Task* following =
                last || schedule.rounds[round + 1][w].empty() ? nullptr : &schedule.rounds[round + 1][w][0];
            if (following != nullptr && following->kind != Task::Kind::build) following = nullptr;
            workers[w].run(schedule.rounds[round][w], following, last);
        }
        for (const Worker& worker : workers) seconds = std::max(seconds, worker.end(last));
    }
    double busy = 0, read = 0, written = 0, copied = 0;
    for (const Worker& worker : workers) {
        busy += worker.busy / double(workers.size());
        read += worker.read;
        written += worker.written;
        copied += worker.copied;
    }
    print_row(manifest, machine, workers[0].slots, seconds, busy, read, written, copied, host.memory.most,
              workers[0].device_bytes());
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{
        "Predicts what graphs in shards take on a GPU, from measured rates. GB are 10^9 bytes; device memory is each "
        "worker's, all other figures are of all workers."};
    app.get_formatter()->column_width(36);
    Machine machine;
    Manifest manifest;
    manifest.base.n = 1'000'000'000;
    manifest.base.d = 128;
    manifest.params.k = 32;
    manifest.base.dtype = gnnd::DType::u8;
    std::map<std::string, gnnd::DType> dtypes;
    for (const gnnd::DType dtype : {gnnd::DType::f32, gnnd::DType::f16, gnnd::DType::u8, gnnd::DType::i8})
        dtypes.emplace(name_of(dtype), dtype);
    std::vector<int> shards{32};
    const auto add = [&](const char* name, auto& value, const char* help) {
        app.add_option(name, value, help)->capture_default_str();
    };
    add("--n", manifest.base.n, "vectors");
    add("-d", manifest.base.d, "components");
    app.add_option("--dtype", manifest.base.dtype, "of the components")
        ->transform(CLI::CheckedTransformer(dtypes))
        ->default_str(std::string(name_of(manifest.base.dtype)));
    add("-k", manifest.params.k, "neighbours");
    app.add_option("--shards", shards, "numbers of shards to compare")->delimiter(',')->capture_default_str();
    add("--workers", machine.workers, "GPUs");
    add("--device", machine.device, "device memory of each, GB");
    add("--host", machine.host, "host memory for shards, GB");
    add("--work", machine.work, "device memory that a merge works in, GB per object");
    add("--checkpoint", machine.checkpoint, "seconds between checkpoints");
    add("--build", machine.build, "seconds to build the graph of 1,000,000 objects");
    add("--merge", machine.merge, "seconds to merge two graphs of 1,000,000 objects together");
    add("--read", machine.read, "the disk's GB/s");
    add("--write", machine.write, "the disk's GB/s");
    add("--to-device", machine.to_device, "GB/s from host memory");
    add("--from-device", machine.from_device, "GB/s to host memory");
    add("--between", machine.between, "GB/s from one device to another, where all shards fit each");
    CLI11_PARSE(app, argc, argv);
    try {
        std::printf(
            "| shards | pairs | on the device | seconds | hours | GPU | GB read | written | copied | disk | host | "
            "device |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n");
        for (const int count : shards) {
            manifest.shards.assign(std::size_t(std::max(0, count)), {});
            print(machine, manifest);
        }
    } catch (const gnnd::Error& error) {
        std::fprintf(stderr, "sharded_plan: %s\n", error.what());
        return 1;
    }
}

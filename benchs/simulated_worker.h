// SPDX-License-Identifier: MIT
#pragma once
/// \file simulated_worker.h
/// A GPU and its host that build a graph in shards, as sharded_plan.cpp goes through it: what they hold, and until when
/// they are busy, by rates.

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "gnnd/dtype.h"
#include "gnnd/shards/manifest.h"
#include "gnnd/shards/schedule.h"

namespace gnnd::benchs {

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
    double near = 0;   ///< merges of a shard, in log2(shards); 0: all pairs
    double order = 0;  ///< seconds of the host
    double request = 8 << 20;
    double price = 0;
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

/// The state that all workers share.
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
          lists_(millions_ * manifest.params.k * double(manifest.list_entry_bytes()) * 1e-3),
          fixed_(2 * (vectors_ + millions_ * manifest.params.k * 8e-3 + millions_ * 1e6 * machine.work)),
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

}  // namespace gnnd::benchs

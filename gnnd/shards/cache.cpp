// SPDX-License-Identifier: MIT
#include "gnnd/shards/cache.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gnnd/error.h"

namespace gnnd::shards {

void Cache::Pin::swap(Pin& other) noexcept {
    std::swap(cache_, other.cache_);
    std::swap(key_, other.key_);
    std::swap(item_, other.item_);
}

void Cache::Pin::mark_dirty() const {
    const Lock lock(cache_->mutex_);
    item_->dirty = true;
}

Cache::Cache(std::size_t bound, Resources& resources, Write write)
    : bound_(bound), resources_(resources), write_(std::move(write)) {}

Cache::Pin Cache::pin(const Key& key, std::size_t bytes, const Fill& fill) {
    Lock lock(mutex_);
    for (;;) {
        const auto found = items_.find(key);
        if (found == items_.end()) {
            if (reuse(key, bytes) || make_room(lock, bytes)) break;
        } else if (found->second.busy) {
            changed_.wait(lock);
        } else {
            ++found->second.pins;
            found->second.used = ++clock_;
            if (!fill) found->second.dirty = false;  // nobody may write what is half overwritten
            return {*this, key, found->second};
        }
    }
    Item& item = items_[key];
    held_ += bytes - item.bytes;
    item.bytes = bytes;
    item.pins = 1;
    item.busy = true;
    item.used = ++clock_;
    peak_ = std::max(peak_, held_);
    lock.unlock();
    try {
        if (item.data.size() == 0) item.data = Buffer<std::byte>(resources_, bytes);
        if (fill) fill(item.data.data());
    } catch (...) {
        lock.lock();
        erase(items_.find(key));
        throw;
    }
    lock.lock();
    item.busy = false;
    changed_.notify_all();
    return {*this, key, item};
}

Cache::Pin Cache::scratch(std::size_t bytes) {
    return pin(new_scratch(), bytes, nullptr);
}

Cache::Key Cache::new_scratch() {
    return {Kind::scratch, scratches_++};
}

/// \return whether there was memory of that size that nobody needs any more; it now goes by that name
bool Cache::reuse(const Key& key, std::size_t bytes) {
    const auto unused = std::find_if(items_.begin(), items_.end(), [&](const auto& item) {
        return item.first.kind == Kind::scratch && item.second.pins == 0 && item.second.bytes == bytes;
    });
    if (unused == items_.end()) return false;
    rename(unused, key);
    return true;
}

/// Items stay where they are.
void Cache::rename(std::map<Key, Item>::iterator item, const Key& key) {
    auto node = items_.extract(item);
    node.key() = key;
    items_.insert(std::move(node));
}

Cache::Pin Cache::find(const Key& key) {
    Lock lock(mutex_);
    for (;;) {
        const auto found = items_.find(key);
        if (found == items_.end()) return {};
        if (!found->second.busy) {
            ++found->second.pins;
            return {*this, key, found->second};
        }
        changed_.wait(lock);
    }
}

void Cache::forget(Pin pin) {
    const Lock lock(mutex_);
    pin.item_->pins = 0;
    pin.item_->dirty = false;
    make_scratch(items_.find(pin.key_));
    pin.cache_ = nullptr;
}

void Cache::forget(const Key& key) {
    const Lock lock(mutex_);
    const auto found = items_.find(key);
    if (found != items_.end() && found->second.pins == 0 && !found->second.busy && !found->second.dirty)
        make_scratch(found);
}

void Cache::make_scratch(std::map<Key, Item>::iterator item) {
    item->second.used = 0;  // the first to go
    rename(item, new_scratch());
    changed_.notify_all();
}

void Cache::take_out(const Key& key, const Fill& take) {
    Lock lock(mutex_);
    auto found = items_.end();
    changed_.wait(lock, [&] {
        found = items_.find(key);
        return found == items_.end() || !found->second.busy;
    });
    if (found == items_.end()) return;
    use_alone(lock, found->second, [&] { take(found->second.data.data()); });
    erase(found);
}

/// \return false where the lock was let go, so that what the caller knows may not hold any more
bool Cache::make_room(Lock& lock, std::size_t bytes) {
    while (bytes > bound_ - std::min(held_, bound_)) {
        auto oldest = items_.end();
        bool writing = false;
        for (auto item = items_.begin(); item != items_.end(); ++item) {
            if (item->second.pins > 0) continue;
            if (item->second.busy)
                writing = true;
            else if (oldest == items_.end() || std::tie(item->second.dirty, item->second.used) <
                                                   std::tie(oldest->second.dirty, oldest->second.used))
                oldest = item;
        }
        if (oldest == items_.end() && !writing)
            throw Error("host memory: " + std::to_string(bytes) + " bytes more while " + std::to_string(held_) +
                        " are in use, allowed are " + std::to_string(bound_));
        if (oldest == items_.end()) {
            changed_.wait(lock);
            return false;
        }
        if (oldest->second.dirty) {
            write(lock, oldest->first, oldest->second);
            return false;
        }
        erase(oldest);
    }
    return true;
}

/// Lets the lock go meanwhile.
template <class Use>
void Cache::use_alone(Lock& lock, Item& item, const Use& use) {
    item.busy = true;
    lock.unlock();
    const auto done = [&] {
        lock.lock();
        item.busy = false;
        changed_.notify_all();
    };
    try {
        use();
    } catch (...) {
        done();
        throw;
    }
    done();
}

void Cache::write(Lock& lock, const Key& key, Item& item) {
    use_alone(lock, item, [&] { write_(key, item.data.data()); });
    item.dirty = false;
}

void Cache::flush(const std::function<bool(const Key&)>& wanted) {
    Lock lock(mutex_);
    std::vector<Key> keys;
    for (const auto& [key, item] : items_)
        if (item.dirty && wanted(key)) keys.push_back(key);
    for (const Key& key : keys) {
        const auto found = items_.find(key);
        if (found == items_.end() || found->second.busy || !found->second.dirty) continue;
        if (found->second.pins > 0 && key.kind == Kind::lists) continue;  // somebody may be changing them
        write(lock, key, found->second);
    }
    // Others may be writing; what they write is not durable yet.
    changed_.wait(lock, [&] {
        return std::none_of(items_.begin(), items_.end(), [&](const auto& entry) {
            return entry.second.busy && entry.second.dirty && wanted(entry.first);
        });
    });
}

void Cache::unpin(const Key& key) {
    const Lock lock(mutex_);
    const auto found = items_.find(key);
    if (--found->second.pins == 0) changed_.notify_all();
}

void Cache::erase(std::map<Key, Item>::iterator item) {
    held_ -= item->second.bytes;
    items_.erase(item);
    changed_.notify_all();
}

std::size_t Cache::held() const {
    const Lock lock(mutex_);
    return held_;
}

std::size_t Cache::peak() const {
    const Lock lock(mutex_);
    return peak_;
}

}  // namespace gnnd::shards

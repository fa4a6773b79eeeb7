// SPDX-License-Identifier: MIT
#pragma once
/// \file cache.h
/// Memory under a bound: the parts of shards that are in use, and as many others as there is room for.

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <tuple>

#include "gnnd/resources.h"

namespace gnnd::shards {

/// Items are pinned while they are used. Of the others the least recently used one goes first when room is needed,
/// those that were changed after all that were not: these cost one reading, they a writing, too, before they go.
/// Thread-safe.
///
/// Callers know the bound: the pins of all threads together must fit. Then nobody ever waits for another's pin, only
/// for a disk.
class Cache {
  public:
    enum class Kind { vectors, local, lists, whole, scratch };
    struct Key {
        Kind kind;
        std::int64_t number;  ///< of the shard
        friend bool operator<(const Key& a, const Key& b) {
            return std::tie(a.kind, a.number) < std::tie(b.kind, b.number);
        }
    };
    using Fill = std::function<void(std::byte*)>;
    using Write = std::function<void(const Key&, const std::byte*)>;

  private:
    struct Item {
        Buffer<std::byte> data;
        std::size_t bytes = 0;
        int pins = 0;
        bool busy = true;  ///< being filled or written: nobody else may touch it
        bool dirty = false;
        std::uint64_t used = 0;  ///< when, in calls
    };

  public:
    class Pin {
      public:
        Pin() = default;
        Pin(Pin&& other) noexcept { swap(other); }
        Pin& operator=(Pin&& other) noexcept {
            Pin(static_cast<Pin&&>(other)).swap(*this);
            return *this;
        }
        ~Pin() {
            if (cache_ != nullptr) cache_->unpin(key_);
        }
        explicit operator bool() const { return cache_ != nullptr; }
        std::byte* data() const { return item_->data.data(); }
        std::size_t bytes() const { return item_->bytes; }
        /// The item must be written before it goes. For who alone has it pinned.
        void mark_dirty() const;

      private:
        friend class Cache;
        Pin(Cache& cache, const Key& key, Item& item) : cache_(&cache), key_(key), item_(&item) {}
        void swap(Pin& other) noexcept;
        Cache* cache_ = nullptr;
        Key key_{};
        Item* item_ = nullptr;
    };

    /// \param bound      in bytes, of all items together
    /// \param resources  where their memory comes from, by allocate()
    /// \param write      called for changed items, by any thread, never twice at a time for the same one
    Cache(std::size_t bound, Resources& resources, Write write);

    /// The item, filled unless it is there. What fill throws leaves no item behind. Without fill the content is the
    /// caller's to write, and what was there is not written any more.
    /// \throws Error when the pinned items leave no room
    Pin pin(const Key& key, std::size_t bytes, const Fill& fill);
    /// Memory of its own, content undefined. Once unpinned it is given out again, for whatever is of the same size,
    /// while nobody else needs the room: touching new memory takes longer than a GPU needs to fill it.
    Pin scratch(std::size_t bytes);
    /// The item, if it is there.
    Pin find(const Key& key);
    /// Drops the item, changed or not; its memory becomes scratch. For who alone has it pinned.
    void forget(Pin pin);
    /// The same by name, but only where nobody uses the item and nothing is lost with it: it must be neither pinned nor
    /// busy nor dirty. It is never pinned for this, so that no pin() fails for want of room meanwhile.
    void forget(const Key& key);
    /// Calls `take` with the item's data and then drops the item; does nothing where it is not there. Nobody may have
    /// it pinned. A pin() that finds no room meanwhile waits for the room that this gives back, where it would throw
    /// if the item were merely pinned.
    void take_out(const Key& key, const Fill& take);
    /// Writes what was changed and is wanted; but lists only if nobody has them pinned, who might be changing them.
    void flush(const std::function<bool(const Key&)>& wanted);

    std::size_t held() const;
    std::size_t peak() const;

  private:
    using Lock = std::unique_lock<std::mutex>;
    Key new_scratch();
    bool reuse(const Key& key, std::size_t bytes);
    void make_scratch(std::map<Key, Item>::iterator item);
    void rename(std::map<Key, Item>::iterator item, const Key& key);
    bool make_room(Lock& lock, std::size_t bytes);
    void write(Lock& lock, const Key& key, Item& item);
    template <class Use>
    void use_alone(Lock& lock, Item& item, const Use& use);
    void unpin(const Key& key);
    void erase(std::map<Key, Item>::iterator item);

    const std::size_t bound_;
    Resources& resources_;
    const Write write_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::map<Key, Item> items_;
    std::size_t held_ = 0, peak_ = 0;
    std::uint64_t clock_ = 0;
    std::atomic<std::int64_t> scratches_{0};
};

}  // namespace gnnd::shards

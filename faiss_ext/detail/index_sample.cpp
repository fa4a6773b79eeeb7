// SPDX-License-Identifier: MIT
#include "faiss_ext/detail/index_sample.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "faiss_ext/detail/faiss_links.h"

namespace faiss_ext::detail {

namespace {

constexpr std::int64_t kObjects = 256;

/// FNV-1a (Fowler, Noll, Vo), over words instead of bytes, of which each waits for the one before.
class Checksum {
  public:
    void add(const void* data, std::size_t bytes) {
        const auto* at = static_cast<const unsigned char*>(data);
        for (; bytes > 0; bytes -= std::min(bytes, sizeof(std::uint64_t)), at += sizeof(std::uint64_t)) {
            std::uint64_t word = 0;
            std::memcpy(&word, at, std::min(bytes, sizeof(word)));
            value_ = (value_ ^ word) * 0x100000001b3;
            value_ ^= value_ >> 32;  // else the upper bits of a word would never come to the lower ones
        }
    }
    std::uint64_t value() const { return value_; }

  private:
    std::uint64_t value_ = 0xcbf29ce484222325;
};

/// Calls use(object) with some of n objects, the first and the last among them.
template <class Use>
void for_sample(std::int64_t n, const Use& use) {
    const std::int64_t count = std::min(n, kObjects);
    for (std::int64_t i = 0; i < count; ++i) use(count == 1 ? 0 : i * (n - 1) / (count - 1));
}

template <class GraphIndex>
IndexSample sample(const GraphIndex& index, const faiss::IndexFlatCodes& storage) {
    const std::int64_t n = storage.ntotal;
    Checksum vectors, links;
    vectors.add(&n, sizeof(n));
    for_sample(n,
               [&](std::int64_t i) { vectors.add(storage.codes.data() + i * storage.code_size, storage.code_size); });
    if (!links_are_of(index, n)) return {vectors.value(), 0};
    const std::int32_t entry = entry_of(index);
    bool whole = true;
    links.add(&n, sizeof(n));
    links.add(&entry, sizeof(entry));
    for_sample(n, [&](std::int64_t i) {
        whole = whole && has_links(index, i);
        if (whole) links.add(links_of(index, i), degree_of(index) * sizeof(std::int32_t));
    });
    return {vectors.value(), whole ? links.value() : 0};
}

}  // namespace

IndexSample sample_of(const faiss::IndexNSG& index, const faiss::IndexFlatCodes& storage) {
    return sample(index, storage);
}
IndexSample sample_of(const faiss::IndexHNSW& index, const faiss::IndexFlatCodes& storage) {
    return sample(index, storage);
}

}  // namespace faiss_ext::detail

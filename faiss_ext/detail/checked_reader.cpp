// SPDX-License-Identifier: MIT
#include "faiss_ext/detail/checked_reader.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>

#include "faiss_ext/detail/errors.h"

namespace faiss_ext::detail {

namespace {

constexpr int kMostLinks = 4096;  // of an object of an NSG, as graph_index_types() has it

bool is_one_of(std::uint32_t word, std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* name) { return faiss::fourcc(name) == word; });
}

}  // namespace

template <class T>
T CheckedReader::Beginning::at(std::size_t offset) const {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

// An index begins with its four letters, d (4 bytes), n (8), 16 bytes that mean nothing, whether it is trained (1), its
// metric (4) and, of metrics from 2 on, the metric's argument (4).
bool CheckedReader::Beginning::checked() const {
    constexpr std::size_t kCount = 8, kMetric = 33, kMetricEnd = 37;
    if (count < kMetricEnd) return false;
    const std::size_t begin = at<std::int32_t>(kMetric) > 1 ? kMetricEnd + 4 : kMetricEnd;
    if (nsg) {  // GK (4), how it was built (17), n (4), R (4)
        if (count < begin + 29) return false;
        const auto n = at<std::int32_t>(begin + 21), links = at<std::int32_t>(begin + 25);
        if (n < 0 || n != at<std::int64_t>(kCount))
            fail("IndexNSG is damaged: it has links of " + std::to_string(n) + " objects for " +
                 std::to_string(at<std::int64_t>(kCount)) + " vectors");
        if (links < 1 || links > kMostLinks || std::int64_t(n) * links > std::numeric_limits<int>::max())
            fail("IndexNSG is damaged: it has " + std::to_string(links) + " links of each object");
        return true;
    }
    // nlist (8), nprobe (8), and the quantizer's letters, d and n
    if (count < begin + 32) return false;
    const auto lists = at<std::int64_t>(begin), held = at<std::int64_t>(begin + 24);
    if (!is_one_of(at<std::uint32_t>(begin + 16), {"null"}) && held != lists)
        fail("IndexIVFPQ is damaged: it has " + std::to_string(lists) + " lists, its quantizer " +
             std::to_string(held));
    return true;
}

size_t CheckedReader::operator()(void* ptr, size_t size, size_t nitems) {
    const size_t read = from_(ptr, size, nitems);
    const std::size_t bytes = size * read;
    if (bytes > sizeof(std::uint64_t)) {  // rows and the like: what is looked at is behind
        beginnings_.clear();
        return read;
    }
    std::uint32_t word = 0;
    if (bytes == sizeof word) std::memcpy(&word, ptr, sizeof word);
    const bool nsg = is_one_of(word, {"INSf", "INSp", "INSs"});
    if (nsg || is_one_of(word, {"IwPQ", "IvPQ", "IwQR", "IvQR"})) beginnings_.push_back({nsg});
    for (Beginning& beginning : beginnings_) {
        if (beginning.count + bytes > beginning.bytes.size()) continue;
        std::memcpy(beginning.bytes.data() + beginning.count, ptr, bytes);
        beginning.count += bytes;
    }
    std::erase_if(beginnings_, [](const Beginning& beginning) { return beginning.checked(); });
    return read;
}

}  // namespace faiss_ext::detail

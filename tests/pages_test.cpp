// SPDX-License-Identifier: MIT
#include "faiss_ext/detail/pages.h"

#include <gtest/gtest.h>

#include <vector>

namespace {

using faiss_ext::detail::grow_with_pages;

/// What FAISS from 1.11 on has in place of some vectors, as far as it is used here.
struct MaybeOwned {
    bool is_owned = true;
    std::vector<int> owned_data;
    int* first = nullptr;
    std::size_t count = 0;

    void resize(std::size_t size) {
        owned_data.resize(size);
        first = owned_data.data();
        count = size;
    }
    int* data() { return first; }
    std::size_t size() const { return count; }
};

template <class Array>
void expect_growth_in_place() {
    for (const std::size_t large : {std::size_t(1000), std::size_t(6) << 20}) {  // the pages of more are touched first
        Array array;
        grow_with_pages(array, large);
        array.data()[large - 1] = 7;
        const int* const before = array.data();
        grow_with_pages(array, large + large / 4);
        EXPECT_EQ(array.data(), before) << "it has moved";
        EXPECT_EQ(array.size(), large + large / 4);
        EXPECT_EQ(array.data()[large - 1], 7);
        EXPECT_EQ(array.data()[large], 0);
        grow_with_pages(array, 2 * large);
        EXPECT_EQ(array.data()[large - 1], 7) << "as it moves";
        EXPECT_EQ(array.data()[2 * large - 1], 0);
    }
}

TEST(ResizeWithPages, GrowsVectorsInPlace) {
    expect_growth_in_place<std::vector<int>>();
}

TEST(ResizeWithPages, GrowsWhatFaissHasInTheirPlace) {
    expect_growth_in_place<MaybeOwned>();
}

}  // namespace

// SPDX-License-Identifier: MIT
// Identities tell one base from another.
#include "gnnd/io/base_identity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/io/vector_file.h"
#include "tests/io_conditions.h"
#include "tests/temp_dir.h"

namespace gnnd::io {
namespace {

std::vector<float> some_floats(std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    std::uint32_t state = 7;
    for (float& value : values) value = float((state = state * 1664525u + 1013904223u) >> 8);
    return values;
}

TEST(BaseIdentity, IsThatOfTheRowsNotOfTheFile) {
    const test::TempDir dir;
    for (const auto& [n, d] : {std::pair{1, 1}, {70, 3}, {3000, 100}, {20000, 128}, {200, 40000}}) {
        SCOPED_TRACE(testing::Message() << n << " x " << d);
        const std::vector<float> values = some_floats(std::int64_t(n) * d);
        const VectorView view{values.data(), n, d, DType::f32, 0};
        const BaseIdentity identity = identify(view);
        EXPECT_EQ(identity.n, n);
        EXPECT_EQ(identity.d, d);
        EXPECT_EQ(identity.dtype, DType::f32);
        for (const char* name : {"a.fvecs", "a.fbin", "a.npy"}) {
            write_vectors(dir.file(name), view);
            const VectorFile file(dir.file(name));
            EXPECT_EQ(identify(file), identity) << name;
            EXPECT_EQ(identify(file.view()), identity) << name;
        }
        std::int64_t bytes = 0;
        const auto read = [&](std::int64_t begin, std::int64_t count, std::byte* out) {
            bytes += count * view.row_bytes();
            std::memcpy(out, view.row(begin), std::size_t(count * view.row_bytes()));
        };
        EXPECT_EQ(identify(n, d, DType::f32, read), identity);
        EXPECT_LE(bytes, std::max<std::int64_t>(4 << 20, 64 * view.row_bytes()));
        if (n < 3) continue;
        std::vector<VectorFile> parts;
        for (const auto& [begin, end] : {std::pair{0, 1}, {1, n / 2}, {n / 2, n}}) {
            const std::string path = dir.file("part" + std::to_string(begin) + (begin == 0 ? ".fvecs" : ".fbin"));
            write_vectors(path, {view.row(begin), end - begin, d, DType::f32, 0});
            parts.emplace_back(path);
        }
        EXPECT_EQ(identify(parts), identity);
    }
}

// The numbers are in files: they may not change.
TEST(BaseIdentity, StaysAsItWas) {
    const std::vector<float> small = some_floats(300), large = some_floats(20000 * 128);
    EXPECT_EQ(identify(VectorView{small.data(), 100, 3, DType::f32, 0}).checksum, 9315514412185920676u);
    EXPECT_EQ(identify(VectorView{large.data(), 20000, 128, DType::f32, 0}).checksum, 7083000569595508290u);
}

TEST(BaseIdentity, FindsEveryChangedByteOfASmallSet) {
    std::vector<std::uint8_t> bytes(1000 * 7, 3);
    const VectorView view{bytes.data(), 1000, 7, DType::u8, 0};
    const BaseIdentity identity = identify(view);
    for (std::uint8_t& byte : bytes) {
        byte ^= 1;
        ASSERT_NE(identify(view), identity) << &byte - bytes.data();
        byte ^= 1;
    }
    EXPECT_EQ(identify(view), identity);
}

TEST(BaseIdentity, FindsOtherFirstAndLastRowsOfALargeSet) {
    const std::int64_t n = 20000, d = 128;  // 10 MB
    std::vector<float> values = some_floats(n * d);
    const VectorView view{values.data(), n, d, DType::f32, 0};
    const BaseIdentity identity = identify(view);
    for (const std::int64_t at : {std::int64_t(0), n * d - 1}) {
        values[at] += 1;
        EXPECT_EQ(identity.difference(identify(view)), "the vectors are others") << at;
        values[at] -= 1;
    }
    std::vector<float> others = some_floats(n * d + 1);
    EXPECT_NE(identify(VectorView{others.data() + 1, n, d, DType::f32, 0}), identity);
}

TEST(BaseIdentity, SaysWhatDiffers) {
    const BaseIdentity expected{1000, 128, DType::f32, 5};
    const auto difference = [&](const BaseIdentity& found) { return expected.difference(found); };
    EXPECT_EQ(difference(expected), "");
    EXPECT_EQ(difference({999, 96, DType::u8, 4}), "n is 999, expected 1000");
    EXPECT_EQ(difference({1000, 96, DType::u8, 4}), "d is 96, expected 128");
    EXPECT_EQ(difference({1000, 128, DType::u8, 5}), "dtype is u8, expected f32");
    EXPECT_EQ(difference({1000, 128, DType::f32, 4}), "the vectors are others");
    EXPECT_EQ(test::message_of<InvalidArgument>([&] {
                  require_base_of("a.gnnd", expected, "b.fbin", {1000, 96, DType::f32, 5});
              }),
              "a.gnnd was not built from b.fbin: d is 96, expected 128");
    EXPECT_NO_THROW(require_base_of("a.gnnd", expected, "b.fbin", expected));
}

TEST(BaseIdentity, FilesOfOneSetHaveOneShape) {
    const test::TempDir dir;
    const std::vector<float> values = some_floats(12);
    write_vectors(dir.file("a.fbin"), {values.data(), 4, 3, DType::f32, 0});
    write_vectors(dir.file("b.fbin"), {values.data(), 3, 4, DType::f32, 0});
    std::vector<VectorFile> files;
    files.emplace_back(dir.file("a.fbin"));
    files.emplace_back(dir.file("b.fbin"));
    EXPECT_EQ(test::message_of<InvalidArgument>([&] { identify(files); }),
              dir.file("b.fbin") + " holds vectors of 4 f32, " + dir.file("a.fbin") + " of 3 f32");
}

}  // namespace
}  // namespace gnnd::io

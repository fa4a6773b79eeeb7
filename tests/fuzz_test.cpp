// SPDX-License-Identifier: MIT
// Files that were damaged at random. Whatever their bytes are, a reader either throws gnnd::IoError or gives rows that
// lie within the file. The seed is fixed; GNND_FUZZ_ITERATIONS sets how many files are tried.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/io/graph_file.h"
#include "gnnd/io/vector_file.h"
#include "tests/forged_graph_file.h"
#include "tests/temp_dir.h"

namespace gnnd::io {
namespace {

int iterations() {
    const char* text = std::getenv("GNND_FUZZ_ITERATIONS");
    return text != nullptr ? std::atoi(text) : 20000;
}

class Mutator {
  public:
    /// Damages the bytes in one to four places, or replaces them by garbage.
    std::string operator()(std::string bytes) {
        if (below(20) == 0) return garbage(below(200));
        for (std::size_t changes = 1 + below(4); changes > 0 && !bytes.empty(); --changes) change(bytes);
        return bytes;
    }
    std::size_t below(std::size_t end) { return random_() % end; }

  private:
    std::string garbage(std::size_t length) {
        std::string bytes(length, '\0');
        for (char& byte : bytes) byte = char(random_());
        return bytes;
    }
    void change(std::string& bytes) {
        // Half of the changes hit the header, where they matter most.
        const std::size_t at = below(below(2) == 0 ? std::min<std::size_t>(bytes.size(), 72) : bytes.size());
        switch (below(7)) {
            case 0:
                bytes[at] = char(bytes[at] ^ 1 << below(8));
                break;
            case 1:
                bytes[at] = char(random_());
                break;
            case 2:
                bytes.resize(at);
                break;
            case 3:
                bytes += garbage(1 + below(16));
                break;
            case 4:
                bytes.erase(at, 1 + below(8));
                break;
            case 5:
                bytes.insert(at, garbage(1 + below(8)));
                break;
            default: {
                static constexpr std::int64_t kNumbers[] = {
                    0, 1, -1, 2, 127, 128, 1 << 16, 1 << 20, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 1ll << 32};
                const std::int64_t number = kNumbers[below(std::size(kNumbers))];
                const std::size_t aligned = at / 4 * 4;
                std::memcpy(bytes.data() + aligned, &number,
                            std::min(bytes.size() - aligned, below(2) == 0 ? sizeof number : sizeof number / 2));
            }
        }
    }
    std::mt19937 random_{20240607};
};

/// Touches every byte, so that a sanitizer or the processor notices any that is not there.
unsigned sum_of(const void* data, std::size_t bytes) {
    const auto* first = static_cast<const unsigned char*>(data);
    return std::accumulate(first, first + bytes, 0u);
}

/// Reads all rows in both ways. Returns false where the file was refused, which is fine.
bool read_vectors(const std::string& path, std::size_t file_bytes) {
    try {
        const VectorFile file(path);
        const std::size_t row = std::size_t(file.d()) * size_of(file.dtype());
        const std::size_t all = row * std::size_t(file.n());
        EXPECT_GE(file.n(), 1);
        EXPECT_LE(all, file_bytes);
        if (all > file_bytes) return true;
        std::vector<unsigned char> rows(all);
        file.read(0, file.n(), rows.data());
        const VectorView& view = file.view();
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.data) % (view.stride == 0 ? size_of(view.dtype) : 1), 0u);
        unsigned sum = 0;
        for (std::int64_t i = 0; i < view.n; ++i) sum += sum_of(view.row(i), row);
        EXPECT_EQ(sum, sum_of(rows.data(), all));
    } catch (const IoError& error) {
        EXPECT_TRUE(std::string(error.what()).starts_with(path + ": ")) << error.what();
        return false;
    }
    return true;
}

TEST(Fuzz, VectorFiles) {
    const test::TempDir dir;
    std::vector<std::string> paths, originals;
    std::vector<std::int32_t> values(7 * 5);
    std::iota(values.begin(), values.end(), -3);
    const auto add = [&](const std::string& name, DType dtype) {
        paths.push_back(dir.file(name));
        write_vectors(paths.back(), {values.data(), 7, 5, dtype, 0});
        originals.push_back(test::read_bytes(paths.back()));
        ASSERT_TRUE(read_vectors(paths.back(), originals.back().size())) << name;
    };
    add("a.fvecs", DType::f32);
    add("a.bvecs", DType::u8);
    add("a.ivecs", DType::i32);
    add("a.fbin", DType::f32);
    add("a.u8bin", DType::u8);
    add("a.i8bin", DType::i8);
    add("a.ibin", DType::i32);
    add("f32.npy", DType::f32);
    add("u8.npy", DType::u8);

    Mutator mutate;
    int accepted = 0;
    const int count = iterations() / 4 * 3;
    for (int i = 0; i < count && !HasFailure(); ++i) {
        const std::size_t which = mutate.below(paths.size());
        const std::string bytes = mutate(originals[which]);
        test::write_bytes(paths[which], bytes);
        SCOPED_TRACE(testing::Message() << "file " << i << ", " << paths[which]);
        accepted += read_vectors(paths[which], bytes.size());
    }
    // Damage to the data alone goes unnoticed in these formats, so both outcomes must have been met.
    if (count >= 1000) {
        EXPECT_GT(accepted, count / 20);
        EXPECT_LT(accepted, count * 19 / 20);
    }
}

// Nothing that was changed may be accepted, unless the checksums were made to fit: then what is read must make sense.
TEST(Fuzz, GraphFiles) {
    const test::TempDir dir;
    const std::string path = dir.file("a.gnnd");
    KnnGraph graph(9, 4, Metric::L2);
    std::iota(graph.distances(), graph.distances() + 36, 0.0f);
    write_graph(path, graph, DType::f32);
    const std::string original = test::read_bytes(path);
    ASSERT_EQ(test::with_fitting_checksums(original), original);
    Mutator mutate;
    const int count = iterations() / 4;
    for (int i = 0; i < count && !HasFailure(); ++i) {
        std::string bytes = mutate(original);
        const bool forged = mutate.below(2) == 0;
        if (forged) bytes = test::with_fitting_checksums(bytes);
        if (bytes == original) continue;
        test::write_bytes(path, bytes);
        SCOPED_TRACE(testing::Message() << "file " << i);
        try {
            const GraphFile file(path);
            const KnnGraph read = file.read();
            EXPECT_TRUE(forged);
            EXPECT_LE(std::size_t(read.n() * read.k() * 8), bytes.size());
            for (std::int64_t j = 0; j < read.n() * read.k(); ++j)
                EXPECT_TRUE(read.ids()[j] >= -1 && read.ids()[j] < file.objects());
        } catch (const IoError& error) {
            EXPECT_TRUE(std::string(error.what()).starts_with(path + ": ")) << error.what();
        }
    }
}

}  // namespace
}  // namespace gnnd::io

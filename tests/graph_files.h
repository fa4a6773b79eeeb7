// SPDX-License-Identifier: MIT
#pragma once
/// \file graph_files.h
/// A folder with one graph file, and graphs to write into it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "gnnd/error.h"
#include "gnnd/io/graph_file.h"
#include "tests/io_conditions.h"
#include "tests/temp_dir.h"

namespace gnnd::test {

/// Entries that differ from place to place; the file does not ask for sorted rows.
inline KnnGraph make_graph(std::int64_t n, std::int64_t k, Metric metric = Metric::L2) {
    KnnGraph graph(n, k, metric);
    for (std::int64_t i = 0; i < n * k; ++i) {
        graph.ids()[i] = std::int32_t((i * 7919 + 1) % (n + 1)) - 1;
        graph.distances()[i] = graph.ids()[i] < 0 ? INFINITY : float(i) * 0.25f;
    }
    return graph;
}

inline void expect_rows(const KnnGraph& part, const KnnGraph& whole, std::int64_t begin, std::int64_t count) {
    ASSERT_EQ(part.n(), count);
    ASSERT_EQ(part.k(), whole.k());
    ASSERT_EQ(part.metric(), whole.metric());
    const std::int64_t entries = count * whole.k();
    EXPECT_TRUE(std::equal(part.ids(), part.ids() + entries, whole.ids_of(begin)));
    EXPECT_TRUE(std::equal(part.distances(), part.distances() + entries, whole.distances_of(begin)));
}

class GraphFiles : public ::testing::Test {
  protected:
    /// Returns the error of opening the file and reading all of it, without the path.
    std::string error() const {
        const std::string message = message_of<IoError>([&] { io::GraphFile(path_).read(); });
        EXPECT_TRUE(message.starts_with(path_ + ": ")) << message;
        return message.substr(std::min(message.size(), path_.size() + 2));
    }
    std::string error(const std::string& bytes) const {
        write_bytes(path_, bytes);
        return error();
    }
    /// Of a file with these bytes: with a bit of any of them altered, and cut off anywhere, it is refused.
    void expect_every_byte_checked(const std::string& bytes) const {
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            std::string altered = bytes;
            altered[i] = char(altered[i] ^ 1 << i % 8);
            EXPECT_NE(error(altered), "nothing was thrown") << "byte " << i;
            EXPECT_NE(error(bytes.substr(0, i)), "nothing was thrown") << i << " bytes";
        }
    }
    const TempDir dir_;
    const std::string path_ = dir_.file("a.gnnd");
};

}  // namespace gnnd::test

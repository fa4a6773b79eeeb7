// SPDX-License-Identifier: MIT
#pragma once
/// \file faiss_helpers.h
/// Helpers that the tests of faiss_ext share.

#include <gtest/gtest.h>
#include <omp.h>

#include <string>
#include <vector>

#include "faiss_ext/vector_source.h"
#include "gnnd/io/vector_file.h"
#include "tests/paths.h"
#include "tests/reference.h"

namespace gnnd::test {

/// random_vectors() as FAISS takes them: n x d float32.
inline std::vector<float> random_rows(std::int64_t n, std::int64_t d, bool nonnegative = false, unsigned seed = 1) {
    const Vectors vectors = random_vectors(n, d, DType::f32, nonnegative, seed);
    std::vector<float> rows(n * d);
    copy_as_f32(vectors, 0, n, rows.data());
    return rows;
}

inline VectorView view_of(const std::vector<float>& rows, std::int64_t d) {
    return {rows.data(), std::int64_t(rows.size()) / d, d, DType::f32, 0};
}

/// The first n rows of the real sample, which has 20,000 x 128 u8.
inline VectorView sample(std::int64_t n) {
    static const io::VectorFile file(kSampleFile);
    VectorView view = file.view();
    view.n = n;
    return view;
}

/// FAISS trains and joins in many short parallel regions, which take a hundred times as long when all cores are busy.
class OneFaissThread {
  public:
    OneFaissThread() { omp_set_num_threads(1); }
    ~OneFaissThread() { omp_set_num_threads(before_); }

  private:
    int before_ = omp_get_max_threads();
};

/// Runs f, which must throw faiss::FaissException with `part` in its text.
template <class F>
void expect_faiss_error(const std::string& part, F&& f) {
    try {
        f();
        ADD_FAILURE() << "nothing was thrown, expected an error about: " << part;
    } catch (const faiss::FaissException& error) {
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    } catch (const std::exception& error) {
        ADD_FAILURE() << "not a FaissException: " << error.what();
    }
}

}  // namespace gnnd::test

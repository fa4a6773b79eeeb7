// SPDX-License-Identifier: MIT
#include "faiss_ext/detail/rows.h"

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/utils/distances.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/pages.h"
#include "gnnd/builder.h"
#include "gnnd/cpu/parallel.h"
#include "gnnd/random.h"

namespace faiss_ext::detail {

void check_interrupt() {
    faiss::InterruptCallback::check();
}

gnnd::Callbacks interrupt_hooks() {
    return {{}, faiss::InterruptCallback::is_interrupted, {}};
}

faiss::MetricType search_metric(gnnd::Metric metric, const char* what) {
    if (const auto searched = searched_metric(metric)) return *searched;
    fail(std::string(what) + ": FAISS has no metric " + std::string(gnnd::name_of(metric)));
}

namespace {

/// Copies all rows from a GPU, as float32.
void copy_from_gpu(const gnnd::VectorView& x, float* out) {
    if (x.dtype == gnnd::DType::f32) return gnnd::copy_to_host(x, out);
    const std::int64_t block = gpu_block(x.d);
    std::vector<std::byte> bytes(std::size_t(std::min(block, x.n)) * x.d * size_of(x.dtype));
    for (std::int64_t begin = 0; begin < x.n; begin += block) {
        check_interrupt();
        gnnd::VectorView part = x;
        part.data = x.row(begin);
        part.n = std::min(block, x.n - begin);
        gnnd::copy_to_host(part, bytes.data());
        gnnd::copy_as_f32({bytes.data(), part.n, x.d, x.dtype, 0}, 0, part.n, out + begin * x.d);
    }
}

/// Does the same as faiss::fvec_renorm_L2(), by this thread alone. That one asks for threads in each call, and the
/// runtime makes new ones for a call from a region of ours: a millisecond for a row where there are 16.
void normalize(float* rows, std::int64_t count, std::int64_t d) {
    for (float* row = rows; row != rows + count * d; row += d) {
        const float square = faiss::fvec_norm_L2sqr(row, d);
        if (square <= 0) continue;
        const auto factor = float(1.0 / std::sqrt(square));
        for (std::int64_t c = 0; c < d; ++c) row[c] *= factor;
    }
}

}  // namespace

void float_rows(const VectorSource& source, std::int64_t begin, std::int64_t count, float* out) {
    const std::int64_t d = source.vectors().d;
    const gnnd::VectorView& x = source.on_host();
    const gnnd::cpu::Team team{gnnd::cpu::Team::resolve(count > kBlock ? 0 : 1), nullptr};
    team.for_chunks(count, kBlock, [&](int, std::int64_t first, std::int64_t last) {
        gnnd::copy_as_f32(x, begin + first, last - first, out + first * d);
        if (is_normalized(source.metric())) normalize(out + first * d, last - first, d);
    });
}

bool is_consecutive(const std::int32_t* objects, std::int64_t count) {
    for (std::int64_t i = 1; i < count; ++i)
        if (objects[i] != objects[0] + i) return false;
    return true;
}

void float_objects(const VectorSource& source, const std::int32_t* objects, std::int64_t count, float* out) {
    if (count > 0 && is_consecutive(objects, count)) return float_rows(source, objects[0], count, out);
    for (std::int64_t i = 0; i < count; ++i) float_rows(source, objects[i], 1, out + i * source.vectors().d);
}

void fill_storage(faiss::IndexFlat& storage, const VectorSource& source) {
    const std::int64_t n = source.vectors().n;
    // IndexFlat::add() in parts would move all rows each time that it grows.
    resize_with_pages(storage.codes, std::size_t(n) * storage.code_size);
    if (source.device() < 0) {
        float_rows(source, 0, n, storage.get_xb());
    } else {
        copy_from_gpu(source.vectors(), storage.get_xb());
        check_request({{storage.get_xb(), n, storage.d, gnnd::DType::f32, 0}, source.metric()}, 1);
        if (is_normalized(source.metric())) faiss::fvec_renorm_L2(storage.d, n, storage.get_xb());
    }
    storage.ntotal = n;
}

FloatMatrix::FloatMatrix(const VectorSource& source) : d_(source.vectors().d) {
    const gnnd::VectorView& x = source.on_host();
    const std::int64_t contiguous = x.d * std::int64_t(sizeof(float));
    if (x.dtype == gnnd::DType::f32 && x.row_bytes() == contiguous && !is_normalized(source.metric())) {
        data_ = static_cast<const float*>(x.data);
        return;
    }
    copy_.resize(std::size_t(x.n) * x.d);
    float_rows(source, 0, x.n, copy_.data());
    data_ = copy_.data();
}

void for_float_rows(const VectorSource& source, std::int64_t block,
                    const std::function<void(std::int64_t, std::int64_t, const float*)>& use) {
    const gnnd::VectorView& x = source.vectors();
    std::vector<float> rows(std::min(block, x.n) * x.d);
    for (std::int64_t begin = 0; begin < x.n; begin += block) {
        check_interrupt();
        const std::int64_t count = std::min(block, x.n - begin);
        float_rows(source, begin, count, rows.data());
        use(begin, count, rows.data());
    }
}

void check_request(const VectorSource& source, int k) {
    // The rows of no objects: nothing is searched, but the arguments and all vectors are checked.
    gnnd::exact_neighbors(source.on_host(), nullptr, 0, k, source.metric(), 0, interrupt_hooks());
}

void finish_rows(const VectorSource& source, const std::int32_t* objects, std::int64_t count, const idx_t* candidates,
                 std::int64_t m, int k, std::uint64_t seed, std::int32_t* ids, float* distances) {
    const gnnd::VectorView& x = source.on_host();
    const std::int64_t wanted = std::min<std::int64_t>(k, x.n - 1);
    const std::int64_t width = std::max(m, wanted);
    const int threads = omp_get_max_threads();
    std::vector<std::int32_t> owners(count * width), found(count * width, -1);
    // All memory is taken here: what is thrown in a parallel region ends the process.
    std::vector<std::pair<float, std::int32_t>> orders(std::size_t(threads) * width);  // smaller keys are nearer
#pragma omp parallel for num_threads(threads)
    for (std::int64_t r = 0; r < count; ++r) {
        const std::int32_t self = objects[r];
        std::fill_n(owners.begin() + r * width, width, self);
        const auto begin = found.begin() + r * width;
        auto end = std::copy_if(candidates + r * m, candidates + (r + 1) * m, begin,
                                [&](idx_t id) { return id >= 0 && id < x.n && id != self; });
        std::sort(begin, end);
        const auto known = std::unique(begin, end);
        std::fill(known, end, -1);
        end = known;
        // Consecutive ids from a random one: all distinct, and never more steps than the row has entries.
        std::int64_t id = gnnd::Random(seed, self).below(std::uint32_t(x.n));
        for (; end - begin < wanted; id = (id + 1) % x.n)
            if (id != self && !std::binary_search(begin, known, std::int32_t(id))) *end++ = std::int32_t(id);
    }
    std::vector<float> values(count * width);
    gnnd::pair_distances(x, source.metric(), owners.data(), found.data(), count * width, values.data());

    const bool similarity = gnnd::is_similarity(source.metric());
#pragma omp parallel for num_threads(threads)
    for (std::int64_t r = 0; r < count; ++r) {
        const auto order = orders.begin() + omp_get_thread_num() * width;
        auto end = order;
        for (std::int64_t j = r * width; j < (r + 1) * width && found[j] >= 0; ++j)
            *end++ = {similarity ? -values[j] : values[j], found[j]};
        std::partial_sort(order, order + wanted, end);
        for (std::int64_t j = 0; j < k; ++j) {
            const bool there = j < wanted;
            ids[r * k + j] = there ? order[j].second : -1;
            distances[r * k + j] = !there       ? gnnd::worst_value(source.metric())
                                   : similarity ? 0 - order[j].first
                                                : order[j].first;
        }
    }
}

}  // namespace faiss_ext::detail

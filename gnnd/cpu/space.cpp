// SPDX-License-Identifier: MIT
#include "gnnd/cpu/space.h"

#include <cmath>
#include <cstring>

namespace gnnd::cpu {
namespace {

constexpr int kRowsAtOnce = 64;

int fill_panels(int count) {
    return (count + kPanelColumns - 1) / kPanelColumns * kPanelColumns;
}

}  // namespace

Space::Space(const VectorView& vectors, Metric metric, const Team& team, Resources& resources)
    : vectors(vectors),
      metric(metric),
      kernels(cpu::kernels(metric, vectors.dtype, vectors.d, supported_isas().back())),
      similarity(is_similarity(metric)) {
    if (!is_normalized(metric)) return;
    inverse_norms = Buffer<float>(resources, vectors.n);
    Buffer<float> rows(resources, std::size_t(team.threads) * vectors.d);
    team.for_chunks(vectors.n, kRowsAtOnce, [&](int thread, std::int64_t begin, std::int64_t end) {
        float* row = rows.data() + thread * vectors.d;
        for (std::int64_t i = begin; i < end; ++i) {
            copy_as_f32(vectors, i, 1, row);
            double sum = 0;
            for (std::int64_t c = 0; c < vectors.d; ++c) sum += double(row[c]) * row[c];
            inverse_norms[i] = float(1 / std::sqrt(sum));
        }
    });
}

Block::Block(const Space& space, int max_rows, int max_columns, Resources& resources)
    : space_(&space),
      stride_(fill_panels(max_columns)),
      row_tile_(resources, max_rows * kSlice),
      column_tile_(resources, stride_ * kSlice),
      panels_(resources, stride_ / kPanelColumns * kPanelBytes),
      keys_(resources, std::size_t(max_rows) * stride_) {
    // Rows that fill up a panel are read; their values are never used, but they must be there.
    std::memset(column_tile_.data(), 0, column_tile_.size());
    if (space.inverse_norms.size() != 0) {
        row_scales_ = Buffer<float>(resources, max_rows);
        column_scales_ = Buffer<float>(resources, max_columns);
    }
}

std::size_t Block::bytes(int max_rows, int max_columns, bool normalized) {
    const auto rows = std::size_t(max_rows), stride = std::size_t(fill_panels(max_columns));
    const std::size_t scales = normalized ? std::size_t(max_rows + max_columns) * sizeof(float) : 0;
    return (rows + stride) * kSlice + stride / kPanelColumns * kPanelBytes + rows * stride * sizeof(float) + scales;
}

void Block::run(const Space& of_rows, const std::int32_t* rows, int row_count, const std::int32_t* columns,
                int column_count, bool triangular) {
    const VectorView &x = space_->vectors, &y = of_rows.vectors;
    const Kernels& kernels = space_->kernels;
    const auto *base = static_cast<const std::byte*>(x.data), *base_of_rows = static_cast<const std::byte*>(y.data);
    const int slice = int(kSlice / kernels.element);
    for (std::int64_t begin = 0; begin < x.d; begin += slice) {
        const int width = int(std::min<std::int64_t>(slice, x.d - begin));
        kernels.gather(base, x.row_bytes(), columns, column_count, begin, width, column_tile_.data());
        kernels.pack(column_tile_.data(), column_count, width, panels_.data());
        if (!triangular) kernels.gather(base_of_rows, y.row_bytes(), rows, row_count, begin, width, row_tile_.data());
        kernels.block(triangular ? column_tile_.data() : row_tile_.data(), row_count, panels_.data(), column_count,
                      width, keys_.data(), stride_, {begin > 0, begin + width < x.d}, triangular);
    }
    if (!space_->similarity) return;
    const Buffer<float>& norms = space_->inverse_norms;
    if (norms.size() != 0) {
        for (int i = 0; i < row_count; ++i) row_scales_[i] = of_rows.inverse_norms[rows[i]];
        for (int j = 0; j < column_count; ++j) column_scales_[j] = norms[columns[j]];
    }
    kernels.finish(keys_.data(), row_count, column_count, stride_, row_scales_.data(), column_scales_.data());
}

PairBlock::PairBlock(const Space& space, int max_pairs, Resources& resources)
    : space_(&space),
      tile_(resources, fill_panels(max_pairs) * kSlice),
      a_panels_(resources, fill_panels(max_pairs) / kPanelColumns * kPanelBytes),
      b_panels_(resources, a_panels_.size()),
      keys_(resources, fill_panels(max_pairs)) {
    std::memset(tile_.data(), 0, tile_.size());
}

std::size_t PairBlock::bytes(int max_pairs) {
    const auto filled = std::size_t(fill_panels(max_pairs));
    return filled * (kSlice + sizeof(float)) + 2 * (filled / kPanelColumns * kPanelBytes);
}

void PairBlock::compute(const std::int32_t* a, const std::int32_t* b, int count) {
    const VectorView& x = space_->vectors;
    const Kernels& kernels = space_->kernels;
    const auto* base = static_cast<const std::byte*>(x.data);
    const int slice = int(kSlice / kernels.element);
    for (std::int64_t begin = 0; begin < x.d; begin += slice) {
        const int width = int(std::min<std::int64_t>(slice, x.d - begin));
        kernels.gather(base, x.row_bytes(), a, count, begin, width, tile_.data());
        kernels.pack(tile_.data(), count, width, a_panels_.data());
        kernels.gather(base, x.row_bytes(), b, count, begin, width, tile_.data());
        kernels.pack(tile_.data(), count, width, b_panels_.data());
        kernels.pairs(a_panels_.data(), b_panels_.data(), count, width, keys_.data(), {begin > 0, begin + width < x.d});
    }
    if (!space_->similarity) return;
    const Buffer<float>& norms = space_->inverse_norms;
    for (int p = 0; p < count; ++p) {
        const float of_a = norms.size() != 0 ? norms[a[p]] : 0, of_b = norms.size() != 0 ? norms[b[p]] : 0;
        kernels.finish(&keys_[p], 1, 1, 1, &of_a, &of_b);
    }
}

void Block::compute(const std::int32_t* rows, int row_count, const std::int32_t* columns, int column_count) {
    run(*space_, rows, row_count, columns, column_count, false);
}

void Block::compute(const Space& of_rows, const std::int32_t* rows, int row_count, const std::int32_t* columns,
                    int column_count) {
    run(of_rows, rows, row_count, columns, column_count, false);
}

void Block::compute_triangle(const std::int32_t* columns, int row_count, int column_count) {
    run(*space_, columns, row_count, columns, column_count, true);
}

}  // namespace gnnd::cpu

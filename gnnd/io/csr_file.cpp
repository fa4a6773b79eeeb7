// SPDX-License-Identifier: MIT
#include "gnnd/io/csr_file.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <vector>

#include "gnnd/cpu/operations/edges.h"
#include "gnnd/io/detail/atomic_file.h"
#include "gnnd/io/detail/npy_header.h"
#include "gnnd/io/detail/zip_file.h"
#include "gnnd/io/vector_file.h"
#include "gnnd/names.h"

namespace gnnd::io {
namespace {

constexpr NameTable<CsrFormat, kCsrFormats.size()> kFormats{"format of sparse matrices",
                                                            {{{CsrFormat::npz, "npz"}, {CsrFormat::mtx, "mtx"}}}};

void check(const CsrGraph& graph) {
    const std::int64_t entries = graph.indptr.empty() ? -1 : graph.indptr.back();
    if (graph.n < 0 || std::int64_t(graph.indptr.size()) != graph.n + 1 ||
        entries != std::int64_t(graph.indices.size()) || entries != std::int64_t(graph.values.size()))
        throw InvalidArgument(std::string("write_csr: ") + std::to_string(graph.n) + " rows, " +
                              std::to_string(graph.indptr.size()) + " offsets up to " + std::to_string(entries) + ", " +
                              std::to_string(graph.indices.size()) + " columns and " +
                              std::to_string(graph.values.size()) + " values");
}

std::string extent(std::int64_t n) {
    return std::string("(").append(std::to_string(n)).append(",)");
}

void write_npz(detail::AtomicFile& file, const CsrGraph& graph, const WriteCsr& how) {
    detail::ZipWriter zip(file, how.interrupt);
    const auto add = [&](const char* name, const std::string& descr, const std::string& shape, const void* data,
                         std::size_t bytes) {
        const std::string header = detail::npy_header_of(descr, shape);
        zip.add(name, {{header.data(), header.size()}, {data, bytes}});
    };
    const std::int64_t entries = graph.entries();
    add("indices.npy", "<i4", extent(entries), graph.indices.data(), graph.indices.size() * 4);
    if (entries <= std::numeric_limits<std::int32_t>::max()) {
        const std::vector<std::int32_t> indptr(graph.indptr.begin(), graph.indptr.end());
        add("indptr.npy", "<i4", extent(graph.n + 1), indptr.data(), indptr.size() * 4);
    } else {
        add("indptr.npy", "<i8", extent(graph.n + 1), graph.indptr.data(), graph.indptr.size() * 8);
    }
    add("format.npy", "|S3", "()", "csr", 3);
    const std::int64_t shape[2] = {graph.n, graph.n};
    add("shape.npy", "<i8", extent(2), shape, sizeof shape);
    add("data.npy", "<f4", extent(entries), graph.values.data(), graph.values.size() * 4);
    zip.finish();
}

/// The lines of rows [begin, end).
std::string mtx_lines(const CsrGraph& graph, std::int64_t begin, std::int64_t end, bool symmetric) {
    std::string lines;
    char line[64];
    for (std::int64_t i = begin; i < end; ++i)
        for (std::int64_t e = graph.indptr[std::size_t(i)]; e < graph.indptr[std::size_t(i) + 1]; ++e) {
            const std::int32_t column = graph.indices[std::size_t(e)];
            if (symmetric && column > i) break;  // columns ascend
            char* at = std::to_chars(line, line + 24, i + 1).ptr;
            *at++ = ' ';
            at = std::to_chars(at, at + 12, std::int64_t(column) + 1).ptr;
            *at++ = ' ';
            at = std::to_chars(at, at + 20, graph.values[std::size_t(e)]).ptr;
            *at++ = '\n';
            lines.append(line, at);
        }
    return lines;
}

void write_mtx(detail::AtomicFile& file, const CsrGraph& graph, const WriteCsr& how) {
    const cpu::Team team = cpu::team_of(how.threads, &how.interrupt);
    std::int64_t entries = graph.entries();
    if (how.symmetric) {
        entries = 0;
        for (std::int64_t i = 0; i < graph.n; ++i) {
            const auto row = graph.indices.begin();
            const auto begin = row + graph.indptr[std::size_t(i)], end = row + graph.indptr[std::size_t(i) + 1];
            entries += std::upper_bound(begin, end, std::int32_t(i)) - begin;
        }
    }
    const std::string n = std::to_string(graph.n);
    const std::string head = std::string("%%MatrixMarket matrix coordinate real ") +
                             (how.symmetric ? "symmetric" : "general") + "\n" + n + " " + n + " " +
                             std::to_string(entries) + "\n";
    file.write(head.data(), head.size());
    // Threads make the text of some rows each, which is then written in order.
    constexpr std::int64_t kRows = 4096;
    std::vector<std::string> texts(std::size_t(team.threads) * 4);
    const std::int64_t rows_at_once = kRows * std::int64_t(texts.size());
    for (std::int64_t first = 0; first < graph.n; first += rows_at_once) {
        const std::int64_t rows = std::min(rows_at_once, graph.n - first);
        team.for_chunks(rows, kRows, [&](int, std::int64_t begin, std::int64_t end) {
            texts[std::size_t(begin / kRows)] = mtx_lines(graph, first + begin, first + end, how.symmetric);
        });
        for (std::int64_t t = 0; t * kRows < rows; ++t)
            file.write(texts[std::size_t(t)].data(), texts[std::size_t(t)].size());
    }
}

}  // namespace

std::string_view name_of(CsrFormat format) {
    return kFormats.name_of(format);
}

CsrFormat csr_format_of(const std::string& path) {
    std::string extension = std::filesystem::path(path).extension().string();
    std::transform(extension.begin(), extension.end(), extension.begin(),
                   [](unsigned char c) { return char(std::tolower(c)); });
    for (const CsrFormat format : kCsrFormats)
        if (extension.size() > 1 && std::string_view(extension).substr(1) == name_of(format)) return format;
    throw IoError(path + ": no sparse matrix by its extension, known are " + kFormats.known());
}

void write_csr(const std::string& path, const CsrGraph& graph, const WriteCsr& how) {
    const CsrFormat format = csr_format_of(path);
    check(graph);
    detail::AtomicFile file(path);
    switch (format) {
        case CsrFormat::npz:
            write_npz(file, graph, how);
            break;
        case CsrFormat::mtx:
            write_mtx(file, graph, how);
            break;
    }
    file.commit();
}

void write_labels(const std::string& path, const std::int32_t* labels, std::int64_t n) {
    if (format_of(path) != VectorFormat::npy) return write_vectors(path, {labels, n, 1, DType::i32});
    const std::string header = detail::npy_header_of("<i4", extent(n));
    detail::AtomicFile file(path);
    file.write(header.data(), header.size());
    file.write(labels, std::size_t(n) * sizeof *labels);
    file.commit();
}

}  // namespace gnnd::io

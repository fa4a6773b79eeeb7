// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "any_graph.h"
#include "commands.h"
#include "common.h"
#include "components.h"
#include "files.h"
#include "gnnd/io/vector_file.h"
#include "interrupt.h"

namespace cli {

namespace {

struct ConvertOptions {
    std::string in, out;
    std::optional<gnnd::DType> dtype;
    std::int64_t offset = 0, count = 0;
    bool distances = false;
};

struct Rows {
    std::int64_t begin, count;
};

Rows selected(const ConvertOptions& options, std::int64_t n) {
    const std::int64_t count = options.count > 0 ? options.count : n - options.offset;
    if (options.offset >= n || count > n - options.offset)
        throw gnnd::InvalidArgument(
            (options.count > 0 ? std::to_string(options.count) + " rows" : std::string("rows")) + " from row " +
            std::to_string(options.offset) + " on asked for, " + options.in + " has " + std::to_string(n));
    return {options.offset, count};
}

/// Calls f(begin, count) for pieces of the rows of a few megabytes each.
void for_pieces(Rows rows, std::int64_t row_bytes, const std::function<void(std::int64_t, std::int64_t)>& f) {
    constexpr std::int64_t kPieceBytes = 4 << 20;
    const std::int64_t piece = std::max<std::int64_t>(1, kPieceBytes / row_bytes);
    for (std::int64_t done = 0; done < rows.count; done += piece) {
        stop_if_interrupted();
        f(rows.begin + done, std::min(piece, rows.count - done));
    }
}

void convert_vectors(const ConvertOptions& options) {
    const gnnd::io::VectorFile in(options.in);
    const gnnd::DType to = options.dtype ? *options.dtype : dtype_for(gnnd::io::format_of(options.out), in.dtype());
    const Rows rows = selected(options, in.n());
    gnnd::io::VectorWriter writer(options.out, rows.count, in.d(), to);
    const std::int64_t row_bytes = in.d() * std::int64_t(std::max(size_of(in.dtype()), size_of(to)));
    std::vector<std::byte> read, converted;
    for_pieces(rows, row_bytes, [&](std::int64_t begin, std::int64_t count) {
        read.resize(count * in.d() * size_of(in.dtype()));
        in.read(begin, count, read.data());
        if (in.dtype() == to) return writer.append(read.data(), count);
        converted.resize(count * in.d() * size_of(to));
        const std::int64_t failed = convert_components(read.data(), in.dtype(), converted.data(), to, count * in.d());
        if (failed >= 0)
            throw gnnd::InvalidArgument(options.in + ": row " + std::to_string(begin + failed / in.d()) + " holds " +
                                        component_text(read.data(), in.dtype(), failed) + ", which is no " +
                                        std::string(name_of(to)));
        writer.append(converted.data(), count);
    });
    writer.commit();
}

void convert_graph(const ConvertOptions& options) {
    if (options.dtype) throw CLI::ValidationError("--dtype", "is for vectors, not for a graph");
    const AnyGraph in(options.in);
    const Rows rows = selected(options, in.n());
    const gnnd::DType to = options.distances ? gnnd::DType::f32 : gnnd::DType::i32;
    gnnd::io::VectorWriter writer(options.out, rows.count, in.k(), to);
    for_pieces(rows, in.k() * std::int64_t(size_of(to)), [&](std::int64_t begin, std::int64_t count) {
        const gnnd::KnnGraph piece = in.read(begin, count);
        if (options.distances)
            writer.append(piece.distances(), count);
        else
            writer.append(piece.ids(), count);
    });
    writer.commit();
}

void run(const ConvertOptions& options) {
    gnnd::io::format_of(options.out);    // an unknown extension is told before the folder is looked at
    require_outputs({options.out}, {});  // which may be the one that is read
    if (!is_vector_file(options.in)) return convert_graph(options);
    if (options.distances) throw CLI::ValidationError("--distances", "is for a graph, " + options.in + " is none");
    convert_vectors(options);
}

}  // namespace

void add_convert(CLI::App& app) {
    CLI::App& command = *app.add_subcommand("convert", "Write vectors, or a graph's ids, in another format");
    const auto options = std::make_shared<ConvertOptions>();
    command
        .add_option("IN", options->in,
                    std::string("vectors (") + kVectorFormats +
                        ", by extension) or, with any other extension, a graph; "
                        "the folder of one in shards")
        ->required()
        ->type_name("FILE");
    command.add_option("OUT", options->out, "file to write; the extension tells the format")
        ->required()
        ->type_name("FILE");
    command.add_flag("--distances", options->distances, "of a graph, write the distances (fvecs, fbin, npy), not ids");
    add_parsed(command, "--dtype", options->dtype, gnnd::parse_dtype, "",
               "element type for npy: f32, f16, u8, i8 or i32; IN's by default");
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    add_whole(command, "--offset", options->offset, 0, kMost, "first row to write");
    add_whole(command, "--count", options->count, 0, kMost, "number of rows to write; 0: up to the last");
    command.footer(
        "Graphs go to ivecs, ibin or npy. A component that the new type cannot hold exactly is an error that names "
        "the\n"
        "row; only f16 rounds. OUT appears when it is whole.");
    command.callback([options] { run(*options); });
}

}  // namespace cli

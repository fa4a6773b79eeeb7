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
#include "gnnd/io/graph_file.h"
#include "gnnd/io/vector_file.h"
#include "import_ids.h"
#include "interrupt.h"

namespace cli {

namespace {

struct ConvertOptions {
    std::string in, out, base;
    std::vector<std::string> joined;  ///< vectors that follow those of `in`
    gnnd::Metric metric = gnnd::Metric::L2;
    std::optional<gnnd::DType> dtype;
    std::int64_t offset = 0, count = 0;
    bool distances = false, metric_given = false;
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

/// The rows of one file, in another type if need be.
void append_rows(const gnnd::io::VectorFile& in, Rows rows, gnnd::DType to, gnnd::io::VectorWriter& writer) {
    const std::int64_t row_bytes = in.d() * std::int64_t(std::max(size_of(in.dtype()), size_of(to)));
    std::vector<std::byte> read, converted;
    for_pieces(rows, row_bytes, [&](std::int64_t begin, std::int64_t count) {
        read.resize(count * in.d() * size_of(in.dtype()));
        in.read(begin, count, read.data());
        if (in.dtype() == to) return writer.append(read.data(), count);
        converted.resize(count * in.d() * size_of(to));
        const std::int64_t failed = convert_components(read.data(), in.dtype(), converted.data(), to, count * in.d());
        if (failed >= 0)
            throw gnnd::InvalidArgument(in.path() + ": row " + std::to_string(begin + failed / in.d()) + " holds " +
                                        component_text(read.data(), in.dtype(), failed) + ", which is no " +
                                        std::string(name_of(to)));
        writer.append(converted.data(), count);
    });
}

void convert_vectors(const ConvertOptions& options) {
    std::vector<gnnd::io::VectorFile> files;
    files.emplace_back(options.in);
    for (const std::string& path : options.joined) files.emplace_back(path);
    std::int64_t n = 0;
    for (const gnnd::io::VectorFile& file : files) {
        if (file.d() != files[0].d())
            throw gnnd::InvalidArgument(file.path() + " holds vectors of " + std::to_string(file.d()) +
                                        " components, " + options.in + " of " + std::to_string(files[0].d()));
        n += file.n();
    }
    const gnnd::DType to =
        options.dtype ? *options.dtype : dtype_of(gnnd::io::format_of(options.out)).value_or(files[0].dtype());
    const Rows rows = selected(options, n);
    require_room(options.out, std::uint64_t(rows.count * files[0].d()) * size_of(to));
    gnnd::io::VectorWriter writer(options.out, rows.count, files[0].d(), to);
    std::int64_t first = 0;  // of the file's rows among all
    for (const gnnd::io::VectorFile& file : files) {
        const std::int64_t begin = std::max(rows.begin, first);
        const std::int64_t end = std::min(rows.begin + rows.count, first + file.n());
        if (begin < end) append_rows(file, {begin - first, end - begin}, to, writer);
        first += file.n();
    }
    for (const gnnd::io::VectorFile& file : files) file.require_unchanged();
    writer.commit();
}

void convert_graph(const ConvertOptions& options) {
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

/// A graph in shards, or in a file of an older version, as one file.
void write_graph_file(const ConvertOptions& options) {
    const AnyGraph in(options.in);
    const Rows rows = selected(options, in.n());
    const std::optional<gnnd::io::BaseIdentity> base = in.base();
    require_room(options.out, gnnd::io::graph_file_bytes(rows.count, in.k(), base.has_value(), true,
                                                         in.objects() > gnnd::kMaxObjects ? 8 : 4));
    if (in.sharded() != nullptr && rows.count == in.n())
        return in.sharded()->write(options.out, [] { return caught_signal() != 0; });
    const gnnd::KnnGraph graph = in.read(rows.begin, rows.count);
    if (base)
        write_graph(options.out, graph, *base, rows.count == in.n() ? in.recall() : gnnd::RecallEstimate{});
    else
        gnnd::io::write_graph(options.out, graph, in.dtype(), in.objects());
}

void write_graph_of_ids(const ConvertOptions& options) {
    const gnnd::io::VectorFile ids(options.in), base(options.base);
    const Bases bases(base);
    const gnnd::KnnGraph graph = import_ids(ids, base, options.metric);
    write_graph(options.out, graph, bases.unchanged());
}

/// Does what the names and options given ask for.
void run(const ConvertOptions& options) {
    const auto has_no_meaning = [](const char* option, bool given, const std::string& where) {
        if (given) throw CLI::ValidationError(option, "has no meaning " + where);
    };
    const bool from_vectors = is_vector_file(options.in), to_vectors = is_vector_file(options.out);
    const bool imports = from_vectors && !options.base.empty();
    has_no_meaning("--base", !options.base.empty() && (!from_vectors || to_vectors), "but for ids made a graph");
    has_no_meaning("--metric", options.metric_given && !imports, "without --base");
    has_no_meaning("--join", !options.joined.empty() && (!from_vectors || imports), "but for vectors");
    has_no_meaning("--distances", options.distances && (from_vectors || !to_vectors),
                   "but for a graph's distances written as vectors");
    has_no_meaning("--dtype", options.dtype && (!from_vectors || imports), "but for vectors");
    has_no_meaning("--offset, --count", imports && (options.offset > 0 || options.count > 0), "with --base");
    if (from_vectors && !imports) gnnd::io::format_of(options.out);  // throws where it is no format of vectors
    std::vector<std::string> kept = options.joined;
    kept.push_back(options.base);
    // IN may be replaced, but not by a part of itself.
    if (options.offset > 0 || options.count > 0 || options.distances) kept.push_back(options.in);
    require_outputs({options.out}, kept);
    if (imports) return write_graph_of_ids(options);
    if (from_vectors) return convert_vectors(options);
    if (to_vectors) return convert_graph(options);
    write_graph_file(options);
}

}  // namespace

void add_convert(CLI::App& app) {
    CLI::App& command = *app.add_subcommand("convert", "Write vectors, or a graph's ids, in another format");
    const auto options = std::make_shared<ConvertOptions>();
    add_vectors_or_graph(command, options->in, "IN");
    add_name(command, "OUT", options->out, "FILE",
             "file to write; the extension tells the format, any other is a graph's")
        ->required();
    command.add_option("--join", options->joined, "files of vectors whose rows follow those of IN, in this order")
        ->type_name("FILE...")
        ->check(CLI::Validator(
            [](const std::string& name) { return name.empty() ? "a name may not be empty" : std::string(); }, ""));
    add_name(command, "--base", options->base, "FILE",
             "IN holds ids of neighbours: make a graph of them, with the distances of these vectors");
    const CLI::Option* metric = add_metric(command, options->metric);
    command.add_flag("--distances", options->distances,
                     "of a graph, write the distances (" + formats_of(gnnd::DType::f32) + "), not ids");
    std::vector<std::string> dtypes;
    for (const gnnd::DType dtype : gnnd::kDTypes)
        if (holds(gnnd::io::VectorFormat::npy, dtype)) dtypes.emplace_back(name_of(dtype));
    add_parsed(command, "--dtype", options->dtype, gnnd::parse_dtype, "", dtypes,
               "element type for npy: " + listed(dtypes) + "; IN's by default");
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    add_whole(command, "--offset", options->offset, 0, kMost, "first row to write");
    add_whole(command, "--count", options->count, 0, kMost, "number of rows to write; 0: up to the last");
    command.footer(
        "A graph's ids go to " + formats_of(gnnd::DType::i32) +
        "; the folder of one in shards goes to one file, and of ids with a base\n"
        "a graph is made. A component that the new type cannot hold exactly is an error that names the row; only f16\n"
        "and bf16 round. OUT appears when it is whole.\n"
        "Example: gnnd convert huge.graph huge.gnnd\n"
        "         gnnd convert ids.npy ids.gnnd --base base.fvecs");
    command.callback([options, metric] {
        options->metric_given = metric->count() > 0;
        run(*options);
    });
}

}  // namespace cli

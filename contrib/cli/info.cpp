// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <unordered_map>
#include <vector>

#include "any_graph.h"
#include "build_options.h"
#include "commands.h"
#include "common.h"
#include "files.h"
#include "gnnd/io/vector_file.h"
#include "interrupt.h"
#include "messages.h"

namespace cli {

namespace {

Json vectors_info(const std::string& path) {
    const gnnd::io::VectorFile file(path);
    Json info{{"kind", "vectors"}, {"format", name_of(file.format())}, {"n", file.n()},
              {"d", file.d()},     {"dtype", name_of(file.dtype())},   {"bytes", std::filesystem::file_size(path)}};
    if (!file.converted_from().empty()) info["converted_from"] = file.converted_from();
    return info;
}

/// Found by one pass over the rows, which verifies the checksums at the same time.
struct Degrees {
    std::int64_t entries = 0;  ///< that are not -1
    bool known = true;         ///< the rest, of up to kMaxObjects objects: counts of more would fill the memory
    std::int64_t in_max = 0;   ///< the most lists that one object stands in
    std::int64_t in_zero = 0;  ///< objects that stand in no list
};

Degrees count_degrees(const AnyGraph& graph) {
    constexpr std::int64_t kRows = 16384;
    Degrees degrees{.known = graph.objects() <= gnnd::kMaxObjects, .in_zero = graph.objects()};
    // A file of a few rows may speak of any number of objects: memory is taken for those that the rows name.
    const bool few = graph.n() * graph.k() < graph.objects();
    std::unordered_map<std::int64_t, std::int64_t> in_of_few;
    std::vector<std::int64_t> in(few || !degrees.known ? 0 : graph.objects(), 0);
    std::vector<std::int64_t> ids;
    std::vector<float> distances;
    for (std::int64_t begin = 0; begin < graph.n(); begin += kRows) {
        stop_if_interrupted();
        const std::int64_t count = std::min(kRows, graph.n() - begin);
        ids.resize(std::size_t(count * graph.k()));
        distances.resize(ids.size());
        graph.read_into(begin, count, ids.data(), distances.data());
        for (const std::int64_t id : ids) {
            if (id < 0) continue;
            ++degrees.entries;
            if (!degrees.known) continue;
            const std::int64_t degree = few ? ++in_of_few[id] : ++in.at(id);
            degrees.in_max = std::max(degrees.in_max, degree);
            degrees.in_zero -= degree == 1;
        }
    }
    return degrees;
}

Json graph_info(const std::string& path) {
    const AnyGraph graph(path);
    const Degrees degrees = count_degrees(graph);
    Json info{{"kind", graph.sharded() != nullptr ? "graph in shards" : "graph"}};
    if (graph.sharded() != nullptr) {
        info["shards"] = graph.sharded()->shards();
        if (const std::string& base = graph.sharded()->base(); !base.empty()) info["base"] = base;
    } else {
        info["version"] = graph.file()->version();
    }
    info["n"] = graph.n();
    if (graph.objects() != graph.n()) info["objects"] = graph.objects();
    info["k"] = graph.k();
    if (graph.id_bytes() != sizeof(std::int32_t)) info["id_bytes"] = graph.id_bytes();
    info["metric"] = name_of(graph.metric());
    info["dtype"] = name_of(graph.dtype());
    if (const auto base = graph.base()) info["d"] = base->d;
    info.update(to_json(graph.recall()));
    info["entries"] = degrees.entries;
    info["padding"] = graph.n() * graph.k() - degrees.entries;
    if (degrees.known) {
        info["max_in_degree"] = degrees.in_max;
        info["zero_in_degree"] = degrees.in_zero;
    }
    info["bytes"] = graph.bytes();
    return info;
}

void run(const std::string& path, bool json) {
    const Json info = is_vector_file(path) ? vectors_info(path) : graph_info(path);
    if (json) {
        print(info);
        return;
    }
    for (const auto& [key, value] : info.items())
        std::printf("%-15s %s\n", key.c_str(),
                    printable(value.is_string() ? value.get<std::string>() : value.dump()).c_str());
}

}  // namespace

void add_info(CLI::App& app) {
    CLI::App& command = *app.add_subcommand("info", "Tell what is in a file of vectors or in a graph file");
    struct Options {
        std::string path;
        bool json = false;
    };
    const auto options = std::make_shared<Options>();
    add_vectors_or_graph(command, options->path, "FILE");
    add_json(command, options->json);
    command.footer(
        "For a graph all rows are read and their checksums verified; dtype is that of the vectors it was built from,\n"
        "recall is what the build has measured, with its 95% interval, and is missing where it has not;\n"
        "padding counts the -1 entries, max_in_degree is the most lists that one object stands in, zero_in_degree\n"
        "counts the objects that stand in none; of more than 2^31 - 1 objects neither is there.");
    command.callback([options] { run(options->path, options->json); });
}

}  // namespace cli

// SPDX-License-Identifier: MIT
// FAISS's graph indexes beside those with GNND: what they take to make, to grow and to merge, and how fast they find
// how much. Prints one JSON line per measurement; contrib/plots/search_curves.py draws those of `search`.
//
//   index_bench base.u8bin search --rows 50000 --index NSG32 --index GNND64,NSG32 --index HNSW16 efConstruction=200
//   index_bench base.u8bin grow --rows 35000 --adds 150 --step 100 --index GNND64,NSG32
//   index_bench base.u8bin merge --rows 20000 --index GNND64,HNSW16
//   index_bench embeddings.fbin search --metric cosine --index GNND64,NSG32 --index NSG32 > lines.json
#include <faiss/IndexHNSW.h>
#include <faiss/IndexNSG.h>
#include <faiss/impl/IDSelector.h>
#include <omp.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "benchs/held_out.h"
#include "benchs/settings.h"
#include "faiss_ext/gnnd_index.h"
#include "faiss_ext/index_factory.h"
#include "faiss_ext/index_operations.h"

namespace {

using gnnd::benchs::HeldOut;
using nlohmann::json;
using Index = std::unique_ptr<faiss::Index>;

struct Options {
    std::string path, metric = "l2";
    std::vector<std::string> indexes{"GNND64,NSG32"};
    std::int64_t rows = 0, queries = 2000, adds = 100, step = 100, every = 10;
    std::vector<int> beams{10, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512};
    int k = 10, repeat = 3, threads = 0;
    std::int64_t on_gpu = -1;
    double removed = 0;
};

/// Time that passes and time that the process has of its cores, which others may share.
class Clock {
  public:
    double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
    double cpu_seconds() const { return double(std::clock() - cpu_start_) / CLOCKS_PER_SEC; }

  private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    std::clock_t cpu_start_ = std::clock();
};

/// "HNSW16 efConstruction=200": a description as faiss_ext::index_factory() takes it, and settings of an HNSW by FAISS.
Index make(const std::string& text, const HeldOut& data, const Options& options) {
    const std::size_t space = text.find(' ');
    Index index = faiss_ext::index_factory(int(data.d), text.substr(0, space), data.metric);
    if (auto* growing = dynamic_cast<faiss_ext::WithGnnd*>(&*index)) growing->keep_on_gpu(options.on_gpu);
    if (space == std::string::npos) return index;
    gnnd::benchs::Settings settings(text.substr(space + 1));
    settings.take("efConstruction", [&](const std::string& value) {
        dynamic_cast<faiss::IndexHNSW&>(*index).hnsw.efConstruction = std::stoi(value);
    });
    settings.end("index " + text);
    return index;
}

json describe(const Options& options, const HeldOut& data, const std::string& index) {
    return {{"data", options.path.substr(options.path.find_last_of('/') + 1)},
            {"n", data.n},
            {"d", data.d},
            {"metric", options.metric},
            {"k", options.k},
            {"queries", options.queries},
            {"index", index},
            {"threads", omp_get_max_threads()}};
}

void print(json line, const json& more) {
    line.update(more);
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
}

void set_beam(faiss::Index& index, int beam) {
    const bool nsg = dynamic_cast<faiss::IndexNSG*>(&index) != nullptr;
    faiss_ext::ParameterSpace().set_index_parameter(&index, nsg ? "search_L" : "efSearch", beam);
}

/// Makes all indexes, then searches each with every beam; round by round, so that what slows the machine down for a
/// while slows none of them alone.
void search(const Options& options, HeldOut& data) {
    struct Times {
        double seconds = INFINITY, cpu_seconds = INFINITY;
    };
    std::vector<Index> indexes;
    std::vector<json> lines;
    for (const std::string& text : options.indexes) {
        indexes.push_back(make(text, data, options));
        const gnnd::benchs::PeakMemory memory;
        const Clock building;
        if (!indexes.back()->is_trained) indexes.back()->train(data.n, data.row(0));
        indexes.back()->add(data.n, data.row(0));
        lines.push_back(describe(options, data, text));
        lines.back()["build_seconds"] = building.seconds();
        lines.back()["build_cpu_seconds"] = building.cpu_seconds();
        lines.back()["peak_bytes"] = memory.bytes();
    }
    std::vector<std::vector<Times>> times(options.beams.size(), std::vector<Times>(indexes.size()));
    for (int round = 0; round < options.repeat; ++round)
        for (std::size_t b = 0; b < options.beams.size(); ++b)
            for (std::size_t i = 0; i < indexes.size(); ++i) {
                set_beam(*indexes[i], options.beams[b]);
                const Clock searching;
                data.search(*indexes[i]);
                times[b][i].seconds = std::min(times[b][i].seconds, searching.seconds());
                times[b][i].cpu_seconds = std::min(times[b][i].cpu_seconds, searching.cpu_seconds());
            }
    for (std::size_t i = 0; i < indexes.size(); ++i)
        for (std::size_t b = 0; b < options.beams.size(); ++b) {
            set_beam(*indexes[i], options.beams[b]);
            print(lines[i], {{"beam", options.beams[b]},
                             {"recall", data.recall(*indexes[i], 0, data.n)},
                             {"qps", double(options.queries) / times[b][i].seconds},
                             {"qps_a_core", double(options.queries) / times[b][i].cpu_seconds}});
        }
}

json recalls(const Options& options, HeldOut& data, faiss::Index& index, std::int64_t begin, std::int64_t end) {
    json found;
    for (const int beam : options.beams) {
        set_beam(index, beam);
        found[std::to_string(beam)] = data.recall(index, begin, end);
    }
    return found;
}

/// The first rows at once, then little adds; beside them one build of all. Searches in between are measured, too.
void grow(const Options& options, HeldOut& data) {
    const std::int64_t first = data.n, all = first + options.adds * options.step;
    if (std::size_t(all) * data.d > data.rows.size())
        throw gnnd::InvalidArgument("grow: " + std::to_string(all) + " vectors are wanted, there are " +
                                    std::to_string(data.rows.size() / data.d));
    for (const std::string& text : options.indexes) {
        const Index index = make(text, data, options), built = make(text, data, options);
        if (!index->is_trained) index->train(all, data.row(0));
        if (!built->is_trained) built->train(all, data.row(0));
        json line = describe(options, data, text);
        line["step"] = options.step;
        if (first > 0) index->add(first, data.row(0));
        std::int64_t begin = 0;
        if (options.removed > 0) {
            const Clock removing;
            begin = std::int64_t(options.removed * double(first));
            index->remove_ids(faiss::IDSelectorRange(0, begin));
            print(line, {{"removed", begin},
                         {"seconds", removing.seconds()},
                         {"cpu_seconds", removing.cpu_seconds()},
                         {"recall", recalls(options, data, *index, begin, first)}});
        }
        double cpu_seconds = 0, longest = 0;
        std::vector<double> seconds;  // of each add
        for (std::int64_t add = 0; add < options.adds; ++add) {
            const std::int64_t at = first + add * options.step;
            const Clock adding;
            index->add(options.step, data.row(at));
            seconds.push_back(adding.seconds());
            cpu_seconds += adding.cpu_seconds();
            longest = std::max(longest, adding.cpu_seconds());
            if ((add + 1) % (options.adds / std::min(options.every, options.adds)) != 0) continue;
            print(line, {{"ntotal", index->ntotal},
                         {"adds", add + 1},
                         {"seconds", std::accumulate(seconds.begin(), seconds.end(), 0.0)},
                         {"seconds_each", seconds},
                         {"cpu_seconds", cpu_seconds},
                         {"longest_cpu_seconds", longest},
                         {"recall", recalls(options, data, *index, begin, at + options.step)}});
        }
        const Clock building;
        built->add(all - begin, data.row(begin));
        print(line, {{"built", all - begin},
                     {"seconds", building.seconds()},
                     {"cpu_seconds", building.cpu_seconds()},
                     {"recall", recalls(options, data, *built, begin, all)}});
    }
}

/// Two halves become one, beside one build of both.
void merge(const Options& options, HeldOut& data) {
    for (const std::string& text : options.indexes)
        for (int round = 0; round < options.repeat; ++round) {
            const Index one = make(text, data, options), other = make(text, data, options),
                        built = make(text, data, options);
            for (const Index* index : {&one, &other, &built})
                if (!(*index)->is_trained) (*index)->train(data.n, data.row(0));
            const std::int64_t half = data.n / 2;
            one->add(half, data.row(0));
            other->add(data.n - half, data.row(half));
            const Clock merging;
            const Index merged = faiss_ext::merge_indexes(*one, *other);
            const double merge_seconds = merging.seconds(), merge_cpu_seconds = merging.cpu_seconds();
            const Clock building;
            built->add(data.n, data.row(0));
            const double build_seconds = building.seconds(), build_cpu_seconds = building.cpu_seconds();
            print(describe(options, data, text), {{"merge_seconds", merge_seconds},
                                                  {"merge_cpu_seconds", merge_cpu_seconds},
                                                  {"build_seconds", build_seconds},
                                                  {"build_cpu_seconds", build_cpu_seconds},
                                                  {"share", merge_cpu_seconds / build_cpu_seconds},
                                                  {"recall", recalls(options, data, *merged, 0, data.n)},
                                                  {"built_recall", recalls(options, data, *built, 0, data.n)}});
        }
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"Times FAISS's graph indexes and those with GNND; prints one JSON line a measurement."};
    Options options;
    app.require_subcommand(1);
    app.add_option("base", options.path, "vector file, whose last vectors are the queries")->required();
    const auto add_mode = [&](const char* name, const char* help, void (*run)(const Options&, HeldOut&)) {
        CLI::App* mode = app.add_subcommand(name, help);
        mode->add_option("--index", options.indexes, "as index_factory() takes it; also 'HNSW16 efConstruction=200'")
            ->capture_default_str();
        mode->add_option("--rows", options.rows, "the first so many vectors; 0: all but the queries");
        mode->add_option("--queries", options.queries)->capture_default_str();
        mode->add_option("--metric", options.metric, "l2, ip, or cosine: ip of the normalised vectors")
            ->capture_default_str();
        mode->add_option("-k", options.k, "neighbours of a query")->capture_default_str();
        mode->add_option("--beams", options.beams, "search_L or efSearch")->delimiter(',')->capture_default_str();
        mode->add_option("--repeat", options.repeat, "the best, or so many lines of a merge")->capture_default_str();
        mode->add_option("--threads", options.threads, "0: all")->capture_default_str();
        mode->add_option("--keep-on-gpu", options.on_gpu, "most bytes that an index with GNND keeps there, -1: chosen")
            ->capture_default_str();
        mode->callback([&options, run] {
            if (options.threads > 0) omp_set_num_threads(options.threads);
            HeldOut data(options.path, options.queries, options.rows, options.k, options.metric);
            run(options, data);
        });
        return mode;
    };
    add_mode("search", "recall and queries a second, beam by beam", search);
    add_mode("merge", "merge_indexes() of two halves, beside one build", merge);
    CLI::App* growing = add_mode("grow", "little adds behind --rows vectors, beside one build", grow);
    growing->add_option("--adds", options.adds, "so many")->capture_default_str();
    growing->add_option("--step", options.step, "vectors of an add")->capture_default_str();
    growing->add_option("--lines", options.every, "lines between the first and the last add")->capture_default_str();
    growing->add_option("--removed", options.removed, "the share of the first vectors that is removed before");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "index_bench: %s\n", error.what());
        return 1;
    }
    return 0;
}

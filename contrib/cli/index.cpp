#include <faiss/impl/io.h>
#include <faiss/index_io.h>

#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>

#include "any_graph.h"
#include "commands.h"
#include "common.h"
#include "faiss_ext/adapters.h"
#include "files.h"
#include "gnnd/io/detail/atomic_file.h"
#include "gnnd/io/vector_file.h"
#include "gnnd/search_links.h"
#include "interrupt.h"

namespace cli {

namespace {

struct IndexOptions {
    std::string graph, base, type, output;
    faiss_ext::NsgParams nsg;
    faiss_ext::HnswParams hnsw;
    faiss_ext::NNDescentIndexParams nndescent;
    int search_L = nsg.search_L;
    gnnd::Device device;
    bool json = false;
};

/// FAISS's own file writer would leave half an index under the final name when the disk is full.
struct AtomicWriter : faiss::IOWriter {
    explicit AtomicWriter(const std::string& path) : file(path) { name = path; }
    size_t operator()(const void* data, size_t size, size_t count) override {
        file.write(data, size * count);
        return count;
    }
    gnnd::io::detail::AtomicFile file;
};

std::unique_ptr<faiss::Index> make_index(const IndexOptions& options, const faiss_ext::VectorSource& source,
                                         const gnnd::KnnGraphView& graph, const faiss_ext::Gpu& gpu) {
    if (options.type == "nsg") {
        faiss_ext::NsgParams params = options.nsg;
        params.gpu = gpu;
        return faiss_ext::to_nsg(source, graph, params);
    }
    if (options.type == "hnsw") {
        faiss_ext::HnswParams params = options.hnsw;
        params.gpu = gpu;
        return faiss_ext::to_hnsw(source, graph, params);
    }
    return faiss_ext::to_nndescent(source, graph, options.nndescent);
}

void run(const IndexOptions& options) {
    require_outputs({options.output}, {options.graph, options.base});
    const AnyGraph file(options.graph);
    const gnnd::io::VectorFile base(options.base);
    file.require_fit(base);
    const gnnd::KnnGraph graph = file.read();
    const faiss_ext::VectorSource source(base.view(), graph.metric());
    // An IndexNNDescent takes the graph as it is: no GPU is started for it.
    const FaissGpu gpu(options.type == "nndescent" ? gnnd::Device{gnnd::Device::Kind::cpu, 0} : options.device);
    const auto start = std::chrono::steady_clock::now();
    const std::unique_ptr<faiss::Index> index = make_index(options, source, graph, gpu.get());
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    stop_if_interrupted();
    AtomicWriter writer(options.output);
    faiss::write_index(index.get(), &writer);
    writer.file.commit();

    if (options.json) {
        print({{"index", options.output},
               {"type", options.type},
               {"n", index->ntotal},
               {"d", index->d},
               {"seconds", seconds.count()}});
        return;
    }
    std::printf("type        %s, %lld x %d\n", options.type.c_str(), static_cast<long long>(index->ntotal), index->d);
    std::printf("seconds     %.3f\n", seconds.count());
    std::printf("index       %s\n", options.output.c_str());
}

}  // namespace

void add_index(CLI::App& app) {
    CLI::App& command = *app.add_subcommand("index", "Make a FAISS graph index of a graph and its vectors");
    const auto options = std::make_shared<IndexOptions>();
    add_graph(command, options->graph);
    add_base(command, options->base);
    command.add_option("--type", options->type, "nsg, hnsw or nndescent")
        ->required()
        ->type_name("NAME")
        ->check(CLI::IsMember({"nsg", "hnsw", "nndescent"}));
    add_output(command, options->output, "index file to write; faiss::read_index opens it");
    constexpr int kMostLinks = gnnd::kMaxDegree, kMostBeam = std::numeric_limits<int>::max();
    const CLI::Option* out_degree = add_whole(command, "--R", options->nsg.R, 1, kMostLinks, "nsg: out-degree");
    const CLI::Option* links =
        add_whole(command, "--M", options->hnsw.M, 2, kMostLinks / 2, "hnsw: level 0 holds 2M links per object");
    const CLI::Option* levels = command.add_flag("--upper-levels", options->hnsw.upper_levels,
                                                 "hnsw: levels above the graph's, for data in far clusters");
    const CLI::Option* search_L =
        add_whole(command, "--search-L", options->search_L, 1, kMostBeam, "nsg, nndescent: search beam");
    const CLI::Option* ef =
        add_whole(command, "--ef-search", options->hnsw.efSearch, 1, kMostBeam, "hnsw: search beam");
    const CLI::Option* device = add_device(command, options->device);
    add_json(command, options->json);
    command.footer(
        "The search beam is what the index starts with; `gnnd search --ef` and FAISS change it.\n"
        "nsg and hnsw are made of l2, ip and cosine graphs.");
    command.callback([options, out_degree, links, levels, search_L, ef, device] {
        const bool nsg = options->type == "nsg", hnsw = options->type == "hnsw";
        const auto only_for = [&](const CLI::Option* option, bool fits) {
            if (option->count() > 0 && !fits)
                throw CLI::ValidationError(option->get_name(), "has no meaning for --type " + options->type);
        };
        only_for(out_degree, nsg);
        only_for(links, hnsw);
        only_for(levels, hnsw);
        only_for(search_L, !hnsw);
        only_for(ef, hnsw);
        only_for(device, nsg || hnsw);
        options->nsg.search_L = options->nndescent.search_L = options->search_L;
        run(*options);
    });
}

}  // namespace cli

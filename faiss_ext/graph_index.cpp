// SPDX-License-Identifier: MIT
#include "faiss_ext/graph_index.h"

#include "faiss_ext/adapters.h"
#include "gnnd/search_links.h"

namespace faiss_ext {

const std::vector<GraphIndexType>& graph_index_types() {
    static const std::vector<GraphIndexType> types{
        {"nsg",
         "IndexNSGFlat",
         true,
         {{"R", "out-degree", NsgParams{}.R, 1, gnnd::kMaxDegree},
          {"search-L", "search beam", NsgParams{}.search_L, 1}},
         [](const VectorSource& source, const gnnd::KnnGraphView& graph, const OptionValues& values, const Gpu& gpu) {
             NsgParams params;
             take(values, "R", params.R);
             take(values, "search-L", params.search_L);
             params.gpu = gpu;
             return to_nsg(source, graph, params);
         }},
        {"hnsw",
         "IndexHNSWFlat",
         true,
         {{"M", "level 0 holds 2M links per object", HnswParams{}.M, 2, gnnd::kMaxDegree / 2},
          {"ef-search", "search beam", HnswParams{}.efSearch, 1},
          {.name = "base-level-only", .help = "no levels above the graph's", .flag = true}},
         [](const VectorSource& source, const gnnd::KnnGraphView& graph, const OptionValues& values, const Gpu& gpu) {
             HnswParams params;
             take(values, "M", params.M);
             take(values, "ef-search", params.efSearch);
             take(values, "base-level-only", params.base_level_only);
             params.gpu = gpu;
             return to_hnsw(source, graph, params);
         }},
        {"nndescent",
         "IndexNNDescentFlat, the graph as it is",
         false,
         {{"search-L", "search beam", NNDescentIndexParams{}.search_L, 1}},
         [](const VectorSource& source, const gnnd::KnnGraphView& graph, const OptionValues& values, const Gpu&) {
             NNDescentIndexParams params;
             take(values, "search-L", params.search_L);
             return to_nndescent(source, graph, params);
         }}};
    return types;
}

std::unique_ptr<faiss::Index> make_graph_index(const std::string& name, const VectorSource& source,
                                               const gnnd::KnnGraphView& graph, const OptionValues& values,
                                               const Gpu& gpu) {
    return choose(graph_index_types(), "graph index", name, values).make(source, graph, values, gpu);
}

}  // namespace faiss_ext

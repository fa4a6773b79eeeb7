// SPDX-License-Identifier: MIT
// Counts the pairs of shards that the plan `near` merges, and the true neighbours that they hold, without building a
// graph: the base is put into order, the borders are found, and true neighbours of a sample tell how far one comes. One
// line for each number of shards, from which the growth with the set can be read; with --rows the set grows with them.
//
//   near_pairs base.u8bin --shards 8,16,32,64,128 --rows 1000 --work /tmp/order
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "gnnd/builder.h"
#include "gnnd/detail/recall.h"
#include "gnnd/error.h"
#include "gnnd/io/vector_reader.h"
#include "gnnd/shards/borders.h"
#include "gnnd/shards/near.h"
#include "gnnd/shards/order.h"

namespace {

using namespace gnnd;
using namespace gnnd::shards;

constexpr std::int64_t kObjects = 2000;
constexpr int kAt = 10;

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void print(const io::VectorReader& base, const BuildParams& params, int shards, const std::vector<double>& shares,
           const std::string& work) {
    Manifest manifest;
    manifest.base = BaseRecord::of(base);
    manifest.params = params;
    manifest.plan = MergePlan::near;
    manifest.shards.resize(std::size_t(shards));
    const std::string vectors_path = work + "/vectors." + std::string(name_of(io::bin_format_of(base.dtype())));
    const std::string order_path = work + "/order.ibin";
    auto start = std::chrono::steady_clock::now();
    order_base(base, manifest, params, vectors_path, order_path, {});
    const double ordering = seconds_since(start);
    const io::VectorFile vectors(vectors_path);
    start = std::chrono::steady_clock::now();
    const std::vector<Task> borders = find_borders(vectors, manifest, params, {}).ranked();
    const double finding = seconds_since(start);
    const std::vector<std::int32_t> objects = detail::sample_objects(base.n(), kObjects, params.seed);
    const KnnGraph truth = exact_neighbors(vectors.view(), objects.data(), std::int64_t(objects.size()), kAt,
                                           params.metric, params.threads);
    PairCounts counts(shards);
    for (std::int64_t i = 0; i < truth.n(); ++i)
        for (int j = 0; j < kAt; ++j)
            counts.add(manifest.shard_of(objects[std::size_t(i)]), manifest.shard_of(truth.ids_of(i)[j]));
    std::printf("| %lld | %d | %d | %.3f |", static_cast<long long>(base.n()), shards, manifest.pairs(),
                double(counts.inside()) / double(counts.sum()));
    for (const double share : shares) {
        std::vector<Task> left = borders;
        std::int64_t within = counts.inside();
        int batches = 0;
        const auto recall = [&] { return double(within) / double(counts.sum()); };
        for (; !left.empty() && recall() < share; ++batches) choose_merges(left, counts, within, recall(), share);
        const std::size_t merges = borders.size() - left.size();
        std::printf(" %zu (%.1f; %d) |", merges, 2 * double(merges) / shards, batches);
    }
    std::printf(" %.2f | %.2f |\n", ordering, finding);
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{
        "Counts the pairs of shards that the plan `near` merges; in brackets those of a shard, and the batches."};
    std::string base, work;
    std::vector<int> shards{8, 16, 32, 64};
    std::int64_t rows = 0;
    std::vector<double> shares{0.95, 0.99, 0.995};
    BuildParams params;
    params.device = {Device::Kind::cpu, 0};
    app.add_option("base", base, "file of vectors")->required();
    app.add_option("--work", work, "folder for the vectors in order")->required();
    app.add_option("--shards", shards, "numbers of shards to compare")->delimiter(',')->capture_default_str();
    app.add_option("--rows", rows, "of a shard, the first ones of the file; 0: all of the file's")
        ->capture_default_str();
    app.add_option("--shares", shares, "of the true neighbours, to be in merged pairs")
        ->delimiter(',')
        ->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    try {
        std::filesystem::create_directories(work);
        std::printf("| rows | shards | pairs | inside |");
        for (const double share : shares) std::printf(" merges for %g |", share);
        std::printf(" s to order | s for borders |\n|---|---|---|---|");
        for (std::size_t i = 0; i < shares.size() + 2; ++i) std::printf("---|");
        std::printf("\n");
        const io::VectorFile file(base);
        for (const int count : shards) {
            const std::int64_t n = rows > 0 ? std::min(file.n(), rows * count) : file.n();
            const io::VectorReader first(
                n, file.d(), file.dtype(),
                [&](std::int64_t begin, std::int64_t read, std::byte* out) { file.read(begin, read, out); });
            print(first, params, count, shares, work);
        }
    } catch (const Error& error) {
        std::fprintf(stderr, "near_pairs: %s\n", error.what());
        return 1;
    }
}

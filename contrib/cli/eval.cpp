// SPDX-License-Identifier: MIT
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "any_graph.h"
#include "build_options.h"
#include "commands.h"
#include "common.h"
#include "faiss_part.h"
#include "gnnd/builder.h"
#include "gnnd/detail/checks.h"
#include "gnnd/detail/recall.h"
#include "gnnd/detail/right_share.h"
#include "gnnd/detail/unresolved.h"
#include "gnnd/error.h"
#include "gnnd/io/detail/moved.h"
#include "gnnd/io/vector_file.h"
#include "interrupt.h"
#include "threads.h"

namespace cli {

namespace {

struct EvalOptions {
    std::string graph, base, truth = truths().front();
    int k = 10;
    bool k_given = false;
    std::int64_t queries = 10000;
    std::uint64_t seed = 1;
    gnnd::Device device;
    bool json = false;
};

/// Of all objects every pair is compared once, of some of them each with all others.
ExactRows exact_by_all_pairs(const gnnd::Device& device, const gnnd::VectorView& vectors, gnnd::Metric metric,
                             const std::vector<std::int32_t>& objects, int k) {
    gnnd::BuildParams params;
    params.k = k;
    params.metric = metric;
    params.device = gnnd::detail::choose(device);
    params.threads = allowed_threads(0);
    gnnd::Callbacks callbacks;
    callbacks.interrupt = [] { return caught_signal() != 0; };
    const auto start = std::chrono::steady_clock::now();
    const auto count = std::int64_t(objects.size());
    gnnd::KnnGraph rows = count == vectors.n ? gnnd::build_exact(vectors, params, callbacks).graph
                                             : gnnd::exact_neighbors(vectors, objects.data(), count, params, callbacks);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    return {std::move(rows), seconds.count(), params.device.name()};
}

/// The recall that the build has measured beside the one that was found here: both are of samples.
struct Beside {
    gnnd::RecallEstimate built;
    double here;

    /// Its distance from the interval: negative below, 0 inside.
    double outside() const { return here < built.low ? here - built.low : here > built.high ? here - built.high : 0; }
};

Json json_of(const Beside& beside) {
    Json json = to_json(beside.built);
    json["difference"] = beside.here - beside.built.value;
    json["within"] = beside.outside() == 0;
    return json;
}

void print_beside(const Beside& beside) {
    const gnnd::RecallEstimate& built = beside.built;
    std::printf("measured by the build %.4f (%.4f to %.4f); here %.4f: ", built.value, built.low, built.high,
                beside.here);
    if (beside.outside() == 0)
        std::printf("within its interval\n");
    else
        std::printf("%.4f %s its interval\n", std::abs(beside.outside()), beside.outside() < 0 ? "below" : "above");
}

void run(const EvalOptions& options) {
    const AnyGraph graph(options.graph);
    const gnnd::io::VectorFile base(options.base);
    graph.require_fit(base);
    if (options.k_given && options.k > graph.k())
        throw gnnd::InvalidArgument("-k " + std::to_string(options.k) + ": " + options.graph + " has " +
                                    std::to_string(graph.k()) + " neighbours per object");
    const int k = int(std::min<std::int64_t>(options.k, graph.k()));
    const std::vector<std::int32_t> objects = gnnd::detail::sample_objects(
        graph.n(), options.queries == 0 ? graph.n() : options.queries, options.seed, gnnd::detail::kEvalStream);
    const gnnd::KnnGraph rows = graph.rows_of(objects);
    const ExactRows truth = (options.truth == "faiss" ? exact_by_faiss : exact_by_all_pairs)(
        options.device, base.view(), rows.metric(), objects, k);
    stop_if_interrupted();
    const auto recall = [&](int at) {
        return gnnd::detail::share_of_right(base.view(), rows, false, objects, truth.rows, at);
    };
    const double value = recall(k);
    const double unresolved = gnnd::detail::unresolved_share(truth.rows, objects.data(), k, {{base.view()}, {}});
    const std::string warning = joined(
        {gnnd::unresolved_warning(unresolved, rows.metric()),
         gnnd::io::detail::moved_warning(truth.rows, objects.data(), k, base.d(), gnnd::io::detail::stored({&base}))});
    const Beside beside{graph.recall(), value};
    const bool comparable = beside.built.objects != 0 && beside.built.at == k;

    warn(warning);
    if (options.json) {
        Json json{{"recall", value},
                  {"k", k},
                  {"queries", objects.size()},
                  {"n", graph.n()},
                  {"metric", name_of(graph.metric())},
                  {"truth", options.truth},
                  {"unresolved", unresolved},
                  {"device", truth.device},
                  {"seconds", truth.seconds}};
        for (const int at : {1, 10, k})
            if (at <= k) json["recalls"][std::to_string(at)] = recall(at);
        if (comparable) json["build"] = json_of(beside);
        if (!warning.empty()) json["warning"] = warning;
        base.require_unchanged();
        print(json);
        return;
    }
    base.require_unchanged();
    std::printf("Recall@%d %.4f\n", k, value);
    if (comparable) print_beside(beside);
    std::printf("%lld of %lld objects searched exactly in %.2f s on %s\n", static_cast<long long>(objects.size()),
                static_cast<long long>(graph.n()), truth.seconds, truth.device.c_str());
}

}  // namespace

void add_eval(CLI::App& app) {
    CLI::App& command = *app.add_subcommand("eval", "Compare a graph with the exact neighbours: Recall@k");
    const auto options = std::make_shared<EvalOptions>();
    add_graph(command, options->graph);
    add_base(command, options->base);
    const CLI::Option* k =
        add_k(command, options->k, 65535, "neighbours compared; by default no more than the graph has");
    add_whole(command, "--queries", options->queries, 0, gnnd::kMaxObjects,
              "objects searched exactly, drawn at random; 0: all of them");
    add_seed(command, options->seed, "of the draw");
    add_one_of(command, "--truth", options->truth, "truth", truths(),
               "where the exact neighbours come from: " + about_truths());
    add_device(command, options->device);
    add_json(command, options->json);
    command.footer(
        "Ties count by distance: any neighbour that is no farther than the exact k-th one is right. Where the graph\n"
        "keeps the recall that its build has measured, for the same k, both are compared. With --json also Recall@1\n"
        "and @10 are told, where k is more.");
    command.callback([options, k] {
        options->k_given = k->count() > 0;
        run(*options);
    });
}

}  // namespace cli

// SPDX-License-Identifier: MIT
#include "gnnd/shards/request.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include "gnnd/cpu/backend.h"
#include "gnnd/cpu/parallel.h"
#include "gnnd/detail/checks.h"
#include "gnnd/detail/params_table.h"
#include "gnnd/detail/recall.h"
#include "gnnd/detail/resolve.h"
#include "gnnd/error.h"
#include "gnnd/names.h"
#include "gnnd/shards/executor.h"
#include "gnnd/shards/host_memory.h"
#include "gnnd/shards/ids.h"

namespace gnnd {
namespace shards {
namespace {

/// Memory in which the CPU works on so many objects: those of a pair of shards, or of the only one.
std::uint64_t cpu_work_bytes(const Manifest& manifest, std::int64_t rows, const BuildParams& params) {
    const bool pair = manifest.count() > 1;
    const VectorView all{nullptr, rows, manifest.base.d, manifest.base.dtype, 0};
    detail::Input input{{all}, {}};
    if (pair) {
        input.vectors[1] = all;
        input.vectors[1].n = rows / 2;
        input.vectors[0].n = rows - rows / 2;
    }
    const Choices choices = detail::resolve(params, input, {Device::Kind::cpu, 0});
    return cpu::plan(input, params, choices).work + (std::uint64_t(cpu::Team::resolve(params.threads)) << 20);
}

/// Objects on which the recall is measured where only CPUs work: their interval is about +-0.003 near 0.99, and what
/// comparing them takes is little beside the builds (benchs/NOTEBOOK.md).
constexpr std::int64_t kCpuObjects = 1024;

/// Vectors that a file of those in the order of the shards can hold.
constexpr std::int64_t kMaxOrdered = std::numeric_limits<std::uint32_t>::max();

std::string manifest_path(const ShardParams& given) {
    return given.work + "/" + kManifestName;
}

/// Of so many shards as are given.
Request request_for(const BaseRecord& base, const BuildParams& params, const ShardParams& given) {
    Request request;
    request.manifest = manifest_for(base, params, given);
    int on_cpu = 0;
    for (const Device& device : devices_of(params, given)) {
        request.workers.push_back(detail::choose(device));
        on_cpu += request.workers.back().kind == Device::Kind::cpu;
    }
    request.params = params;
    if (params.threads == 0 && on_cpu > 1) request.params.threads = std::max(1, cpu::Team::resolve(0) / on_cpu);
    request.need = host_budget(request.manifest, int(request.workers.size()));
    const std::int64_t rows = std::min<std::int64_t>(base.n, 2 * request.manifest.most_rows());
    request.work = std::uint64_t(on_cpu) * cpu_work_bytes(request.manifest, rows, request.params);
    if (params.recall > 0 && params.recall < 1)
        request.objects = on_cpu == int(request.workers.size()) ? kCpuObjects : detail::kRecallObjects;
    return request;
}

bool fits(const Request& request, const ShardParams& given) {
    if (request.host_budget() > host_bound(given.host_memory)) return false;
    return std::all_of(request.workers.begin(), request.workers.end(), [&](const Device& device) {
        BuildParams params = request.params;
        params.device = device;
        const int sharing = int(std::count(request.workers.begin(), request.workers.end(), device));
        return has_room(request.manifest, params, {sharing, sharing, true});
    });
}

}  // namespace

std::uint64_t host_bound(std::int64_t given) {
    return given > 0 ? std::uint64_t(given) : host_memory() / 4 * 3;
}

std::vector<Device> devices_of(const BuildParams& params, const ShardParams& given) {
    const std::vector<Device> devices = given.devices.empty() ? std::vector{params.device} : given.devices;
    std::vector<Device> workers(given.workers > 0 ? std::size_t(given.workers) : devices.size());
    for (std::size_t w = 0; w < workers.size(); ++w) workers[w] = devices[w % devices.size()];
    return workers;
}

Manifest manifest_for(const BaseRecord& base, const BuildParams& params, const ShardParams& given) {
    Manifest manifest;
    manifest.plan = given.plan;
    manifest.id_bytes = given.id_bytes;
    manifest.base = base;
    manifest.params = params;
    manifest.shards.resize(std::size_t(given.shards));
    return manifest;
}

void check_plan(MergePlan plan, const BuildParams& params) {
    if (plan == MergePlan::near && !(params.recall > 0 && params.recall < 1))
        throw InvalidArgument(
            "ShardParams::plan = near, which needs a BuildParams::recall of more than 0 and less "
            "than 1 to end with; it is " +
            detail::text_of(params.recall));
}

void check(const io::VectorReader& base, const BuildParams& params, const ShardParams& given) {
    given.validate();
    params.validate();
    check_plan(given.plan, params);
    if (given.plan == MergePlan::near && base.n() > kMaxOrdered)
        throw InvalidArgument("ShardParams::plan = near of " + std::to_string(base.n()) + " vectors; allowed are " +
                              std::to_string(kMaxOrdered));
    if (given.id_bytes != 0 && given.id_bytes < id_bytes_for(base.n()))
        throw InvalidArgument("ShardParams::id_bytes = 4 of " + std::to_string(base.n()) + " vectors; allowed are " +
                              std::to_string(kMaxObjects));
    if (given.shards > base.n())
        throw InvalidArgument("ShardParams::shards = " + std::to_string(given.shards) + ", " + base.name() +
                              " has only " + std::to_string(base.n()) + " vectors");
    if (given.shards != 0 && most_rows_at_once(base.n(), given.shards) > kMaxObjects)
        throw InvalidArgument("ShardParams::shards = " + std::to_string(given.shards) + " of " +
                              std::to_string(base.n()) + " vectors; two shards may have " +
                              std::to_string(kMaxObjects) + " at most");
    detail::check_shape({&base, std::min(base.n(), kMaxObjects), base.d(), base.dtype(), 0});
}

bool has_checkpoints(const ShardParams& given) {
    return std::isfinite(given.checkpoint_seconds);
}

bool goes_on(const ShardParams& given) {
    return given.resume && std::filesystem::exists(manifest_path(given));
}

ShardParams settled(const BaseRecord& base, const ShardParams& given) {
    ShardParams params = given;
    if (goes_on(given) && (given.shards == 0 || given.id_bytes == 0)) {
        const Manifest there = Manifest::read(manifest_path(given));
        if (given.shards == 0) params.shards = there.count();
        if (given.id_bytes == 0) params.id_bytes = there.id_bytes;
    }
    if (params.id_bytes == 0) params.id_bytes = id_bytes_for(base.n);
    return params;
}

Request make_request(const BaseRecord& base, const BuildParams& params, const ShardParams& given) {
    if (given.shards != 0) return request_for(base, params, given);
    const int most = int(std::min<std::int64_t>(kMaxShards, base.n));
    ShardParams chosen = given;
    for (chosen.shards = 1; chosen.shards <= most; ++chosen.shards) {
        if (most_rows_at_once(base.n, chosen.shards) > kMaxObjects) continue;
        if (Request request = request_for(base, params, chosen); fits(request, chosen)) return request;
    }
    throw Error("no number of shards up to " + std::to_string(most) + " fits the memory that is allowed or free");
}

}  // namespace shards

namespace {

using namespace shards;

constexpr NameTable<MergePlan, std::size(kMergePlans)> kMergePlanNames{
    "plan", {{{MergePlan::all, "all"}, {MergePlan::near, "near"}}}};

}  // namespace

std::string_view name_of(MergePlan plan) {
    return kMergePlanNames.name_of(plan);
}

MergePlan parse_merge_plan(std::string_view name) {
    return kMergePlanNames.parse(name);
}

void ShardParams::validate() const {
    const auto check = [](const char* field, auto value, auto low, auto high) {
        detail::check_range("ShardParams", field, value, low, high);
    };
    check("shards (0: as few as fit)", shards, 0, kMaxShards);
    check("workers (0: one per device)", workers, 0, kMaxWorkers);
    check("devices.size()", devices.size(), std::size_t(0), std::size_t(kMaxWorkers));
    check("host_memory (0: chosen)", host_memory, std::int64_t(0), std::int64_t(1) << 60);
    check("checkpoint_seconds", checkpoint_seconds, 0.0, std::numeric_limits<double>::infinity());
    if (id_bytes != 0 && id_bytes != int(sizeof(std::int32_t)) && id_bytes != int(sizeof(std::int64_t)))
        throw InvalidArgument("ShardParams::id_bytes = " + std::to_string(id_bytes) + ", allowed are 0, 4 and 8");
    if (work.empty()) throw InvalidArgument("ShardParams::work is empty; it must name a folder");
}

ShardedPlan plan_sharded(const io::VectorReader& base, const BuildParams& params, const ShardParams& shards) {
    check(base, params, shards);
    const BaseRecord record = BaseRecord::of(base);
    const Request request = make_request(record, params, settled(record, shards));
    const int workers = int(request.workers.size());
    ShardedPlan plan;
    plan.builds = request.manifest.count();
    plan.merges = request.manifest.pairs();
    plan.disk = disk_need(request.manifest, workers, has_checkpoints(shards));
    plan.work = request.work;
    plan.sample = request.sample();
    plan.host = request.host_budget();
    plan.host_overlapped = request.need.overlapped + request.work + request.sample();
    return plan;
}

}  // namespace gnnd

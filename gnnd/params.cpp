#include "gnnd/params.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "gnnd/detail/checks.h"
#include "gnnd/names.h"

namespace gnnd {
namespace {

constexpr NameTable<Update, 3> kUpdateNames{
    "update", {{{Update::automatic, "auto"}, {Update::selective, "selective"}, {Update::all, "all"}}}};
constexpr NameTable<Locks, 2> kLocksNames{"locks", {{{Locks::segment, "segment"}, {Locks::list, "list"}}}};
constexpr NameTable<Init, 2> kInitNames{"init", {{{Init::random, "random"}, {Init::projection, "projection"}}}};

template <class T>
void check_range(const char* field, T value, T low, T high) {
    detail::check_range("BuildParams", field, value, low, high);
}

}  // namespace

std::string_view name_of(Update update) {
    return kUpdateNames.name_of(update);
}
std::string_view name_of(Locks locks) {
    return kLocksNames.name_of(locks);
}
std::string_view name_of(Init init) {
    return kInitNames.name_of(init);
}
Update parse_update(std::string_view name) {
    return kUpdateNames.parse(name);
}
Locks parse_locks(std::string_view name) {
    return kLocksNames.parse(name);
}
Init parse_init(std::string_view name) {
    return kInitNames.parse(name);
}

Device Device::parse(std::string_view text) {
    if (text == "auto") return {Kind::automatic, 0};
    if (text == "cpu") return {Kind::cpu, 0};
    if (text == "cuda") return {Kind::cuda, 0};
    constexpr std::string_view prefix = "cuda:";
    if (text.starts_with(prefix)) {
        int index = -1;
        const char* end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data() + prefix.size(), end, index);
        if (error == std::errc{} && stop == end && index >= 0) return {Kind::cuda, index};
    }
    throw InvalidArgument("unknown device '" + std::string(text) + "'; known are auto, cpu, cuda and cuda:N");
}

std::string Device::name() const {
    switch (kind) {
        case Kind::automatic:
            return "auto";
        case Kind::cpu:
            return "cpu";
        case Kind::cuda:
            break;
    }
    return "cuda:" + std::to_string(index);
}

void BuildParams::validate() const {
    check_range("k", k, 1, kMaxK);
    name_of(metric);
    if (list_size != 0) check_range("list_size (0: chosen from k)", list_size, k, kMaxK);
    if (samples != 0) check_range("samples (0: chosen from k)", samples, 1, resolved_list_size());
    check_range("iterations", iterations, 0, 1'000'000'000);
    check_range("delta", delta, 0.0f, 1.0f);
    check_range("threads (0: all)", threads, 0, 4096);
    check_range("device.index", device.index, 0, 4096);
    name_of(update);
    name_of(locks);
    name_of(init);
    check_range("device_memory (0: what is free)", device_memory, std::int64_t(0), std::int64_t(1) << 50);
    check_range("trees (0: chosen from n)", trees, 0, 1024);
}

int BuildParams::resolved_list_size() const {
    return list_size != 0 ? list_size : std::max(k, 32);
}

int BuildParams::resolved_samples() const {
    return samples != 0 ? samples : std::min(resolved_list_size(), 22);
}

}  // namespace gnnd

// SPDX-License-Identifier: MIT
#include "common.h"

#include <array>
#include <cstdio>
#include <iostream>
#include <limits>

#include "files.h"
#include "gnnd/detail/params_table.h"
#include "gnnd/detail/process_memory.h"
#include "gnnd/io/detail/atomic_file.h"

namespace cli {

CLI::Option* add_base(CLI::App& app, std::string& path, const std::string& name) {
    return add_name(app, name, path, "FILE", "file of vectors: " + base_formats())->required();
}

CLI::Option* add_graph(CLI::App& app, std::string& path, const std::string& name) {
    return add_name(app, name, path, "FILE",
                    "graph file, or the folder of a graph in shards, as `gnnd build` writes it")
        ->required();
}

CLI::Option* add_vectors_or_graph(CLI::App& app, std::string& path, const std::string& name) {
    return add_name(app, name, path, "FILE",
                    "vectors (" + vector_formats() +
                        ", by extension) or, with any other extension, a graph; the folder of one in shards")
        ->required();
}

CLI::Option* add_k(CLI::App& app, int& k, int most, const std::string& help) {
    return add_whole(app, "-k,--k", k, 1, most, help);
}

CLI::Option* add_seed(CLI::App& app, std::uint64_t& seed, const std::string& help) {
    return add_whole(app, "--seed", seed, 0, std::numeric_limits<std::uint64_t>::max(), help);
}

CLI::Option* add_metric(CLI::App& app, gnnd::Metric& metric) {
    const std::string names = gnnd::detail::known_names(metric);
    return add_parsed(app, "--metric", metric, gnnd::parse_metric, std::string(name_of(metric)), words_of_list(names),
                      names + "; l2 is squared, as in FAISS");
}

CLI::Option* add_output(CLI::App& app, std::string& path, const std::string& help) {
    return add_name(app, "-o,--output", path, "FILE", help)->required();
}

CLI::Option* add_json(CLI::App& app, bool& json) {
    return app.add_flag("--json", json, "print one JSON object instead of text");
}

CLI::Option* add_device(CLI::App& app, gnnd::Device& device) {
    using Kind = gnnd::Device::Kind;
    std::vector<std::string> names;
    for (const Kind kind : {Kind::automatic, Kind::cpu, Kind::cuda}) names.push_back(gnnd::Device{kind, 0}.name());
    return add_parsed(app, "--device", device, gnnd::Device::parse, device.name(), names, "auto, cpu, cuda or cuda:N");
}

std::int64_t peak_memory() {
    return gnnd::detail::process_memory("VmHWM");
}

std::string human_bytes(std::int64_t bytes) {
    static constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB"};
    double value = double(bytes);
    std::size_t unit = 0;
    for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return text.data();
}

std::string to_text(const Json& json) {
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void print(const Json& json) {
    std::cout << to_text(json);
}

void write_json(const std::string& path, const Json& json) {
    gnnd::io::detail::AtomicFile file(path);
    const std::string text = to_text(json);
    file.write(text.data(), text.size());
    file.commit();
}

}  // namespace cli

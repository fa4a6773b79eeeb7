#include "common.h"

#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>

#include "files.h"

namespace cli {

CLI::Option* add_base(CLI::App& app, std::string& path) {
    return app.add_option("BASE", path, std::string("file of vectors: ") + kVectorFormats)
        ->required()
        ->type_name("FILE");
}

CLI::Option* add_graph(CLI::App& app, std::string& path) {
    return app.add_option("GRAPH", path, "graph file, as `gnnd build` writes it")->required()->type_name("FILE");
}

CLI::Option* add_k(CLI::App& app, int& k, const std::string& help) {
    return app.add_option("-k,--k", k, help)->check(CLI::PositiveNumber)->capture_default_str();
}

CLI::Option* add_metric(CLI::App& app, gnnd::Metric& metric) {
    return add_parsed(app, "--metric", metric, gnnd::parse_metric, std::string(name_of(metric)),
                      "l2 (squared, as in FAISS), ip, cosine, l1, linf or chi2");
}

CLI::Option* add_output(CLI::App& app, std::string& path, const std::string& help) {
    return app.add_option("-o,--output", path, help)->required()->type_name("FILE");
}

CLI::Option* add_json(CLI::App& app, bool& json) {
    return app.add_flag("--json", json, "print one JSON object instead of text");
}

std::int64_t peak_memory() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        if (word != "VmHWM:") continue;
        std::int64_t kibibytes = 0;
        status >> kibibytes;
        return kibibytes * 1024;
    }
    return 0;
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

void print(const Json& json) {
    std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace cli

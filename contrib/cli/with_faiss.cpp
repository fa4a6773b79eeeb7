// SPDX-License-Identifier: MIT
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissException.h>

#include <chrono>
#include <memory>
#include <string_view>
#include <utility>

#include "faiss_ext/compat.h"
#include "faiss_ext/graph_builder.h"
#include "faiss_gpu.h"
#include "faiss_part.h"
#include "interrupt.h"
#include "threads.h"

namespace cli {

namespace {

struct FaissInterrupt : faiss::InterruptCallback {
    bool want_interrupt() override { return caught_signal() != 0; }
};

/// FAISS's messages start with the function and the line that threw, and may go on with the condition that failed.
std::string without_origin(const std::string& message) {
    // "Error in FUNCTION at FILE:LINE: " and perhaps "Error: 'CONDITION' failed: "
    std::size_t begin = 0;
    if (message.starts_with("Error in ")) {
        const std::size_t file = message.find(" at ");
        const std::size_t end = file == std::string::npos ? file : message.find(": ", file);
        if (end != std::string::npos) begin = end + 2;
    }
    constexpr std::string_view kFailed = "' failed: ", kRead = "read error in ";
    if (message.compare(begin, 8, "Error: '") == 0) {
        const std::size_t end = message.find(kFailed, begin);
        if (end != std::string::npos) begin = end + kFailed.size();
    }
    std::string text = message.substr(begin);
    // "read error in FILE: 0 != 1 (Success)"
    if (text.starts_with(kRead) && text.ends_with("(Success)"))
        text = text.substr(kRead.size(), text.rfind(": ") - kRead.size()) + ": the file ends too early";
    return text;
}

}  // namespace

std::string faiss_version() {
    return "FAISS " + std::to_string(FAISS_VERSION_MAJOR) + "." + std::to_string(FAISS_VERSION_MINOR) + "." +
           std::to_string(FAISS_VERSION_PATCH);
}

std::string lack_of_faiss() {
    return "";
}

std::string unknown_without_faiss() {
    return "";
}

void interrupt_faiss() {
    faiss::InterruptCallback::instance = std::make_unique<FaissInterrupt>();
}

std::optional<std::string> faiss_message(const std::exception& error) {
    if (dynamic_cast<const faiss::FaissException*>(&error) == nullptr) return std::nullopt;
    return without_origin(error.what());
}

std::vector<std::string> truths() {
    return {"faiss", "exhaustive"};
}

std::string about_truths() {
    return "faiss (FAISS's flat search, which knows nothing of gnnd) or exhaustive (gnnd's own comparison, much faster "
           "on a GPU)";
}

ExactRows exact_by_faiss(const gnnd::Device& device, const gnnd::VectorView& vectors, gnnd::Metric metric,
                         const std::vector<std::int32_t>& objects, int k) {
    use_blas();
    const FaissGpu gpu(device);
    const faiss_ext::VectorSource source(vectors, metric);
    faiss_ext::ExactGraphBuilder exact(gpu.get());
    const auto start = std::chrono::steady_clock::now();
    gnnd::KnnGraph rows = exact.search(source, objects, k);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    return {std::move(rows), seconds.count(), gpu.name(exact.on_gpu)};
}

}  // namespace cli

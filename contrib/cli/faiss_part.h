// SPDX-License-Identifier: MIT
#pragma once
/// The parts of the tool that need FAISS, beside whole commands: with_faiss.cpp defines them, or without_faiss.cpp
/// where the tool is built without. CMakeLists.txt chooses.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gnnd/device.h"
#include "gnnd/graph.h"
#include "gnnd/vectors.h"

namespace cli {

/// For --version: "FAISS 1.7.3".
std::string faiss_version();

/// The commands that the tool lacks without FAISS, a sentence for the end of the help; empty where it lacks nothing.
std::string lack_of_faiss();

/// Goes behind a message that a name is not known, which may be one of FAISS's: empty where FAISS is there.
std::string unknown_without_faiss();

/// FAISS's own loops end when a signal was caught.
void interrupt_faiss();

/// FAISS's message in the user's words; nothing for errors that are not FAISS's.
std::optional<std::string> faiss_message(const std::exception& error);

/// The names of the ways in which `eval` gets exact neighbours, the default first, and the help's text on them.
std::vector<std::string> truths();
std::string about_truths();

/// The exact neighbours of objects, and how they were found.
struct ExactRows {
    gnnd::KnnGraph rows;  ///< row i belongs to objects[i], k columns
    double seconds;
    std::string device;  ///< where they were searched
};

/// By the truth "faiss".
/// \throws faiss::FaissException, gnnd::Unavailable
ExactRows exact_by_faiss(const gnnd::Device& device, const gnnd::VectorView& vectors, gnnd::Metric metric,
                         const std::vector<std::int32_t>& objects, int k);

}  // namespace cli

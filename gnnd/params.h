// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file params.h
/// Every knob of a build.

#include <cstdint>
#include <string_view>

#include "gnnd/device.h"
#include "gnnd/init.h"
#include "gnnd/metric.h"

namespace gnnd {

/// Largest k (and list length) that the builders accept.
inline constexpr int kMaxK = 1024;
/// Largest `samples` on a GPU.
inline constexpr int kMaxGpuSamples = 64;

/// The way of the candidates that a cross-match produces into the lists.
enum class Update {
    automatic,  ///< the fastest: on the CPU `all`, on a GPU the nearest two of each kind through buffers, without locks
    selective,  ///< the paper's selective update: for each sample only its nearest NEW and nearest OLD partner
    all,        ///< classic NN-Descent: every pair that beats the last entry of a list; on a GPU the paper's GNND-r1,
                ///< which sorts all partners of a sample and puts them into its list under the list's spinlock
};

/// The part of a list that one lock covers, on a GPU with Update::selective.
enum class Locks {
    segment,  ///< the paper's multiple spinlocks: lists are divided into segments of 32 entries, of which an object can
              ///< be in one only; some of the farthest of the k nearest find no room in theirs
    list,     ///< one spinlock a list, the paper's GNND-r2
};

/// The numbers that iterations on a GPU compare in place of floats. The graph's distances are exact in any case.
enum class Codes {
    automatic,  ///< pca for long rows, and int8, where the vectors allow it, as a build finds out, and none elsewhere
    none,       ///< the vectors, as float16
    int8,       ///< a byte for each component: half the memory traffic, and twice the rate of the tensor cores
    /// A byte for each of 128 projections, about onto the principal components, until lists lose more of the true
    /// neighbours in them than the recall allows (without one: two iterations), and int8 then. Not under ip.
    pca,
};

/// The name on the command line and in files, for instance "auto". \throws InvalidArgument for a number that is none
std::string_view name_of(Update update);
/// For instance "segment". \throws InvalidArgument for a number that is none
std::string_view name_of(Locks locks);
/// For instance "int8". \throws InvalidArgument for a number that is none
std::string_view name_of(Codes codes);
/// \throws InvalidArgument that lists the known names
Update parse_update(std::string_view name);
/// \throws InvalidArgument that lists the known names
Locks parse_locks(std::string_view name);
/// \throws InvalidArgument that lists the known names
Codes parse_codes(std::string_view name);

/// Parameters of build() and refine(). A new field needs a line in detail/params_table.h too, which ranges, names, the
/// tool's options and the files follow. The defaults were chosen by measurement (benchs/NOTEBOOK.md).
///
/// On the CPU a seed gives the same graph bit for bit, on any number of threads. Between processors of different
/// instruction sets sums of floats round differently, so that only u8 and i8 under l2, ip and cosine agree to the bit.
/// On a GPU it fixes the random choices, but samples and candidates arrive in any order, and which of them find room
/// depends on that: two builds differ in a few entries. Not so with `deterministic`.
struct BuildParams {
    int k = 32;                  ///< neighbours per object, 1 to kMaxK
    Metric metric = Metric::L2;  ///< see Metric
    /// The paper's p: NEW and OLD samples per list, 1 to list_size if that is given, on a GPU to kMaxGpuSamples; 0:
    /// chosen, the lists' length up to 22 on the CPU and 32 on a GPU, there 64 for a `recall` from 0.9985 on if the
    /// memory is there.
    int samples = 0;
    /// Length of the lists while building, k to kMaxK; 0: chosen, the largest of k, samples and 32, on a GPU at least
    /// 64 for such a recall, and 48 for one from 0.985 on where device_memory is 0. Longer: better recall.
    int list_size = 0;
    int iterations = 40;  ///< at most so many iterations, >= 0 (0: the initial lists)
    /// Stop when fewer than delta * n * k entries are NEW after an iteration, for merges see merge(); 0: never.
    float delta = 0.001f;
    /// The Recall@`recall_at` that the graph must have, 0 to 1. A run measures it (see RecallEstimate) and goes on
    /// until it is there, within the limits that are set here by hand. 0: nothing is measured, and delta alone decides,
    /// as in the paper; 1: all pairs are compared.
    float recall = 0.99f;
    /// Neighbours of an object that `recall` counts, 1 to k; 0: 10, or k if that is less. All k must have nine tenths
    /// of it, or the lists must have settled, before it ends a run.
    int recall_at = 0;
    std::uint64_t seed = 1234;          ///< of all sampling; what it makes reproducible stands above
    int threads = 0;                    ///< CPU threads; 0: as many as OpenMP gives
    Device device;                      ///< where to run
    Update update = Update::automatic;  ///< see Update
    Locks locks = Locks::segment;       ///< see Locks
    /// See Codes. Of floats under metrics that are products, and of builds: refine(), merge() and append() compare
    /// float16. `automatic` is none without a `recall` to be measured, without trees, for inner products, and where
    /// `recall_at` is more than three quarters of the lists: codes confuse their last entries.
    Codes codes = Codes::automatic;
    Init init = Init::projection;  ///< see Init
    /// On a GPU: the same graph bit for bit, build after build on the same kind of GPU, for more time (two fifths). The
    /// CPU is always so.
    bool deterministic = false;
    int trees = 0;  ///< projection trees, 1 to 1024, where the init grows them; 0: 4 or 6 on the CPU, 8 or 10 on a GPU
    std::int64_t device_memory = 0;  ///< most bytes of device memory to take; 0: what is free. Less makes builds slower

    /// Throws InvalidArgument that names the field, its value and what is allowed.
    void validate() const;
};

}  // namespace gnnd

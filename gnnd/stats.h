// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file stats.h
/// The report of a build, as data: a record for each iteration, and the reason why it stopped.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gnnd/params.h"

namespace gnnd {

/// One iteration of GNND. Iteration 0 is the initialisation.
struct IterationStats {
    int iteration = 0;  ///< its number, from 0
    /// Objects that have lists in it: all of the graph. append() by merging builds the graph of the added vectors
    /// first, and reports these iterations with their number; by searching it reports a batch as an iteration.
    std::int64_t objects = 0;
    double seconds = 0;  ///< wall time of this iteration
    /// The paper's phi(G): the sum of the metric's values over all k x n entries. With Locks::segment and lists longer
    /// than k over the first k places, which need not be the nearest yet; of a batch of append() over its rows.
    double phi = 0;
    std::int64_t changed = 0;    ///< NEW entries of the lists: entered and not sampled yet; the early stop looks at it
    std::int64_t offered = 0;    ///< candidates that the cross-matches offered to lists
    std::int64_t accepted = 0;   ///< offered candidates that entered a list (later ones may have pushed them out)
    std::int64_t distances = 0;  ///< distances computed
};

/// The reason for which a build ended.
enum class StopReason {
    converged,   ///< few entries were NEW after an iteration: see BuildParams::delta
    iterations,  ///< BuildParams::iterations was reached
    recall,      ///< the graph has the recall that was asked for
    exact,       ///< all pairs were compared; the graph is exact
    /// The graph has less recall than was asked for, and the limits that the parameters set, or the memory, forbid
    /// more.
    recall_missed,
    searched,  ///< append() has searched for all added vectors; there are no iterations but a record a batch
};

/// The enumerator's name, for instance "converged". \throws InvalidArgument for a number that is none
std::string_view name_of(StopReason reason);

/// One line of text for people.
std::string to_text(const IterationStats& iteration);

/// The recall of a graph as it was measured on a sample of its objects: see detail/recall.h.
struct RecallEstimate {
    double value = 0;          ///< mean share of the true nearest `at` that the objects have
    double low = 0;            ///< of the 95% interval
    double high = 0;           ///< of the 95% interval
    int at = 0;                ///< nearest neighbours that count
    std::int64_t objects = 0;  ///< in the sample; 0: nothing was measured
};

/// For people, for instance "Recall@10 0.9951 +- 0.0006, measured on 5,000 objects".
std::string to_text(const RecallEstimate& recall);

/// The decisions that parameters left open, made from the vectors and the device before a build began. Lists and
/// samples may grow where the recall asks for it; a report tells what they were in the end.
struct Choices {
    bool exhaustive = false;  ///< all pairs are compared, as was asked or is cheaper; what follows is 0 then
    int list_size = 0;        ///< length of the lists while building
    int samples = 0;          ///< the paper's p
    int trees = 0;            ///< projection trees; 0 where none are grown
    int capacity = 0;         ///< on a GPU: candidates that an object has places for
    /// On a GPU, of all pairs of a set that it does not hold: so many parts, of which two are there at a time.
    int parts = 1;
    /// On a GPU: what the iterations compare. The report of a build has what the last ones did: automatic where the
    /// plan leaves it to what the vectors turn out to be, none or int8 in the end.
    Codes codes = Codes::none;
    /// On a GPU: an iteration is split into so many passes, with more of them where candidates have fewer than p + 4
    /// places.
    int passes = 1;
};

/// The times that both ways to a graph take, predicted from rates that were measured on one machine, the vectors being
/// easy and in the device's memory. A build itself decides by what it measures.
struct Prediction {
    double all_pairs = 0;   ///< seconds for comparing all pairs; 0: nothing is predicted
    double iterations = 0;  ///< seconds for three iterations of GNND, which easy vectors take
    std::string rates;      ///< whose rates, for people: "rates of an H200"
};

/// For people, for instance "all pairs about 0.19 s, three iterations about 0.035 s (rates of an H200)".
std::string to_text(const Prediction& prediction);

/// The report of a build at its end.
struct BuildStats {
    std::vector<IterationStats> iterations;    ///< the initialisation and one record for each iteration
    StopReason stop = StopReason::iterations;  ///< why it ended
    double seconds = 0;                        ///< wall time of the whole call
    RecallEstimate recall;                     ///< of the graph, if BuildParams::recall asked for any
    RecallEstimate recall_all;                 ///< of all k columns, of fewer objects, where `recall` counts fewer
    RecallEstimate recall_added;               ///< of append() by searching: of all that counts as added
    double recall_seconds = 0;                 ///< of the whole call, what the measurement of the recall took
    /// Under cosine, l2 and ip the share of the objects whose neighbours' order is left to float32's rounding: see
    /// detail/unresolved.h. The recall says nothing of it. 0 for append() by searching, and under l2 and ip for a graph
    /// that stays on a GPU.
    double unresolved = 0;
    std::int64_t peak_work_bytes = 0;  ///< most memory held at once beside vectors and result
    Device device;                     ///< where it ran
    std::string device_reason;         ///< why Device::Kind::automatic took the CPU; empty otherwise
    int threads = 0;                   ///< CPU threads used
    Choices choices;                   ///< what the parameters left open, as it was decided
};

/// For people, of BuildStats::unresolved: a warning, empty unless it concerns half of the objects.
std::string unresolved_warning(double share, Metric metric = Metric::Cosine);

}  // namespace gnnd

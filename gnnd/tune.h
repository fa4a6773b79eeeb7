// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file tune.h
/// Time against recall of the builder's parameters on given vectors, measured on samples of them, and the parameters
/// that are predicted to reach a recall in the least time.

#include <cstdint>
#include <functional>
#include <vector>

#include "gnnd/builder.h"

namespace gnnd {

/// The effort of tune(): how much it tries, and on what.
struct TuneParams {
    /// Vectors of the larger sample, 2 to kMaxObjects; 0: chosen, 40,000 on the CPU and 400,000 on a GPU. All, where
    /// there are no more. The smaller sample has a quarter of them, but no fewer than a build needs to have lists.
    std::int64_t rows = 0;
    std::int64_t objects = 1000;  ///< of each sample whose true neighbours are known, 1 to kMaxObjects
    int settings = 40;            ///< at most so many are tried on the smaller sample, 1 to 10,000
    double seconds = 0;           ///< wall time for all of it, >= 0; 0: as long as it takes
    /// Init::random is tried beside params.init, too. Another init than the default stays in any case.
    bool inits = true;

    /// Throws InvalidArgument that names the field, its value and what is allowed.
    void validate() const;
};

/// A build of a sample, measured.
struct TuneRun {
    std::int64_t rows = 0;                     ///< vectors of the sample; 0: there was no such build
    double seconds = 0;                        ///< wall time of the build; of several builds the least
    RecallEstimate recall;                     ///< against the true neighbours of TuneParams::objects
    std::int64_t distances = 0;                ///< computed
    int iterations = 0;                        ///< that were run
    StopReason stop = StopReason::iterations;  ///< why it ended
};

/// A setting and what came of it.
struct TuneRecord {
    /// As build() takes them, with samples, list_size and trees as they were tried. With `recall` 0 the iterations are
    /// part of the setting; with the recall that was asked for the build itself says how many it takes; with 1 all
    /// pairs are compared.
    BuildParams params;
    TuneRun small;                 ///< on the smaller sample; of no rows where there is one only
    TuneRun large;                 ///< on the larger sample, or the only one
    double predicted_seconds = 0;  ///< for all vectors, see TuneResult::time_exponent; 0: nothing is predicted
    double predicted_recall = 0;   ///< for all vectors, see TuneResult::miss_exponent; 0: nothing is predicted
    bool front = false;  ///< no setting on the same sample has more recall in as little time, or as much in less

    /// On the largest sample that it was built of.
    const TuneRun& run() const { return large.rows != 0 ? large : small; }
};

/// The findings of tune().
struct TuneResult {
    std::vector<TuneRecord> records;  ///< in the order in which they were tried; the first is the default's
    int chosen = -1;                  ///< of these the one for the recall asked for; -1: none was asked for
    /// For build() of all vectors: those of the chosen setting, with the recall that was asked for. The build measures
    /// it, and ends when it is there.
    BuildParams params;
    bool reaches = false;  ///< the chosen setting is predicted (or, on all vectors, was measured) to have that recall
    std::int64_t n = 0;    ///< all vectors
    std::int64_t small_rows = 0;  ///< of the smaller sample; 0: there is none
    std::int64_t large_rows = 0;  ///< of the larger one
    /// Time grows with rows to this power, the median of the settings' from the smaller to the larger sample; all
    /// pairs take 2, their number's. 0: not measured.
    double time_exponent = 0;
    /// The share that is missing from a recall of 1 grows with rows to this power, likewise, at least 0. Settings that
    /// miss hardly anything do not count.
    double miss_exponent = 0;
    bool complete = true;  ///< false: TuneParams::seconds ended it
    double seconds = 0;    ///< wall time of the whole call
    Device device;         ///< where the builds ran
    int threads = 0;       ///< CPU threads that they used
};

/// Hooks into tune(); called from the thread that called it.
struct TuneCallbacks {
    /// After every build: the setting, and on which sample.
    std::function<void(const TuneRecord&, const TuneRun&)> progress;
    std::function<bool()> interrupt;  ///< asked many times a second; true ends it with gnnd::Interrupted
};

/// Tries samples, list_size, trees, init and iterations on two samples of the vectors, and measures time and recall of
/// each setting. From the default it walks to neighbouring settings, always from the one on the front of time and
/// recall that is nearest to the recall asked for (a Pareto local search: Paquete, Chiarandini, Stuetzle 2004), on the
/// smaller sample. The best of these are built of the larger one, and those that are predicted to reach the recall are
/// built until they do, as the result's params would. All pairs are compared, too, unless limits are set by hand: right
/// after the default of the smaller sample, and of the larger one then if they may take less than settings that reach
/// the recall, at the end otherwise. They do not count among TuneParams::settings.
///
/// Its cost: up to TuneParams::settings and 20 builds of the smaller sample and 35 of the larger one, each of
/// which takes its share of the time of the whole; the true neighbours of the sampled objects, once; and in memory a
/// build of the larger sample, with a copy of both samples' vectors unless that is all of them. Of a file only these
/// rows are read.
///
/// The recall of a sample's graph is not that of the whole one: with more rows more is missing, see miss_exponent.
/// The ranking of settings carries over, but for vectors whose neighbourhoods are of a few objects, which samples lose
/// (measured: benchs/NOTEBOOK.md); what is predicted is called so.
///
/// On the CPU a seed gives the same settings on the smaller sample, with the same recall on any number of threads;
/// times, and what is decided by them, differ from run to run.
/// \param vectors  n x d in host memory, as for build(). Only rows in a sample are checked for what no metric takes.
/// \param params   k, metric, seed, delta, device and so on are kept; `recall` is the recall asked for. Those of
///                 samples, list_size, trees and init that differ from the defaults stay as they are, and no setting
///                 has more than these iterations.
/// \throws as build(); InvalidArgument also where TuneParams::rows are so few that all their pairs are compared, or
///         TuneParams::seconds too few for the first build
TuneResult tune(const VectorView& vectors, const BuildParams& params, const TuneParams& how = {},
                const TuneCallbacks& callbacks = {}, Resources* resources = nullptr);

}  // namespace gnnd

// SPDX-License-Identifier: MIT
#pragma once
/// \file build_state.h
/// The arrays of a build on the device, which the host's steps share.

#include "gnnd/cuda/algorithm.h"
#include "gnnd/cuda/memory/plan.h"
#include "gnnd/resources.h"
#include "gnnd/stats.h"

namespace gnnd::cuda {

/// Iterations that the host is ahead of the device. One keeps it busy; after the last, each is launched for nothing.
inline constexpr int kAhead = 1;

struct BuildState {
    const detail::Input& input;
    const BuildParams& params;
    const Choices& choices;
    const BuildPlan& plan;
    Resources& resources;
    cudaStream_t stream;
    VectorForm form;         ///< what the rows hold now: the plan's, or codes of it
    float projection_keeps;  ///< of the variance; 0: no projection was found yet
    bool has_projection;     ///< found already
    double settles = 1;      ///< the share of true neighbours that the lists will lack in the end, as far as is known
    bool coarse;  ///< of codes: they may be what keeps the recall low, as the first tree says; true without trees
    const Engine* engine;
    std::byte* memory;  ///< the block that the plan divides
    std::int64_t n;
    RawVectors raw;    ///< n x d, as the caller gave them
    Points points;     ///< n rows of row_bytes: packed
    Points assigning;  ///< the same under l2, for trees
    Lists lists;       ///< n x length
    Samples samples;   ///< n x 4p
    Variant variant;
    u32* keys[2];        ///< n: of the tree that grows, and room to sort
    u32* order[2];       ///< n: its order, and room to sort
    const u32* visit;    ///< n: the order of the last tree; null without trees
    void* sort_work;     ///< scratch memory of the sort
    StopFlag* stop;      ///< one
    Counters* counters;  ///< kSpread
    Record* records;     ///< kAhead + 1, in turn
    SpaceInfo* info;     ///< one
    float* code_errors;  ///< n: of rows that are codes; null: they are compared with no codes of others
    /// n x the width: neighbours that lists which are built once more start from; null: they start from the input.
    const std::int32_t* restart;
    int restart_width;
    std::int32_t* ids;  ///< n x k: the result
    float* distances;   ///< n x k

    u32 seed_of(u32 purpose) const { return mix(u32(params.seed) ^ mix(u32(params.seed >> 32) + purpose)); }
    void take_candidates() const { apply_candidates(lists, variant.candidates, n, stop, counters, stream); }
};

/// Uploads and packs the vectors and divides the memory of the plan. The form of the vectors in the plan may change to
/// that of integers.
/// \param ids, distances  the result's arrays where the plan has none
BuildState make_state(const detail::Input& input, const BuildParams& params, const Choices& choices, BuildPlan& plan,
                      bool vectors_in_place, Resources& resources, std::byte* memory, cudaStream_t stream,
                      std::int32_t* ids, float* distances);

/// Packs the vectors in another form: as codes, of all components or of a projection, or as float16 again. Distances in
/// the lists stay those of the form before. Between iterations; of a projection not where all pairs are compared.
void use_form(BuildState& state, const VectorForm& form);
void use_codes(BuildState& state);
void use_projection(BuildState& state);
void use_float16(BuildState& state);

/// Packs the rows as float16 and finds their projection, unless there is one.
void make_projection(BuildState& state);
/// True where one was found that keeps so much of the vectors' variance that pairs are ruled out by it.
bool projection_keeps_most(const BuildState& state);

/// The kind of codes that rows of a form are.
inline Codes codes_in(const VectorForm& form) {
    return form.components != 0 ? Codes::pca : form.codes ? Codes::int8 : Codes::none;
}

/// Reads the facts about the vectors that the device has found. Waits for the stream.
SpaceInfo read_info(const BuildState& state);

/// Step 1: the lists to start from.
void initialize(BuildState& state);
/// Steps 2 to 4.
void iterate(BuildState& state, int iteration);

/// Of the graphs of a merge (GGM) the columns that stay in the lists, before step 1.
void load_kept_columns(const BuildState& state);
/// And the other columns, for step 5.
Columns set_aside_columns(const BuildState& state, int set);

}  // namespace gnnd::cuda

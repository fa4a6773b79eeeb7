// SPDX-License-Identifier: MIT
#pragma once
/// \file sweep.h
/// Exact neighbours: all pairs of a set, or of chosen objects with all, compared once against the last distances of
/// lists that are good already (bounds.h says why none is lost). What may be nearer is compared exactly and enters.

#include <optional>
#include <vector>

#include "gnnd/builder.h"
#include "gnnd/cuda/memory/memory.h"
#include "gnnd/cuda/runtime/stopwatch.h"
#include "gnnd/cuda/sweep/bounds.h"

namespace gnnd::cuda {

/// The form that a space is compared in at first.
SweepForm first_form(const SweepSpace& space);

/// A set of rows that are swept, and their lists, on the device.
struct SweepRows {
    u32 count = 0;
    const u32* objects = nullptr;  ///< count; null: all
    SweptRows packed{};
    Lists lists{};
    Wanted wanted{};
    Candidates hits{};
    float* ceilings = nullptr;                            ///< of rows that start from nothing: see BoundArgs
    Threshold* thresholds = nullptr;                      ///< padded
    u32 *overflowed = nullptr, *is_overflowed = nullptr;  ///< count: see ScoreArgs
    DeviceMemory memory;
};

/// Seconds that comparing so many chosen rows with all columns takes, and what is done with their hits.
struct SweepPace {
    u32 rows = 0;
    double comparing = 0, hits = 0;
};

class Sweep {
  public:
    /// \param k          length of the lists
    /// \param resources  the memory is theirs
    Sweep(const SweepSpace& space, int k, Resources& resources, cudaStream_t stream);

    /// Begins with codes, before anything is compared. Where they have too many hits beside neighbours finer forms
    /// follow: after projections codes of all components, then float16. Only of a space that packs them.
    void begin_with(SweepForm codes) { form_ = codes; }

    /// Takes the memory for as many chosen objects, which nearest_of() takes otherwise.
    void make_room(u32 count);
    /// The nearest k of chosen objects, exact.
    /// \param objects  host: count object numbers
    /// \param ids      device: n x stride, neighbours to start from, of which the first `width` are looked at; null:
    ///                 from nothing, which takes a few steps more
    /// \param wanted   what is behind that in a list is anything
    /// \return count x k on the device until the next call; distances as the metric says, negated for similarities
    Lists nearest_of(const std::int32_t* objects, u32 count, const u32* ids, int stride, int width, Wanted wanted = {});

    /// Makes the lists of all objects exact: n x k, with exact distances before, and the last ones in `lists.bounds`.
    /// Asks callbacks.interrupt in between.
    /// \param form  the one that another Sweep of the same vectors ended with; without, looks at some objects first.
    ///              Floats are taken for want of memory for split rows, and a finer one where many rows have more hits
    ///              than places
    void make_exact(const Lists& lists, std::optional<SweepForm> form, const Callbacks& callbacks);

    /// The same from nothing: bounds come from a sample of columns that all rows are compared with first. The few
    /// whose lists do not end within their bounds are compared again.
    /// \param lists  n x k, written
    /// \return false where products do not tell a set's neighbours well enough: the lists are anything then
    bool find_exact(const Lists& lists, const Callbacks& callbacks);
    /// False of spaces without products, and of sets with too few objects for so many neighbours.
    static bool may_find_exact(const SweepSpace& space, int k);

    int k() const { return k_; }
    /// The form that nearest_of() ended with: the first one that has few hits beside neighbours.
    SweepForm form() const { return form_; }
    /// A finer one where nearest_of() had to look again, with more places, at so many rows that all objects, which have
    /// fewer, had better be compared in it.
    SweepForm form_of_all() const { return crowded_ ? finer_packed_form() : form_; }
    /// As the last step of its first pass in that form tells: by then the kernels are loaded. Waits for it.
    SweepPace pace() const;
    /// Device memory that it has taken of the space's spare.
    std::size_t bytes_of_split() const;

    /// Device memory of a Sweep for nearest_of(), for make_exact(), and for find_exact().
    static std::size_t bytes_of_some(const SweepSpace& space, u32 count, int k);
    static std::size_t bytes_of_all(const SweepSpace& space, int k);
    static std::size_t bytes_from_sample(const SweepSpace& space, int k);

  private:
    SweepRows allocate_rows(u32 count, int capacity, const Lists* lists);
    void use_form(SweepForm form);
    /// The rows in the form that is in use, unless they are split, beside which others see them as float16.
    void pack_rows();
    /// The same once more, and what goes with a form that is new: whoever packs rows may have changed them since.
    void prepare();
    bool may_split() const;
    /// False where codes have so many hits that they cost more than they save in all pairs, as so many objects tell.
    static constexpr u32 kTrialObjects = 256;
    bool are_worthwhile(const std::vector<std::int32_t>& objects, const u32* ids, int stride, int width);
    /// If more than one in so many overflow, a form would do of all rows what finer ones do in less time.
    static constexpr u32 kCrowded = 8;
    /// \param most  places for hits of each, which hits_of_some() bounds
    u32 compare_chosen(const std::int32_t* objects, u32 count, const u32* ids, int stride, int width, Wanted wanted,
                       int most);
    /// The next one that rounds less and that there is memory for.
    SweepForm finer_form() const;
    /// The same where rows are packed in it; else the one that is in use, for floats take far longer.
    SweepForm finer_packed_form() const;
    void split();
    void gather(SweepRows& rows);
    /// Those of the chosen rows that overflowed, apart. \param places  in some_, of the rows that were compared last
    void choose_again(const std::int32_t* objects, u32 overflowed, std::vector<u32>& places);
    /// Compares the rows with the columns (or the offsets) [begin, end) of so many panels, and takes the hits.
    void compare(const SweepRows& rows, u32 begin, u32 end);
    ScoreArgs scoring(const SweepRows& rows) const;
    void take_hits(const SweepRows& rows);
    /// In steps that end there. \return how many rows had more hits than places in one of them
    u32 compare_all(const SweepRows& rows, const std::vector<u32>& ends, const Callbacks& callbacks);
    /// Thresholds of columns, of which only offsets count. \param objects  count of them; null: all
    void make_offsets(const u32* objects, u32 count, Threshold* offsets);
    /// See SweepArgs.
    int high_tiles() const;
    /// Makes the ceilings of all rows, in the form that is in use.
    void bound_by_sample(const SweepRows& rows);
    /// True where most rows have no more than so many hits and as many as they want, as some objects tell.
    bool are_bounds_good(float* ceilings, int hits);
    /// Of all rows those that overflowed. Where more than one in so many did it takes about as long to compare all.
    static constexpr std::int64_t kFewOverflow = 4;
    void compare_apart(const SweepRows& rows, u32 overflowed, const Callbacks& callbacks);
    u32 width_of(const SweepRows& rows) const;
    /// Steps of all rows, so that none takes too long.
    u32 least_steps() const;
    /// The ends of so many steps of one size.
    std::vector<u32> even_steps(const SweepRows& rows, u32 steps) const;
    /// And of steps that grow, for lists that are empty or bad.
    /// \param least  no step is larger than one of so many
    /// \param first  where the first one ends, at least
    std::vector<u32> growing_steps(const SweepRows& rows, u32 least, u32 first = 0) const;
    /// And of a small one and the rest, for lists whose bounds are good.
    std::vector<u32> two_steps(const SweepRows& rows) const;
    u32 panel_rows() const { return form_ == SweepForm::floats ? kFloatRows : kPanelRows; }

    /// Of the last step of a pass.
    struct Timed {
        explicit Timed(cudaStream_t stream) : comparing(stream), all(stream) {}
        Stopwatch comparing, all;
        u32 rows = 0;
        double part = 1;  ///< of the columns
    };

    SweepSpace space_;
    int k_;
    Resources& resources_;
    cudaStream_t stream_;
    SweepForm form_;
    bool in_use_ = false;  ///< it has thresholds of columns
    bool crowded_ = false;
    std::optional<Timed> timed_;  ///< the first pass in this form
    DeviceMemory shared_, split_;
    Threshold* columns_;
    float* factors_ = nullptr;  ///< n, of normalised metrics
    RowNorms* norms_;
    u32* overflows_;
    StopFlag* stop_;
    Counters* counters_;
    DeviceMemory sample_;     ///< of columns
    SweepRows some_, again_;  ///< chosen ones, and those of them that are compared again, in the same memory
    u32* places_;             ///< of these in some_
    u32 room_ = 0;            ///< rows that it has memory for
    PinnedArray<u32, 1> overflows_here_;
    Drain drain_;  // the last member: copies into the page-locked word end first
};

}  // namespace gnnd::cuda

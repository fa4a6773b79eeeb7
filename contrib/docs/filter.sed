# SPDX-License-Identifier: MIT
# What Doxygen reads of a source: "Recall@k" is no command of its, and moves, comparisons, the macros that lists are
# expanded with, and traits that repeat what a base says need no words.
s/Recall@/Recall\\@/g
/&&[^,]*noexcept;/d
/operator==.*= default;/d
/^#define GNND_\(METRIC\|DTYPE\|INIT\|FORMAT\)(/{
    :continued
    /\\$/{
        N
        b continued
    }
    d
}
/^    static constexpr [^/]*;$/d
/^    template <class \(A\|T\|A, class T\)>$/i\
    /// See gnnd::metrics.

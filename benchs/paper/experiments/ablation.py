# SPDX-License-Identifier: MIT
"""The paper's steps and ours, one at a time."""

from points import Context, Experiment, Point

from experiments.common import PAPER_STOP, gauss, gnnd, no_switch

# Steps that the code has no switch for, and why. On the CPU there are neither locks nor buffers.
BOUND = {
    "two partners": "how many partners are kept is a constant of a kernel: two with update=auto on a GPU",
    "buffers": "what goes through buffers is update=auto on a GPU, and what does not the step before",
    "filter": "buffers have room for what passes the filter, not for all that is offered",
    "order": "the order in which objects are visited is the last tree's: it comes with trees",
}


def steps(context: Context) -> list[tuple[str, str, int]]:
    """Name, settings, CPU threads (0: all of them, or the GPU)."""
    one = ("NN-Descent, one CPU thread", "init=random,update=all", 1)
    if context.gpu:
        return [
            one,
            ("GNND-r1: every pair", "init=random,update=all", 0),
            ("GNND-r2: selective update", "init=random,update=selective,locks=list", 0),
            ("GNND: multiple spinlocks", "init=random,update=selective,locks=segment", 0),
            ("two partners, buffers, filter", "init=random", 0),
            ("trees", "", 0),
        ]
    return [
        one,
        ("all threads", "init=random,update=all", 0),
        ("selective update (the paper's)", "init=random,update=selective", 0),
        ("trees", "update=selective", 0),
        ("every pair again (CPU default)", "update=all", 0),
    ]


def points(context: Context) -> list[Point]:
    """Each step over p and iterations; the last one ends by the recall that it measures."""
    rows, k = context.size(1_000_000, 6000), context.either(64, 20)
    ps, iterations = context.either((10, 16, 32), (8, 16)), context.either((1, 2, 3, 4, 6, 8, 12), (2, 4, 6))
    sets = [context.library.photosift(rows), gauss(context, rows, 32)]
    more = {"k": k, "repeat": context.either(3, 1), "queries": context.either(5000, 500)}
    result = []
    for data in sets:
        for number, (name, settings, threads) in enumerate(steps(context), 1):
            once = {**more, "repeat": 1} if threads == 1 else more
            few = threads == 1 and not context.quick  # which takes hundreds of times as long
            result += [
                gnnd(
                    context,
                    name,
                    data,
                    ",".join(filter(None, [settings, f"p={p},iterations={count},delta=0,{PAPER_STOP}"])),
                    threads=threads,
                    about={"step": number, "p": p},
                    **once,
                )
                for p in (ps[1:2] if few else ps)
                for count in (iterations[1::2] if few else iterations)
            ]
        last = len(steps(context)) + 1
        result += [
            gnnd(context, "ends by recall (default)", data, f"recall={recall}", about={"step": last}, **more)
            for recall in (0.9, 0.95, 0.99, 0.999)
        ]
        result += [no_switch(data, name, why, last + at, k) for at, (name, why) in enumerate(BOUND.items(), 1)]
    return result


EXPERIMENT = Experiment(
    "ablation",
    "from NN-Descent on one thread to this project's default",
    "The paper: GNND is up to 240 times faster than one-thread NN-Descent; selective update (r1 to r2) gives more than "
    "3 times, multiple spinlocks (r2 to r3) another 5 to 8%.",
    points,
)

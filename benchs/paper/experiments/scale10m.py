# SPDX-License-Identifier: MIT
"""The same at ten million."""

from points import Context, Experiment, Point

from experiments.common import PAPER_STOP, all_pairs, gnnd, largest_sets, rivals

MOST_PAIRS = {True: 1e14, False: 1e11}  # that are compared on a GPU, and on a CPU


def points(context: Context) -> list[Point]:
    """k = 32, so that vectors and graph fit a GPU."""
    rows, k = context.size(10_000_000, 8000), context.either(32, 16)
    sets = largest_sets(context, rows, ("SIFT10M", "DEEP10M"))
    more = {"k": k, "repeat": 1, "queries": context.either(2000, 300)}
    result = []
    for data in sets:
        ps = context.either((16, 32, 64) if data.hard else (16, 32), (8, 16))
        result += [
            gnnd(context, "GNND", data, f"p={p},iterations={count},{PAPER_STOP}", **more)
            for p in ps
            for count in context.either((3, 4, 6), (3, 6))
        ]
        result += [gnnd(context, "GNND, ends by recall", data, f"recall={recall}", **more) for recall in (0.9, 0.99)]
        pairs = all_pairs(context, data, **more)
        too_many = float(data.n) ** 2 > MOST_PAIRS[context.gpu]
        why_not = f"{float(data.n) ** 2:.0e} pairs are more than this machine is given" if too_many else ""
        result.append(Point(**{**vars(pairs), "why_not": why_not}))
        result += rivals(context, data, why_not, **more)
    return result


EXPERIMENT = Experiment(
    "scale10m",
    "time against Recall@10, sets of ten million",
    "The paper: on SIFT10M and DEEP10M GNND keeps its distance to GGNN and IVFPQ.",
    points,
)

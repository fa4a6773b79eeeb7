# SPDX-License-Identifier: MIT
"""Time against recall on sets of a million."""

from datasets import Dataset
from points import Context, Experiment, Point

from experiments.common import PAPER_STOP, all_pairs, gauss, gnnd, manifold, rivals


def curves(context: Context, data: Dataset, k: int, more: dict) -> list[Point]:
    """Of each method what its parameters give."""
    hard = data.hard
    ps = context.either((10, 16, 22, 32, 48, 64) if hard else (10, 16, 22, 32), (8, 16))
    result = [gnnd(context, "GNND", data, f"p={p},{PAPER_STOP}", k=k, **more) for p in ps]
    if hard and not context.quick:
        result += [gnnd(context, "GNND", data, f"p={p},list=128,{PAPER_STOP}", k=k, **more) for p in (32, 64)]
        result += [
            gnnd(context, f"GNND, k = {wide}", data, f"p={p},{PAPER_STOP}", k=wide, **more)
            for wide in (96, 128)
            for p in (32, 64)
        ]
    result += [
        gnnd(context, "GNND, ends by recall", data, f"recall={recall}", k=k, **more) for recall in (0.9, 0.99, 0.999)
    ]
    result.append(all_pairs(context, data, k=k, **more))
    return result + rivals(context, data, k=k, **more)


def points(context: Context) -> list[Point]:
    """k = 64, of hard sets up to 128; beside each easy set a hard one."""
    rows, k = context.size(1_000_000, 3000), context.either(64, 16)
    library = context.library
    sets = [
        library.photosift(rows),
        manifold(context, "DEEP-like", rows, 96, 16),
        manifold(context, "GIST-like", context.either(rows, rows // 2), 960, 30),
        manifold(context, "GloVe-like", rows, 100, 40, "cosine"),
        gauss(context, rows, 32),
        gauss(context, rows, 128),
    ]
    sets += filter(None, (library.public(name, rows) for name in ("embeddings", "SIFT1M", "GIST1M", "GloVe", "DEEP1M")))
    more = {"repeat": context.either(3, 1), "queries": context.either(5000, 300)}
    return [point for data in sets for point in curves(context, data, k, more)]


EXPERIMENT = Experiment(
    "million",
    "time against Recall@10, sets of a million",
    "The paper: GNND is 2.5 to 5 times faster than GGNN at the same recall, and far above IVFPQ.",
    points,
)

# SPDX-License-Identifier: MIT
"""The number of objects from which on GNND is cheaper than comparing all pairs."""

from points import Context, Experiment, Point

from experiments.common import PAPER_STOP, all_pairs, faiss, gauss, gnnd, manifold

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000)
QUICK_SIZES = (1000, 2000, 4000, 8000)
MOST = {"all pairs": {True: 10_000_000, False: 100_000}, "FAISS flat": {True: 1_000_000, False: 100_000}}


def points(context: Context) -> list[Point]:
    """k = 10, up to a hundred times --rows."""
    more = {"k": 10, "repeat": context.either(3, 2), "queries": context.either(1000, 300)}
    result = []
    for rows in context.either([size for size in SIZES if size <= 100 * context.rows], QUICK_SIZES):
        for data in (manifold(context, "manifold 12", rows, 50, 12), gauss(context, rows, 32)):
            result.append(gnnd(context, "GNND", data, PAPER_STOP, **more))
            if rows <= MOST["all pairs"][context.gpu]:
                result.append(all_pairs(context, data, **more))
            if rows <= MOST["FAISS flat"][context.gpu]:
                result.append(faiss("FAISS flat", data, "--method exact", **more))
    return result


EXPERIMENT = Experiment(
    "crossing",
    "cost by n: GNND, all pairs, FAISS flat",
    "The paper does not show where comparing all pairs is cheaper; tensor cores move that point far up.",
    points,
)

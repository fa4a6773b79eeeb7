# SPDX-License-Identifier: MIT
"""Shared by the experiments: points of GNND on whatever device there is, and the sets of vectors."""

from __future__ import annotations

from datasets import Dataset
from points import Context, Point
from tools import PEERS

# Settings that leave GNND alone: no measuring of its own, which would end builds or compare all pairs.
PAPER_STOP = "recall=0"


def gnnd(context: Context, series: str, data: Dataset, settings: str, **more) -> Point:
    """A build by GNND: on a GPU by gpu_bench, where vectors and graph are on the device, else by build_bench."""
    if context.gpu and not more.get("threads"):
        return Point(series, data, "gpu_bench", settings or "default", **more)
    return Point(series, data, "build_bench", ",".join(filter(None, ["method=gnnd", settings])), **more)


def all_pairs(context: Context, data: Dataset, **more) -> Point:
    """gnnd's own comparison of all pairs."""
    series = "all pairs (gnnd)"
    if context.gpu:
        return Point(series, data, "gpu_bench", "exact=1", **more)
    return Point(series, data, "build_bench", "method=exhaustive", **more)


def faiss(series: str, data: Dataset, options: str, **more) -> Point:
    """One of FAISS's ways to a graph, on a GPU where FAISS has it there."""
    return Point(series, data, "gnnd", options, **more)


def ivfpq(context: Context, data: Dataset, options: str, **more) -> Point:
    """FAISS's IVFPQ, the paper's codes of 32 bytes; every object searches an index of all."""
    options = context.either("", "--code-bytes 8 ") + options
    why_not = "FAISS's IVFPQ knows no cosine" if data.metric == "cosine" else ""
    return faiss("FAISS IVFPQ", data, f"--method ivfpq {options}", why_not=why_not, **more)


def rivals(context: Context, data: Dataset, too_many_pairs: str = "", **more) -> list[Point]:
    """FAISS's flat search, IVFPQ and NNDescent, and the peers, those that need a GPU where there is one. Each once.

    :param too_many_pairs: why what compares all pairs is left out; empty: it is not
    """
    more = {**more, "repeat": 1}
    result = [faiss("FAISS flat", data, "--method exact", why_not=too_many_pairs, **more)]
    result += [ivfpq(context, data, f"--nprobe {nprobe}", **more) for nprobe in context.either((4, 16, 64), (4, 16))]
    result += [
        Point("FAISS NNDescent", data, "build_bench", f"method=nndescent,iterations={count}", **more)
        for count in context.either((5, 8), (5,))
    ]
    return result + [
        Point(series, data, name, setting, **more)
        for name, peer in context.either(PEERS, {}).items()
        if context.gpu or peer.device == "cpu"
        for series, setting in peer.settings
    ]


def gauss(context: Context, rows: int, d: int) -> Dataset:
    """Independent Gaussian components: the intrinsic dimension is d, the hardest there is of it."""
    return context.library.generated(f"gauss {d}", f"hard:gauss:{{n}}:{d}", rows, stated=d, hard=True)


def manifold(context: Context, name: str, rows: int, d: int, dimension: int, metric: str = "l2") -> Dataset:
    """A bent cube of so many dimensions in d, see benchs/generate.h; from 30 dimensions on it is hard."""
    source = f"manifold:{{n}}:{d}:{dimension}"
    return context.library.generated(name, source, rows, metric, stated=dimension, hard=dimension >= 30)


def no_switch(data: Dataset, series: str, what: str, step: int, k: int) -> Point:
    """A change that the code cannot leave out: said in the result instead of a number."""
    return Point(series, data, "build_bench", series, k=k, about={"step": step}, why_not=f"no switch: {what}")


def largest_sets(context: Context, rows: int, public_names: tuple[str, ...]) -> list[Dataset]:
    """Sets of so many rows: made ones, easy and hard, and the public ones that are there."""
    library = context.library
    sets = [library.photosift(rows), manifold(context, "DEEP-like", rows, 96, 16), gauss(context, rows, 32)]
    return sets + list(filter(None, (library.public(name, rows) for name in public_names)))

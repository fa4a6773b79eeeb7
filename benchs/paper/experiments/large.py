# SPDX-License-Identifier: MIT
"""Graphs in shards of sets that no device holds."""

from points import Context, Experiment, Point

from experiments.common import faiss, largest_sets

PAPER_HOURS = {"SIFT1B": 77, "DEEP1B": 76}  # as the paper prints them


def points(context: Context) -> list[Point]:
    """100,000,000 rows, from files to files."""
    rows, k = context.size(100_000_000, 8000), context.either(32, 16)
    shards = context.either(16, 4)
    library = context.library
    sets = largest_sets(context, rows, ("SIFT1B", "DEEP1B"))
    more = {"k": k, "repeat": 1, "queries": context.either(1000, 300)}
    result = []
    for data in sets:
        result += [
            faiss("GNND and GGM in shards", data, f"--shards {shards} {options}", **more)
            for options in ("--iterations 2 --recall 0", "--recall 0")
        ]
        # Of 256 vectors a centroid, FAISS's most, training alone takes minutes; its guide asks for 30 at least. One
        # command builds both, whose index build_bench makes once: that takes minutes, too.
        lists = context.either("nlist=65536,points=64", "code=8")
        result += [
            Point("FAISS IVFPQ", data, "build_bench", f"method=ivfpq,{lists},nprobe={nprobe}", **more)
            for nprobe in (4, 16)
        ]
    for name, d, dtype in (("SIFT1B", 128, "u8"), ("DEEP1B", 96, "f32")):
        billion = library.generated(name, "not made", 1_000_000_000)
        result.append(
            Point(
                "predicted for one H200",
                billion,
                "sharded_plan",
                f"--n 1000000000 -d {d} --dtype {dtype} --shards 16,20,24,32,40,48,64,80,96 --host 500",
                k=32,
                repeat=1,
                about={"n": 1_000_000_000, "paper_hours": PAPER_HOURS[name]},
            )
        )
    return result


EXPERIMENT = Experiment(
    "large",
    "in shards: hundred million, and the billion as predicted",
    "The paper: graphs of SIFT1B in 77 hours and of DEEP1B in 76 on one GPU, IVFPQ far below in recall.",
    points,
)

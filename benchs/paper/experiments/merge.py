# SPDX-License-Identifier: MIT
"""GGM against merging by search, and graphs that grow part by part."""

from points import Context, Experiment, Point

from experiments.common import PAPER_STOP, gauss


def points(context: Context) -> list[Point]:
    """All by build_bench, from and to host memory; GNND and GGM run on a GPU where there is one, FAISS's searches do
    not."""
    rows, k = context.size(1_000_000, 4000), context.either(64, 16)
    result = []
    for data in (context.library.photosift(rows), gauss(context, rows, 32)):
        more = {"k": k, "repeat": context.either(3, 1), "queries": context.either(5000, 500)}

        def point(series: str, configuration: str, data=data, more=more, **about) -> Point:
            return Point(series, data, "build_bench", configuration, about=about, **more)

        half = data.n // 2
        result += [
            point("GGM", f"merge={half},iterations={count},delta=0,{PAPER_STOP}")
            for count in context.either((1, 2, 3, 4, 6), (1, 2, 3))
        ]
        result.append(point("GGM, its own stop", f"merge={half},{PAPER_STOP}"))
        result.append(point("append()'s search", f"merge={half},by=append,{PAPER_STOP}"))
        result += [
            point(f"search of {kind.upper()}", f"merge={half},by={kind},beam={beam},{PAPER_STOP}")
            for kind in ("nsg", "hnsw")
            for beam in (k, 2 * k, 4 * k)
        ]
        result.append(point("one build of all", f"method=gnnd,{PAPER_STOP}", parts=1))
        result += [
            point("part by part", f"parts={parts},{PAPER_STOP}", parts=parts)
            for parts in context.either((2, 4, 8, 16), (2, 4, 8))
        ]
    return result


EXPERIMENT = Experiment(
    "merge",
    "two graphs become one, and growth in parts",
    "The paper: GGM is 5 to 10% above merging by search in recall at the same time.",
    points,
)

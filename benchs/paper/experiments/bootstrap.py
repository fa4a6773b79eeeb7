# SPDX-License-Identifier: MIT
"""From vectors to an index that is ready to search."""

from points import Context, Experiment, Point

from experiments.common import gauss

INDEXES = ("GNND64,NSG32", "NSG32", "GNND64,HNSW16", "HNSW16", "HNSW16 efConstruction=200")


def points(context: Context) -> list[Point]:
    """The last 2,000 vectors are the queries, Recall@10."""
    rows, queries = context.size(1_000_000, 3000), context.either(2000, 300)
    beams = context.either("10,16,24,32,48,64,96,128,192,256,384,512", "10,16,32,64,128")
    result = []
    for data in (context.library.photosift(rows), gauss(context, rows, 32)):
        result += [
            Point(
                index,
                data,
                "index_bench",
                index,
                k=10,
                repeat=context.either(3, 2),
                queries=queries,
                options=("--beams", beams),
            )
            for index in INDEXES
        ]
        result.append(
            Point(
                "CAGRA",
                data,
                "index_bench",
                "CAGRA",
                k=10,
                why_not="index_bench searches FAISS's CPU indexes; CAGRA needs a FAISS with cuVS",
            )
        )
    return result


EXPERIMENT = Experiment(
    "bootstrap",
    "from vectors to a graph index, queries a second",
    "The paper does not measure this; FAISS's users ask it.",
    points,
)

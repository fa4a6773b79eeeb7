# SPDX-License-Identifier: MIT
"""From vectors to an index that is ready to search."""

from points import Context, Experiment, Point

from experiments.common import gauss

INDEXES = ("GNND64,NSG32", "NSG32", "GNND64,HNSW16", "HNSW16", "HNSW16 efConstruction=200")

# Searched on the GPU, where the others are searched by all cores.
CAGRA = (
    ("GNND64,CAGRA32 on the GPU", "links=32,from=to_cagra,k=64"),
    ("CAGRA32 on the GPU, from NN_DESCENT", "links=32,from=NN_DESCENT"),
    ("CAGRA32 on the GPU, from IVF_PQ", "links=32,from=IVF_PQ"),
)


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
        result += [
            Point(
                series,
                data,
                "cagra",
                made,
                k=10,
                repeat=1,
                queries=queries,
                options=("--widths", "32,64,128,256,512"),
                why_not="" if context.gpu else "CAGRA needs a GPU",
            )
            for series, made in CAGRA
        ]
    return result


EXPERIMENT = Experiment(
    "bootstrap",
    "from vectors to a graph index, queries a second",
    "The paper does not measure this; FAISS's users ask it.",
    points,
)

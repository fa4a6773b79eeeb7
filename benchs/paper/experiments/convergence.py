# SPDX-License-Identifier: MIT
"""phi(G) by iteration."""

from points import Context, Experiment, Point

from experiments.common import PAPER_STOP, all_pairs, gauss, gnnd

K = 10


def points(context: Context) -> list[Point]:
    """k = 10, a fixed number of iterations, no other stop."""
    rows, iterations = context.size(1_000_000, 4000), context.either(12, 8)
    fixed = f"{PAPER_STOP},delta=0,iterations={iterations}"
    library = context.library
    found = [library.public(name, rows) for name in ("SIFT1M", "DEEP1M", "GIST1M", "GloVe")]
    sets = [library.photosift(rows), gauss(context, rows, 32), *filter(None, found)]
    result = []
    for data in sets:
        more = {"k": K, "repeat": 1, "queries": context.either(5000, 500)}
        result += [
            gnnd(context, "NN-Descent (every pair, random start)", data, f"init=random,update=all,{fixed}", **more),
            gnnd(
                context, "GNND (selective update, random start)", data, f"init=random,update=selective,{fixed}", **more
            ),
            gnnd(context, "GNND, this project's default update and trees", data, fixed, **more),
        ]
        result += [
            Point(
                "FAISS NNDescent",
                data,
                "build_bench",
                f"method=nndescent,iterations={count}",
                about={"iteration": count},
                **more,
            )
            for count in context.either((2, 4, 6, 8), (2, 4, 6))
        ]
        result.append(all_pairs(context, data, **more))
    return result


EXPERIMENT = Experiment(
    "convergence",
    "phi(G) by iteration, k = 10",
    "The paper: selective update converges within as many iterations as classic NN-Descent, to nearly the same phi(G).",
    points,
)

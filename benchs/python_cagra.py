# SPDX-License-Identifier: MIT
"""FAISS's GpuIndexCagra of gnnd's graph, beside FAISS's own by both of its build algorithms.

    python benchs/python_cagra.py BASE [--rows N] [--queries Q] [--degrees 32,64] [-k 64,128] [--widths 32,64,128,256]

The last Q rows are the queries, the others the base. Prints a JSON line for each index: links of an object, what they
are from, the seconds until it is ready (of gnnd's with those of its graph), and for each width of the search,
itopk_size, Recall@10 and queries a second, all queries at a time from and to host memory. A way is run on few rows
before its clock runs. Needs PyPI's faiss-gpu-cuvs and a GPU. benchs/paper's bootstrap experiment calls it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import faiss
import numpy as np
import peers

AT = 10
WARM = 5000  # rows
ALGORITHMS = ("NN_DESCENT", "IVF_PQ")


def of_graph(x: np.ndarray, degree: int, k: int, resources: Any) -> tuple[Any, dict[str, float]]:
    """The index, and what its graph took."""
    import gnnd

    start = time.perf_counter()
    graph = gnnd.build(x, k, device="cuda")
    seconds = time.perf_counter() - start
    index = gnnd.faiss.to_cagra(x, graph, degree, resources=resources)
    return index, {"graph_seconds": seconds, "graph_recall": graph.recall or 0.0}


def of_faiss(x: np.ndarray, degree: int, algorithm: str, resources: Any) -> tuple[Any, dict[str, float]]:
    """FAISS's own, of an intermediate graph of twice the degree, as its defaults have it."""
    config = faiss.GpuIndexCagraConfig()
    config.graph_degree, config.intermediate_graph_degree = degree, 2 * degree
    config.build_algo = getattr(faiss, f"graph_build_algo_{algorithm}")
    index = faiss.GpuIndexCagra(resources, x.shape[1], faiss.METRIC_L2, config)
    index.train(x)
    return index, {}


def searches(
    index: Any, queries: np.ndarray, truth: np.ndarray, widths: list[int], repeat: int
) -> list[dict[str, Any]]:
    """Of each width; the fastest of the repeats. Ties count, whichever was found."""
    lines = []
    for width in widths:
        params = faiss.SearchParametersCagra()
        params.itopk_size = width
        index.search(queries, AT, params=params)
        seconds = float("inf")
        for _ in range(repeat):
            start = time.perf_counter()
            distances = index.search(queries, AT, params=params)[0]
            seconds = min(seconds, time.perf_counter() - start)
        recall = float((distances <= truth[:, -1:] * (1 + 1e-5)).mean())
        lines.append({"itopk_size": width, f"recall@{AT}": recall, "queries_per_second": len(queries) / seconds})
    return lines


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A record for each index."""
    rows = peers.read(options.base, options.rows)
    x, queries = rows[: -options.queries], rows[-options.queries :]
    resources = faiss.StandardGpuResources()
    truth = faiss.knn_gpu(resources, queries, x, AT)[0]
    for degree in options.degrees:
        ways: list[tuple[dict[str, Any], Callable[..., Any], Any]] = [
            ({"links": degree, "from": "to_cagra", "k": k}, of_graph, k) for k in options.k
        ]
        ways += [({"links": degree, "from": one}, of_faiss, one) for one in ALGORITHMS]
        for about, make, argument in ways:
            make(x[:WARM], degree, argument, resources)
            start = time.perf_counter()
            index, told = make(x, degree, argument, resources)
            seconds = time.perf_counter() - start
            found = searches(index, queries, truth, options.widths, options.repeat)
            sizes = {"rows": len(x), "d": x.shape[1], "queries": len(queries), "faiss": faiss.__version__}
            yield {**sizes, **about, "ready_seconds": seconds, **told, "searches": found}


def numbers(text: str) -> list[int]:
    """Of a list with commas."""
    return [int(one) for one in text.split(",")]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="u8bin, i8bin or fbin")
    parser.add_argument("--rows", type=int, default=0, help="of the file, the first so many, with the queries; 0: all")
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--degrees", type=numbers, default=[32, 64], help="links of an object")
    parser.add_argument("-k", type=numbers, default=[64], help="of gnnd's graphs")
    parser.add_argument("--widths", type=numbers, default=[32, 64, 128, 256], help="itopk_size")
    parser.add_argument("--repeat", type=int, default=3, help="searches of each width")
    options = parser.parse_args(arguments)
    if not hasattr(faiss, "GpuIndexCagra"):
        sys.exit(f"python_cagra.py: faiss {faiss.__version__} has no GpuIndexCagra; PyPI's faiss-gpu-cuvs has it")
    if faiss.get_num_gpus() == 0:
        sys.exit("python_cagra.py: FAISS sees no GPU")
    for record in measured(options):
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()

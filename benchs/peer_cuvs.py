#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times cuVS's nn_descent and all_neighbors, host to host, on a u8bin or fbin file, in JSON lines like build_bench's.
From PyPI: cuvs-cu13, with libcuvs-cu13 and pylibraft-cu13; cuvs-cu12 for CUDA 12."""

from __future__ import annotations

import argparse

import cuvs
import numpy as np
import peers
from cuvs.neighbors import all_neighbors, ivf_pq, nn_descent

METRICS = {"l2": "sqeuclidean", "cosine": "cosine"}


def prepare(parser: argparse.ArgumentParser) -> None:
    """Adds cuVS's own options."""
    algorithms = ["nn_descent", "all_nn_descent", "all_brute_force", "all_ivf_pq"]
    parser.add_argument("--algorithm", choices=algorithms, default="nn_descent", help="all_: of all_neighbors")
    parser.add_argument("--intermediate", type=int, default=0, help="intermediate_graph_degree; 0: twice the degree")
    parser.add_argument("--iterations", type=int, default=20, help="max_iterations")


def build(x: np.ndarray, options: argparse.Namespace, seed: int) -> np.ndarray:
    """It has no seed."""
    metric = METRICS[options.metric]
    everywhere = options.algorithm.startswith("all_")
    # One more of all_neighbors, since some of its algorithms count the object itself.
    columns = options.k + 1 if everywhere else options.k
    lists = nn_descent.IndexParams(
        metric=metric,
        graph_degree=columns,
        max_iterations=options.iterations,
        intermediate_graph_degree=options.intermediate or 2 * columns,
    )
    if not everywhere:
        return np.asarray(nn_descent.build(lists, x).graph).astype(np.int64)
    algorithm = options.algorithm.removeprefix("all_")
    params = all_neighbors.AllNeighborsParams(
        algo=algorithm,
        n_clusters=1,
        overlap_factor=0,
        metric=metric,
        nn_descent_params=lists if algorithm == "nn_descent" else None,
        ivf_pq_params=ivf_pq.IndexParams(metric=metric) if algorithm == "ivf_pq" else None,
    )
    ids = np.empty((len(x), columns), np.int64)
    all_neighbors.build(x, columns, params, indices=ids)
    return ids


if __name__ == "__main__":
    peers.main("cuVS", cuvs.__version__, prepare, build, __doc__, "cuda:0")

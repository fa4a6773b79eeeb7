#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times pynndescent on a u8bin or fbin file; prints JSON lines like build_bench's."""

from __future__ import annotations

import argparse

import numpy as np
import peers
import pynndescent


def prepare(parser: argparse.ArgumentParser) -> None:
    """Adds pynndescent's own options."""
    parser.add_argument("--trees", type=int, help="pynndescent's n_trees")
    parser.add_argument("--iterations", type=int, help="pynndescent's n_iters")


def build(x: np.ndarray, options: argparse.Namespace, seed: int) -> np.ndarray:
    """The first of n_neighbors is the object itself."""
    metric = {"l2": "euclidean", "cosine": "cosine"}[options.metric]
    index = pynndescent.NNDescent(
        x,
        metric=metric,
        n_neighbors=options.k + 1,
        low_memory=True,
        n_jobs=options.threads,
        n_trees=options.trees,
        n_iters=options.iterations,
        random_state=seed,
    )
    return index.neighbor_graph[0]


if __name__ == "__main__":
    peers.main("pynndescent", pynndescent.__version__, prepare, build, __doc__)

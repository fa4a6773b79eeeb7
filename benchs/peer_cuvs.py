#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times cuVS's nn_descent, host to host, on a u8bin or fbin file; prints JSON lines like build_bench's."""

from __future__ import annotations

import argparse

import cuvs
import numpy as np
import peers
from cuvs.neighbors import nn_descent


def prepare(parser: argparse.ArgumentParser) -> None:
    """Adds nn_descent's own options."""
    parser.add_argument("--intermediate", type=int, default=0, help="intermediate_graph_degree; 0: twice the degree")
    parser.add_argument("--iterations", type=int, default=20, help="max_iterations")


def build(x: np.ndarray, options: argparse.Namespace, seed: int) -> np.ndarray:
    """It has no seed."""
    metric = {"l2": "sqeuclidean", "cosine": "cosine"}[options.metric]
    params = nn_descent.IndexParams(
        metric=metric,
        graph_degree=options.k,
        max_iterations=options.iterations,
        intermediate_graph_degree=options.intermediate or 2 * options.k,
    )
    return np.asarray(nn_descent.build(params, x).graph).astype(np.int64)


if __name__ == "__main__":
    peers.main("cuVS nn_descent", cuvs.__version__, prepare, build, __doc__)

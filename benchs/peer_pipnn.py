#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times pipnn (PiPNN, arXiv 2602.21247) on a u8bin or fbin file; prints JSON lines like build_bench's."""

from __future__ import annotations

import argparse
from importlib.metadata import version

import numpy as np
import peers
import pipnn


def prepare(parser: argparse.ArgumentParser) -> None:
    """Adds pipnn's own options."""
    parser.add_argument("--runs", type=int, default=1, help="partitions")
    parser.add_argument("--beam", type=int, default=64, help="beam_L of its searches")


def build(x: np.ndarray, options: argparse.Namespace, seed: int) -> np.ndarray:
    """Its graph holds the others only, in rows of a sparse matrix."""
    metric = {"l2": "euclidean", "cosine": "cosine"}[options.metric]
    beam = max(options.beam, options.k + 1)
    transformer = pipnn.PiPNNTransformer(
        options.k, metric=metric, beam_L=beam, runs=options.runs, n_jobs=options.threads, random_state=seed
    )
    return peers.ids_of(transformer.fit_transform(x), options.k)


if __name__ == "__main__":
    peers.main("pipnn", version("pipnn"), prepare, build, __doc__)

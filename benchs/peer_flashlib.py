#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times FlashLib's exact flash_knn, host to host, on a u8bin or fbin file; prints JSON lines like build_bench's.
From PyPI: flashlib, which brings PyTorch and Triton."""

from __future__ import annotations

import argparse

import flashlib
import numpy as np
import peers
import torch
from flashlib.primitives.knn import flash_knn


def prepare(parser: argparse.ArgumentParser) -> None:
    """Adds FlashLib's own options."""
    types = ["float16", "bfloat16", "float32"]
    parser.add_argument("--type", choices=types, default="float16", help="what vectors are rounded to and compared in")


def build(x: np.ndarray, options: argparse.Namespace, seed: int) -> np.ndarray:
    """The first of its neighbours is the object itself. It knows squared distances only."""
    rows = torch.from_numpy(x).to("cuda")
    if options.metric == "cosine":
        rows = torch.nn.functional.normalize(rows)
    rows = rows.to(getattr(torch, options.type))
    return flash_knn(rows, rows, options.k + 1, return_distances=False).cpu().numpy().astype(np.int64)


if __name__ == "__main__":
    peers.main("FlashLib", flashlib.__version__, prepare, build, __doc__, "cuda:0")

# SPDX-License-Identifier: MIT
"""Shared by the scripts of peers: vectors from a file, the recall of their graphs, and lines like build_bench's."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

AT_ONCE = 1 << 27  # distances that a thread holds at a time
WARM_UP = 1_000_000  # rows of a larger set that are enough for what is compiled or loaded at first
TYPES = {"u8bin": np.uint8, "i8bin": np.int8, "fbin": np.float32}


def read(path: str, rows: int) -> np.ndarray:
    """The first rows (0: all) as float32, n x d."""
    dtype = TYPES[path.rsplit(".", 1)[1]]
    n, d = (int(value) for value in np.fromfile(path, np.int32, 2))
    n = min(n, rows) if rows else n
    return np.fromfile(path, dtype, n * d, offset=8).reshape(n, d).astype(np.float32)


def ids_of(graph: Any, k: int) -> np.ndarray:
    """The columns of a sparse matrix of distances, nearest first: n x k, -1 where a row has fewer."""
    n = len(graph.indptr) - 1
    rows = np.repeat(np.arange(n), np.diff(graph.indptr))
    order = np.lexsort((graph.data, rows))
    columns = np.arange(len(rows)) - graph.indptr[rows]
    kept = columns < k
    ids = np.full((n, k), -1, np.int64)
    ids[rows[kept], columns[kept]] = graph.indices[order][kept]
    return ids


def recalls(x: np.ndarray, ids: np.ndarray, queries: int, at: list[int], metric: str) -> tuple[dict[str, float], int]:
    """Recall@at over a sample of objects, ties counted by distance, the object itself left out on both sides; and the
    size of the sample. Under cosine rows are brought to unit length, whose squared distances have the same order."""
    if metric == "cosine":
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
    sample = np.sort(np.random.default_rng(1).choice(len(x), min(queries, len(x)), replace=False))
    norms = np.einsum("ij,ij->i", x, x)
    most = max(at)

    def hits_of(part: np.ndarray) -> list[int]:
        hits = [0] * len(at)
        distances = (-2 * x[part]) @ x.T
        distances += norms
        distances += norms[part, None]
        distances[np.arange(len(part)), part] = np.inf
        for object_, row in zip(part, distances, strict=True):
            others = ids[object_][(ids[object_] != object_) & (ids[object_] >= 0)]
            # An id that stands twice in a row is one neighbour.
            others = others[np.sort(np.unique(others, return_index=True)[1])]
            # The nearest are no farther than as many that were found: few are left to sort.
            near = row[row <= row[others[:most]].max()] if len(others) >= most else row
            nearest = np.sort(np.partition(near, most - 1)[:most])
            for place, count in enumerate(at):
                # Products of floats round: a millionth of the norms apart counts as equal.
                limit = nearest[count - 1] + 1e-6 * norms[object_]
                hits[place] += int((row[others[:count]] <= limit).sum())
        return hits

    parts = np.array_split(sample, max(1, len(sample) * len(x) // AT_ONCE))
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:  # numpy lets go of the interpreter
        shares = np.sum(list(pool.map(hits_of, parts)), 0) / (len(sample) * np.array(at))
    return {f"recall@{count}": float(share) for count, share in zip(at, shares, strict=True)}, len(sample)


def memory(field: str) -> int:
    """Of this process in bytes: "VmRSS", now, or "VmHWM", the most so far."""
    with open("/proc/self/status") as status:
        return next((int(line.split()[1]) * 1024 for line in status if line.startswith(field + ":")), 0)


def reset_peak_memory() -> int:
    """The peak begins anew, where the system allows it. Returns what is in use now."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return memory("VmRSS")


def main(
    method: str,
    version: str,
    prepare: Callable[[argparse.ArgumentParser], None],
    build: Callable[[np.ndarray, argparse.Namespace, int], np.ndarray],
    description: str,
    device: str = "cpu",
) -> None:
    """Parses the command line and prints a line for each build, which says that it ran on the device.

    prepare adds options. build is given vectors, options and a seed, and returns ids, n x k or more columns, -1 where
    there is none; it is called once before, so that what is compiled at first is not timed: on a GPU on all rows, since
    kernels may be chosen for their number, or a million.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("base", help="u8bin, i8bin or fbin")
    parser.add_argument("--rows", type=int, default=0, help="the first so many; 0: all")
    parser.add_argument("-k", type=int, default=32, help="neighbours beside the object itself")
    parser.add_argument("--metric", choices=["l2", "cosine"], default="l2")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--queries", type=int, default=2000, help="objects that the recall is measured on")
    parser.add_argument("--threads", type=int, default=-1, help="-1: all")
    prepare(parser)
    options = parser.parse_args()
    x = read(options.base, options.rows)
    build(x[: 5000 if device == "cpu" else WARM_UP], options, 0)
    at = sorted({1, min(10, options.k), options.k})
    for seed in range(options.repeat):
        before = reset_peak_memory()
        start = time.perf_counter()
        ids = build(x, options, seed)
        seconds = time.perf_counter() - start
        peak = memory("VmHWM") - before
        found, objects = recalls(x, ids, options.queries, at, options.metric)
        settings = {name: value for name, value in vars(options).items() if name not in ("base", "rows", "repeat")}
        print(
            json.dumps(
                {
                    "method": method,
                    "version": version,
                    "configuration": f"{method} {version}, {settings}",
                    "data": options.base.rsplit("/", 1)[-1],
                    "n": len(x),
                    "d": x.shape[1],
                    "k": options.k,
                    **found,
                    "recall_objects": objects,
                    "seconds": seconds,
                    "device": device,
                    "peak_bytes": peak,
                }
            ),
            flush=True,
        )

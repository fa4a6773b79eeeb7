#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times pynndescent on a u8bin or fbin file; prints JSON lines like build_bench's.

Usage: peer_pynndescent.py BASE [--rows N] [-k K] [--repeat R] [--queries Q] [--threads T]
"""

import argparse
import json
import time

import numpy as np
import pynndescent


def read(path, rows):
    dtype = {"u8bin": np.uint8, "i8bin": np.int8, "fbin": np.float32}[path.rsplit(".", 1)[1]]
    n, d = np.fromfile(path, np.int32, 2)
    n = min(n, rows) if rows else n
    return np.fromfile(path, dtype, n * d, offset=8).reshape(n, d).astype(np.float32)


def recall(x, ids, queries, at):
    """Recall@at over a sample, ties counted by distance, self left out on both sides."""
    rng = np.random.default_rng(1)
    sample = np.sort(rng.choice(len(x), min(queries, len(x)), replace=False))
    norms = (x * x).sum(1)
    hits = 0
    for part in np.array_split(sample, max(1, len(sample) // 500)):
        d = norms[part, None] + norms[None, :] - 2 * x[part] @ x.T
        d[np.arange(len(part)), part] = np.inf
        limit = np.partition(d, at - 1, 1)[:, at - 1]
        for row, i in enumerate(part):
            found = ids[i][ids[i] != i][:at]
            hits += int((d[row, found] <= limit[row]).sum())
    return hits / (len(sample) * at)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base")
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("-k", type=int, default=31, help="neighbours beside the object itself")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=-1)
    args = parser.parse_args()

    x = read(args.base, args.rows)
    settings = {"n_neighbors": args.k, "low_memory": True, "n_jobs": args.threads}
    pynndescent.NNDescent(x[:5000], **settings)  # compiles
    for round_ in range(args.repeat):
        start = time.perf_counter()
        index = pynndescent.NNDescent(x, random_state=round_, **settings)
        seconds = time.perf_counter() - start
        ids = index.neighbor_graph[0]
        line = {
            "method": "pynndescent",
            "configuration": f"pynndescent {pynndescent.__version__}, {settings}",
            "data": args.base.rsplit("/", 1)[-1],
            "n": len(x),
            "d": x.shape[1],
            "k": args.k,
            "recall@10": recall(x, ids, args.queries, 10),
            "seconds": seconds,
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

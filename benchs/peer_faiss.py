# SPDX-License-Identifier: MIT
"""FAISS's own construction of graph indexes, as its PyPI package does it (newer than Debian's, with AVX2 and AVX-512).

peer_faiss.py BASE [nsg] [hnsw]    BASE: u8bin. The last 1,000 rows are the queries. Prints one JSON line each.
"""

import json
import sys
import time

import faiss
import numpy as np


def main():
    path, kinds = sys.argv[1], sys.argv[2:] or ["nsg", "hnsw"]
    n, d = np.fromfile(path, np.int32, 2)
    rows = np.fromfile(path, np.uint8, offset=8).reshape(n, d).astype(np.float32)
    base, queries = rows[:-1000], rows[-1000:]
    flat = faiss.IndexFlatL2(int(d))
    flat.add(base)
    truth = flat.search(queries, 10)[0][:, -1:]
    for kind in kinds:
        if kind == "nsg":
            index = faiss.IndexNSGFlat(int(d), 32)
            index.build_type = 1  # by FAISS's NNDescent
        else:
            index = faiss.IndexHNSWFlat(int(d), 16)
        start = time.time()
        index.add(base)
        seconds = time.time() - start
        beams = []
        for beam in (16, 32, 64, 128, 256):
            if kind == "nsg":
                index.nsg.search_L = beam
            else:
                index.hnsw.efSearch = beam
            start = time.time()
            distances = index.search(queries, 10)[0]
            beams.append(
                {
                    "beam": beam,
                    "recall@10": float((distances <= truth).mean()),
                    "queries_per_second": len(queries) / (time.time() - start),
                }
            )
        print(
            json.dumps(
                {
                    "index": kind,
                    "faiss": faiss.__version__,
                    "n": len(base),
                    "seconds": seconds,
                    "threads": faiss.omp_get_max_threads(),
                    "beams": beams,
                }
            ),
            flush=True,
        )


main()

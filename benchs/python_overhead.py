# SPDX-License-Identifier: MIT
"""The time of a call from Python beside the C++ build in it, and of an import.

Usage: python_overhead.py [--device auto|cpu|cuda] [--rows N] [--dim D] [-k K] [--repeat R]   (one JSON line)
Arrays on the GPU need torch. The build's own seconds are those of its statistics.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np

import gnnd


def overhead(x: Any, repeat: int, **params: Any) -> tuple[float, float]:
    """Medians of the seconds beside the build, and of the build's."""
    beside, builds = [], []
    for _ in range(repeat):
        start = time.perf_counter()
        graph = gnnd.build(x, **params)
        seconds = time.perf_counter() - start
        beside.append(seconds - graph.stats["seconds"])
        builds.append(graph.stats["seconds"])
    return statistics.median(beside), statistics.median(builds)


def import_seconds(repeat: int) -> float:
    """The time of `import gnnd` beside that of `import numpy`, median."""
    code = "import numpy, time; t = time.perf_counter(); import gnnd; print(time.perf_counter() - t)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, check=True) for _ in range(repeat)]
    return statistics.median(float(run.stdout) for run in runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("-k", type=int, default=32)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    x = np.random.default_rng(0).integers(0, 100, size=(args.rows, args.dim), dtype=np.uint8)
    params = {"k": args.k, "device": args.device, "recall": 0, "iterations": 3}
    result: dict[str, Any] = {"rows": args.rows, "dim": args.dim, "k": args.k, "import_seconds": import_seconds(5)}
    result["host_beside"], result["host_build"] = overhead(x, args.repeat, **params)
    if args.device.startswith("cuda"):
        import torch

        on_gpu = torch.from_numpy(x).to(args.device)
        result["device_beside"], result["device_build"] = overhead(on_gpu, args.repeat, **params)
    print(json.dumps(result))


if __name__ == "__main__":
    main()

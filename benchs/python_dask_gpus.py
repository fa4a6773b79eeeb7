# SPDX-License-Identifier: MIT
"""One Dask worker for each GPU of a machine against one worker: seconds of the same build.

A set is a file of uint8 x 128: points of 65,536 clusters in 16 dimensions, widened to 128, made by blocks of rows. Sets
follow one another as long as the time allows. A small build of both, before the clock, starts workers and GPUs. Base
and graph lie in one folder: in /dev/shm where it is large enough.

    python benchs/python_dask_gpus.py [--rows 4000000 20000000 100000000] [--gpus 2] [--seconds 280] [--device cuda]
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, Nanny, Scheduler, SpecCluster

import gnnd
import gnnd.distributed

D, CLUSTERS, WITHIN, BLOCK = 128, 65_536, 16, 1_000_000
ROOM = 28  # bytes on disk for each of k neighbours of a row: lists up to three times, and local graphs


def make_base(path: Path, n: int, on_gpu: bool) -> None:
    """A u8bin file, by torch where it is to be on a GPU."""
    random = np.random.default_rng(1)
    centres = random.normal(size=(CLUSTERS, WITHIN)).astype(np.float32) * 2
    wide = random.normal(size=(WITHIN, D)).astype(np.float32) * 10
    with open(path, "wb") as file:
        file.write(struct.pack("<ii", n, D))
        for begin in range(0, n, BLOCK):
            count = min(BLOCK, n - begin)
            if on_gpu:
                import torch

                torch.manual_seed(begin)
                at = torch.randint(CLUSTERS, (count,), device="cuda")
                low = torch.from_numpy(centres).cuda()[at] + torch.randn(count, WITHIN, device="cuda")
                x = low @ torch.from_numpy(wide).cuda() + 128 + torch.randn(count, D, device="cuda") * 2
                x.clamp(0, 255).byte().cpu().numpy().tofile(file)
            else:
                low = centres[random.integers(CLUSTERS, size=count)] + random.normal(size=(count, WITHIN))
                x = low @ wide + 128 + random.normal(size=(count, D)) * 2
                np.clip(x, 0, 255).astype(np.uint8).tofile(file)
    if on_gpu:
        torch.cuda.empty_cache()


def cluster_of(gpus: list[str], device: str) -> SpecCluster:
    """A worker for each of the GPUs, which sees no other; of the CPU so many, without a resource."""
    options: list[dict[str, Any]] = [{} for _ in gpus]
    if device != "cpu":
        options = [{"resources": {"GPU": 1}, "env": {"CUDA_VISIBLE_DEVICES": gpu}} for gpu in gpus]
    here = {"host": "127.0.0.1", "memory_limit": 0}  # or Dask gives each its part of what there is by cores
    workers = {
        f"gpu{i}": {"cls": Nanny, "options": {**here, "nthreads": 1, "silence_logs": 40, **one}}
        for i, one in enumerate(options)
    }
    return SpecCluster(workers, {"cls": Scheduler, "options": {**here, "dashboard_address": ":0"}}, silence_logs=40)


def build(client: Client, base: Path, folder: Path, given: argparse.Namespace) -> tuple[float, float, float]:
    """Seconds, GB that were moved, and the recall."""
    work, moved = folder / "work", [0.0]
    began = time.perf_counter()
    graph = gnnd.distributed.build(
        base,
        work,
        given.k,
        shards=given.shards,
        client=client,
        device=given.device,
        threads=given.threads,
        progress=lambda told: moved.append(told["bytes"] / 1e9),
    )
    seconds = time.perf_counter() - began
    recall = graph.recall if graph is not None and graph.recall is not None else float("nan")
    del graph
    shutil.rmtree(work)
    return seconds, moved[-1], recall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[4_000_000, 20_000_000, 100_000_000])
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=280, help="in which all is to end")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--threads", type=int, default=0, help="of each worker; 0: its part of the machine's")
    for name, standard in (("shards", 8), ("k", 32)):
        parser.add_argument(f"--{name}", type=int, default=standard)
    parser.add_argument("--work", default=None, help="folder; one in /dev/shm or of the system's temporary ones")
    given = parser.parse_args()
    given.threads = given.threads or max(1, len(os.sched_getaffinity(0)) // given.gpus)
    started = time.perf_counter()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what is done is told, and the folder deleted
    large = shutil.disk_usage("/dev/shm").free > 20_000_000 * (D + ROOM * given.k)
    folder = Path(tempfile.mkdtemp(dir=given.work or ("/dev/shm" if large else None)))
    print(
        f"in {folder}, {shutil.disk_usage(folder).free / 1e9:.0f} GB free; {given.threads} threads a worker", flush=True
    )
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpus = (visible.split(",") if visible else [str(i) for i in range(given.gpus)])[: given.gpus]
    lines, expected = ["| rows | workers | seconds | GB moved | recall | times |", "|---|---|---|---|---|---|"], 0.0
    before = 0
    try:
        with (
            cluster_of(gpus, given.device) as many,
            cluster_of(gpus[:1], given.device) as single,
            Client(many) as by_many,
            Client(single) as by_one,
        ):
            base = folder / "base.u8bin"
            make_base(base, given.rows[0] // 20, False)
            for client in (by_many, by_one):
                build(client, base, folder, given)
            for n in given.rows:
                left = given.seconds - (time.perf_counter() - started)
                free = shutil.disk_usage(folder).free
                # Both builds of the size before, times how much larger this one is, and some to make the base.
                if before and expected * n / before * 1.15 > left:
                    print(f"{n} rows would not fit the {left:.0f} s that are left")
                    break
                if n * (D + ROOM * given.k) > free:
                    print(f"{n} rows would not fit the {free / 1e9:.0f} GB that are free")
                    break
                begin = time.perf_counter()
                make_base(base, n, given.device != "cpu")
                print(f"{n} rows made in {time.perf_counter() - begin:.1f} s", flush=True)
                one = 0.0
                for workers, client in ((1, by_one), (len(gpus), by_many)):
                    seconds, moved, recall = build(client, base, folder, given)
                    one = one or seconds
                    times = f"{one / seconds:.2f}"
                    lines.append(f"| {n} | {workers} | {seconds:.2f} | {moved:.1f} | {recall:.4f} | {times} |")
                    print(lines[-1], flush=True)
                before, expected = n, time.perf_counter() - begin
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        print(f"\n{time.perf_counter() - started:.0f} s in all\n" + "\n".join(lines), flush=True)


if __name__ == "__main__":
    main()

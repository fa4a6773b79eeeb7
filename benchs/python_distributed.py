# SPDX-License-Identifier: MIT
"""The cost of an engine: one base by gnnd.build_sharded(), by processes of `gnnd worker`, and on Dask, in turn.

Each way's wall-clock time and processor time, of all its processes, and the recall that it has measured. Each has new
processes, which are started before the clock: Python's start and imports are not counted, but memory never used before
is, for all of them. The base is in the page cache.

    python benchs/python_distributed.py [--rows 200000] [--shards 8] [--processes 4] [--repeat 3] [--work DIR]
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gnnd
import gnnd.distributed


def make_base(path: Path, n: int) -> None:
    """uint8 x 128, a mixture of 200 Gaussians of 16 dimensions that lie in 128."""
    random = np.random.default_rng(1)
    low = random.normal(size=(200, 16))[random.integers(200, size=n)] * 2 + random.normal(size=(n, 16))
    wide = low @ random.normal(size=(16, 128)) * 6 + 128 + random.normal(size=(n, 128)) * 2
    np.save(path, np.clip(wide, 0, 255).astype(np.uint8))


def processor_seconds(who: int = resource.RUSAGE_SELF) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def as_worker(work: Path) -> None:
    gnnd.distributed.work(work, device="cpu", threads=1)


def as_one(base: Path, work: Path, k: int, shards: int, workers: int) -> None:
    gnnd.build_sharded(base, work, k, shards=shards, device="cpu", workers=workers)


def timed(action: Callable[..., None], arguments: tuple[Any, ...], start: Any, ended: Any) -> None:
    start.wait()
    before = processor_seconds()
    action(*arguments)
    ended.put(processor_seconds() - before)


def in_processes(
    count: int, action: Callable[..., None], *arguments: Any, before: Callable[[], object] = lambda: None
) -> tuple[float, float]:
    """New ones, since memory that a process has had before costs it nothing. `before` is called here and counts."""
    context = multiprocessing.get_context("spawn")
    start, ended = context.Barrier(count + 1), context.Queue()
    processes = [context.Process(target=timed, args=(action, arguments, start, ended)) for _ in range(count)]
    for one in processes:
        one.start()
    time.sleep(3)  # until all of them wait
    own, began = processor_seconds(), time.perf_counter()
    before()
    start.wait()
    used = [ended.get() for _ in processes]
    seconds, own = time.perf_counter() - began, processor_seconds() - own
    for one in processes:
        one.join()
    return seconds, sum(used) + own


def by_workers(base: Path, work: Path, k: int, shards: int, processes: int) -> tuple[float, float]:
    begin = functools.partial(gnnd.distributed.start, base, work, k, shards=shards)
    return in_processes(processes, as_worker, work, before=begin)


def by_one(base: Path, work: Path, k: int, shards: int, processes: int) -> tuple[float, float]:
    return in_processes(1, as_one, base, work, k, shards, min(processes, os.cpu_count() or 1))


def by_dask(base: Path, work: Path, k: int, shards: int, processes: int, profiler: bool = True) -> tuple[float, float]:
    """Of workers that Dask's profiler looks at 100 times a second, which is its default, or does not."""
    import dask
    from distributed import Client, LocalCluster

    with (
        dask.config.set({"distributed.worker.profile.enabled": profiler}),
        LocalCluster(n_workers=processes, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.run(__import__, "gnnd.distributed")
        before = sum(client.run(processor_seconds).values()) + processor_seconds()
        began = time.perf_counter()
        gnnd.distributed.build(base, work, k, shards=shards, client=client, device="cpu", threads=1)
        seconds = time.perf_counter() - began
        return seconds, sum(client.run(processor_seconds).values()) + processor_seconds() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, standard in (("rows", 200_000), ("shards", 8), ("processes", 4), ("repeat", 3), ("k", 32)):
        parser.add_argument(f"--{name}", type=int, default=standard)
    parser.add_argument("--work", default=None, help="folder; one of the system's temporary ones")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=given.work))
    ways: dict[str, Callable[..., tuple[float, float]]] = {
        "gnnd.build_sharded": by_one,
        f"{given.processes} of gnnd worker": by_workers,
        f"{given.processes} of Dask": by_dask,
        f"{given.processes} of Dask, no profiler": functools.partial(by_dask, profiler=False),
    }
    try:
        make_base(folder / "base.npy", given.rows)
        print("| | wall-clock s | processor s | recall |\n|---|---|---|---|")
        for _ in range(given.repeat):
            for name, way in ways.items():
                work = folder / "work"
                wall, processor = way(folder / "base.npy", work, given.k, given.shards, given.processes)
                graph = gnnd.load(work)
                print(f"| {name} | {wall:.2f} | {processor:.2f} | {graph.recall:.4f} |", flush=True)
                shutil.rmtree(work)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

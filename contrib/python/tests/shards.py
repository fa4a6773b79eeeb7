# SPDX-License-Identifier: MIT
"""Builds by several processes, for the tests: data, workers, and what a finished folder must hold."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import gnnd
import gnnd.distributed
from conftest import check_graph, clustered, recall_of
from gnnd.distributed._base import open_base
from gnnd.distributed._plan import read_plan
from gnnd.distributed._storage import Folder
from gnnd.distributed._tasks import Carrier

K = 8
LEASE = 0.6
PATIENCE = 900  # seconds for what takes some, on machines on which much else goes on, too


def make_base(folder: Path, n: int = 600, d: int = 12) -> Path:
    path = folder / "base.npy"
    np.save(path, clustered(n, d))
    return path


def make_flat_base(folder: Path, n: int = 2400, d: int = 12) -> Path:
    """Of few degrees of freedom, so that each part of the space borders on few others."""
    random = np.random.default_rng(n)
    path = folder / "base.npy"
    np.save(path, (random.normal(size=(n, 2)) @ random.normal(size=(2, d))).astype(np.float32))
    return path


def carrier(base: Path, work: Path) -> Carrier:
    """The hands of a worker that does what a test tells it, with one thread."""
    plan = read_plan(Folder(work))
    assert plan is not None
    return Carrier(Folder(work), plan, open_base(base), "cpu", 1)


def worker(work: Path, *options: object) -> subprocess.Popen[str]:
    """A process that works there with one thread."""
    command = [sys.executable, "-m", "gnnd", "worker", work, "--lease", LEASE, "--threads", 1, *options]
    return subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True, env=dict(os.environ))


def finish_with_kills(work: Path, chance: random.Random, most: int) -> int:
    """Three workers at a time, until the graph is finished: at random moments one is killed, and another comes. Who is
    not killed ends well.

    :param most: kill so many at most; then one is waited for instead
    :return: how many were killed
    """
    workers: list[subprocess.Popen[str]] = []
    killed = 0
    while not (work / "manifest.json").exists():
        workers += [worker(work) for _ in range(3 - len(workers))]
        time.sleep(chance.uniform(0.1, 0.9))
        victim = workers.pop(chance.randrange(3))
        if killed < most and victim.poll() is None:
            victim.kill()
            killed += 1
        told = victim.communicate(timeout=PATIENCE)[1]
        assert victim.returncode in (0, -signal.SIGKILL), told
    for one in workers:
        assert one.stderr is not None
        assert one.wait(timeout=PATIENCE) == 0, one.stderr.read()
        one.stderr.close()
    return killed


def flip_a_bit_in_each(work: Path, chance: random.Random) -> int:
    """In every object of the build but its plan. :return: how many there are"""
    altered = [path for path in work.rglob("*") if path.is_file() and path.name not in ("lock", "build.json")]
    for path in altered:
        data = bytearray(path.read_bytes())
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
    return len(altered)


def check_finished(work: Path, base: Path, metric: str = "l2", at_least: float = 0.985) -> gnnd.ShardedGraph:
    """The graph follows the invariants, its recall is what it says, and nothing else is left."""
    x = np.load(base)
    graph = gnnd.load(work)
    assert isinstance(graph, gnnd.ShardedGraph)
    whole = graph.to_graph()
    check_graph(whole, x, metric)
    found = recall_of(whole, x, metric, min(10, graph.k))
    assert found >= at_least
    assert graph.recall is None or abs(graph.recall - found) < 0.02
    files = {path.name for path in work.rglob("*") if path.is_file()}
    assert len(files) == graph.shards + 2 and {"manifest.json", "lock"} < files
    return graph


def begin(folder: Path, shards: int = 4, n: int = 600) -> tuple[Path, Path]:
    """A build in shards that nobody works on yet: its base, and where it is."""
    base, work = make_base(folder, n), folder / "work"
    gnnd.distributed.start(base, work, K, shards=shards)
    return base, work


def do_some(hands: Carrier, tasks: int) -> None:
    """So many tasks, each the first that is ready."""
    for _ in range(tasks):
        hands.do(hands.records.state().ready()[0])

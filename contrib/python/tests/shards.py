# SPDX-License-Identifier: MIT
"""Builds by several processes, for the tests: data, workers, and what a finished folder must hold."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import gnnd
from conftest import check_graph, clustered, recall_of
from gnnd.distributed._base import open_base
from gnnd.distributed._plan import read_plan
from gnnd.distributed._storage import Folder
from gnnd.distributed._tasks import Carrier

K = 8
LEASE = 0.6


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

# SPDX-License-Identifier: MIT
"""Data and checks that the tests share."""

from __future__ import annotations

import os
import threading
from pathlib import Path

# Threads that wait give way to those of other tests at the same time; read when gnnd is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np  # noqa: E402
import pytest  # noqa: E402

import gnnd  # noqa: E402


@pytest.hookimpl(tryfirst=True)  # before marks choose
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.stem.endswith("_faults"):
            item.add_marker("disturbed")


def clustered(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Gaussian vectors around 20 centres: float32."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(20, d)) * 3
    return (centres[random.integers(20, size=n)] + random.normal(size=(n, d))).astype(np.float32)


def values(x: np.ndarray, metric: str) -> np.ndarray:
    """The metric's value of every pair, in float64: n x n."""
    x = x.astype(np.float64)
    if metric == "cosine":
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
    if metric in ("ip", "cosine"):
        return x @ x.T
    if metric == "l2":
        squares = (x**2).sum(1)
        return np.maximum(squares[:, None] + squares[None, :] - 2 * (x @ x.T), 0)
    difference = np.abs(x[:, None, :] - x[None, :, :])
    if metric == "l1":
        return difference.sum(2)
    if metric == "linf":
        return difference.max(2)
    assert metric == "chi2"
    total = x[:, None, :] + x[None, :, :]
    return np.divide(difference**2, total, out=np.zeros_like(difference), where=total > 0).sum(2)


def check_graph(graph, x: np.ndarray, metric: str, tolerance: float = 1e-4) -> None:
    """The invariants of every graph, the values computed anew."""
    n, k = graph.n, graph.k
    ids, distances = np.asarray(graph.ids), np.asarray(graph.distances)
    assert ids.shape == distances.shape == (n, k)
    assert ids.dtype == np.int32 and distances.dtype == np.float32
    best_first = -distances if metric in ("ip", "cosine") else distances
    assert (np.diff(best_first[:, : min(k, n - 1)], axis=1) >= 0).all()
    expected = values(x, metric)
    for i, row in enumerate(ids):
        found = row[row >= 0]
        assert len(found) == min(k, n - 1) and (row[len(found) :] == -1).all()
        assert np.isinf(distances[i, len(found) :]).all()
        assert i not in found and len(set(found)) == len(found) and found.max(initial=0) < n
        np.testing.assert_allclose(distances[i, : len(found)], expected[i, found], rtol=tolerance, atol=tolerance)


def recall_of(graph, x: np.ndarray, metric: str, at: int) -> float:
    """By brute force; ties count whichever of them was taken."""
    expected = values(x, metric) * (-1 if metric in ("ip", "cosine") else 1)
    np.fill_diagonal(expected, np.inf)
    last = np.sort(expected, axis=1)[:, at - 1]
    found = np.take_along_axis(expected, np.asarray(graph.ids)[:, :at], axis=1)
    return float((found <= last[:, None] * (1 + 1e-5 * np.sign(last[:, None])) + 1e-6).mean())


def stop_after_two_tasks(x: np.ndarray, work: Path, k: int) -> None:
    """Builds x in three shards and ends that after two tasks. Whoever reads the last shard waits for it: progress is
    told by a thread of its own, which may come late, and then of more tasks."""
    stopped = threading.Event()

    def read(first: int, count: int) -> np.ndarray:
        a_shard = count > 1 and threading.current_thread() is not threading.main_thread()
        if a_shard and first + count == len(x):
            stopped.wait(600)
        return x[first : first + count]

    def stop(record: dict) -> None:
        if record["tasks_done"] >= 2:
            stopped.set()
            raise InterruptedError("later")

    of = {"shape": x.shape, "dtype": x.dtype, "k": k, "shards": 3, "checkpoint_seconds": 0}
    with pytest.raises(InterruptedError, match="later"):
        gnnd.build_sharded(read, work, **of, progress=stop)


@pytest.fixture(scope="session")
def x() -> np.ndarray:
    return clustered(1200, 12)


class CudaArray:
    """An array with the CUDA array interface alone; its memory is not a GPU's. :param changes: of what it says"""

    def __init__(self, x, **changes):
        self._x = x
        self.__cuda_array_interface__ = {
            "shape": x.shape,
            "typestr": x.dtype.str,
            "data": (x.ctypes.data, False),
            "version": 3,
            "strides": None,
            "stream": None,
            **changes,
        }

# SPDX-License-Identifier: MIT
"""Graphs and vectors in files, and graphs of more vectors than fit into memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from . import _native
from ._arrays import dtype_name, on_host, vectors
from ._graph import Graph, Measured, graph_of, recall_of, require_graph
from ._paths import Path, existing, path_of
from ._process import named
from ._progress import Progress, shown

_NUMPY = {"f32": "float32", "f16": "float16", "u8": "uint8", "i8": "int8", "i32": "int32"}


class ShardedGraph(Measured):
    """A finished graph in shards, read row by row: ``graph[begin:end]``, ``graph[i]`` and :meth:`read`. Its ids are
    int64. Use :func:`gnnd.load`."""

    def __init__(self, path: Path) -> None:
        self._path = os.path.abspath(path_of(path))
        self._native = _native.ShardedGraph(self._path)
        self._about = self._native.about()
        self._recall = recall_of(self._about["recall"])

    @property
    def n(self) -> int:
        return self._native.n

    @property
    def k(self) -> int:
        return self._native.k

    @property
    def shards(self) -> int:
        return self._native.shards

    @property
    def metric(self) -> str:
        return str(self._about["metric"])

    @property
    def base(self) -> str:
        """The file of vectors, by the path under which it was last built from; empty where a function gave them."""
        return self._native.base_path

    def read(self, begin: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        """ids and distances of rows [begin, begin + count)."""
        begin, count = _native.whole("begin", begin), _native.whole("count", count)
        if not 0 <= begin <= begin + count <= self.n:
            raise IndexError(f"rows {begin} to {begin + count} of a graph of {self.n}")
        ids, distances = np.empty((count, self.k), np.int64), np.empty((count, self.k), np.float32)
        self._native.read(begin, count, ids.ctypes.data, distances.ctypes.data)
        return ids, distances

    def __getitem__(self, rows: int | slice) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(rows, slice):
            begin, end, step = rows.indices(self.n)
            if step != 1:
                raise ValueError("rows are read one behind the other: a step of 1")
            return self.read(begin, max(end - begin, 0))
        if not hasattr(rows, "__index__"):
            raise TypeError(f"rows are a number or a slice, not {type(rows).__name__}")
        ids, distances = self.read(range(self.n)[rows], 1)
        return ids[0], distances[0]

    def to_graph(self) -> Graph:
        """All of it in memory."""
        ids, distances = self.read(0, self.n)
        return graph_of(
            ids,
            distances,
            self.metric,
            stats={},
            base=self._about["base"],
            dtype=self._about["dtype"],
            recall=self._about["recall"] or {},
        )

    def save(self, path: Path) -> None:
        """Writes all of it to one graph file, in 32 MiB of memory."""
        self._native.write(path_of(path))

    def __reduce__(self) -> Any:
        return load, (self._path,)  # which is where the graph is

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        measured = "recall not measured" if self.measured is None else str(self.measured)
        return f"ShardedGraph({self.n} x {self.k} in {self.shards} shards, {self.metric}, {measured})"


def load(path: Path) -> Graph | ShardedGraph:
    """Reads a graph file, every byte of which is verified, or opens the folder of a graph in shards.

    :raises FileNotFoundError, OSError: missing, truncated, altered, of another kind
    """
    name = existing(path)
    if _native.ShardedGraph.is_one(name):
        return ShardedGraph(name)
    (ids, distances), about = _native.load(name)
    return graph_of(
        ids,
        distances,
        about["metric"],
        stats={},
        base=about["base"],
        dtype=about["dtype"],
        recall=about["recall"] or {},
    )


def save(graph: Graph | ShardedGraph, path: Path) -> None:
    """Writes a graph file: see :meth:`Graph.save`."""
    (graph if isinstance(graph, ShardedGraph) else require_graph(graph)).save(path)


def read_vectors(path: Path) -> np.ndarray:
    """The vectors, or ids, of a file: fvecs, bvecs, ivecs, fbin, f16bin, bf16bin, u8bin, i8bin, ibin or npy.

    :raises ValueError: for float64, where float32 lacks the digits by which the vectors differ
    """
    name = existing(path)
    rows, columns, dtype = _native.shape_of_file(name)
    if dtype == "bf16":
        import ml_dtypes

        numpy_dtype = np.dtype(ml_dtypes.bfloat16)
    else:
        numpy_dtype = np.dtype(_NUMPY[dtype])
    out = np.empty((rows, columns), numpy_dtype)
    _native.read_vectors(name, _native.Array(out, out.ctypes.data, rows, columns, out.strides[0], dtype))
    return out


def build_sharded(
    base: Path | Callable[[int, int], Any],
    work: Path,
    k: int = 32,
    metric: str = "l2",
    *,
    recall: float = 0.99,
    device: Any = "auto",
    shards: int = 0,
    plan: str = "all",
    resume: bool = False,
    host_memory: int | str = 0,
    checkpoint_seconds: float = 60,
    id_bytes: int = 0,
    devices: Any = (),
    workers: int = 0,
    shape: tuple[int, int] | None = None,
    dtype: Any = None,
    progress: bool | Progress | None = None,
    **params: Any,
) -> ShardedGraph:
    """Builds the graph of vectors that need not fit into memory, in shards that are merged pair by pair.

    :param base: file of vectors; or a function of ``(first, count)`` that gives rows [first, first + count), as any
        array that :func:`gnnd.build` takes: the same ones whenever it is asked, which several threads may do at a time
    :param work: folder that becomes the graph; what is durable there survives whatever ends the call
    :param shards: 0: as few as there is memory for
    :param plan: ``"all"`` merges every pair; ``"near"`` cuts shards by a partition of the space and merges those near
        each other, until ``recall`` is reached; vectors then have a copy in ``work`` until all is merged
    :param resume: go on with what an earlier call has left in the folder, of the same vectors
    :param host_memory: most bytes to take, as an int or as "8GiB"; 0: three quarters of the machine's
    :param checkpoint_seconds: results become durable so often; ``math.inf``: finished lists alone
    :param id_bytes: of an id in the graph's files, 4, of up to 2^31 - 1 vectors, or 8; 0: as few as there must be
    :param devices: one of them or several, a worker for each; workers: so many, sharing the devices
    :param shape: n and d of a function's rows
    :param dtype: of a function's rows: float32, float16, bfloat16, uint8 or int8
    :param params: as for :func:`gnnd.build`
    :raises TypeError: for a function without shape and dtype, and a file with one of them
    :raises ValueError: where the function gives rows of another shape or type; what it raises comes as it is; of a file
        as for :func:`read_vectors`
    """
    if callable(base) != (shape is not None) or callable(base) != (dtype is not None):
        raise TypeError("shape and dtype are those of a function's rows, which needs both; a file tells its own")
    shard_params = {
        "work": path_of(work, "work"),
        "shards": shards,
        "plan": plan,
        "resume": resume,
        "host_memory": host_memory,
        "checkpoint_seconds": checkpoint_seconds,
        "id_bytes": id_bytes,
        "workers": workers,
        "devices": [named(one) for one in _several(devices)],
    }
    build_params = {"k": k, "metric": metric, "recall": recall, "device": named(device), **params}
    with shown(progress, "gnnd.build_sharded") as report:
        if callable(base):
            n, d = _checked_shape(shape)
            name = dtype_name(dtype)
            _native.build_sharded_by(n, d, name, _reader(base), build_params, shard_params, report)
        else:
            _native.build_sharded(existing(base, "base"), build_params, shard_params, report)
    return ShardedGraph(work)


def _reader(base: Callable[[int, int], Any]) -> Callable[[int, int], _native.Array]:
    """The function's rows as the native side reads them; it finds out whether they are those asked for."""

    def read(first: int, count: int) -> _native.Array:
        return on_host(vectors(base(first, count), name=f"base({first}, {count})")).native

    return read


def _several(devices: Any) -> list[Any]:
    """Devices, of which one need be in no list."""
    return [devices] if isinstance(devices, str) or not isinstance(devices, Iterable) else list(devices)


def _checked_shape(shape: Any) -> tuple[int, int]:
    try:
        n, d = shape
    except (TypeError, ValueError):
        raise TypeError(f"shape must be n and d of the rows, not {shape!r}") from None
    return _native.whole("n", n), _native.whole("d", d)

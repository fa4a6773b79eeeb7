# SPDX-License-Identifier: MIT
"""The k-NN graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from . import _native
from ._arrays import Vectors, vectors
from ._device_array import LEGACY_STREAM, DeviceArray
from ._paths import Path, path_of


class Recall(NamedTuple):
    """The recall of a graph, measured on a sample of its objects."""

    value: float  #: mean share of the true nearest `at` that the objects have
    low: float  #: of the 95% interval
    high: float  #: of the 95% interval
    at: int  #: nearest neighbours that count
    objects: int  #: in the sample

    def __str__(self) -> str:
        half = max(self.high - self.value, self.value - self.low)
        return f"Recall@{self.at} {self.value:.4f} +- {half:.4f}, measured on {self.objects:,} objects"


def recall_of(report: Mapping[str, Any] | None) -> Recall | None:
    if not report or "recall" not in report:
        return None
    return Recall(*(report[name] for name in ("recall", "recall_low", "recall_high", "recall_at", "recall_objects")))


class Measured:
    """A graph that knows its recall, or None where none was measured."""

    _recall: Recall | None

    @property
    def recall(self) -> float | None:
        """The recall that the build measured, None where it measured none. See also :attr:`measured`."""
        return None if self._recall is None else self._recall.value

    @property
    def recall_interval(self) -> tuple[float, float] | None:
        """The 95% interval of the recall."""
        return None if self._recall is None else (self._recall.low, self._recall.high)

    @property
    def measured(self) -> Recall | None:
        """The recall with all that is known of its measurement."""
        return self._recall


class Graph(Measured):
    """The k nearest neighbours of each of n vectors, and how good they are.

    ``ids`` (int32) and ``distances`` (float32) are n x k, each row sorted best first. A row holds neither the object
    itself nor an id twice; where there are fewer than k other objects it ends with -1, at distance +inf (-inf for
    similarities). For "l2" distances are squared, as in FAISS; "ip" and "cosine" are similarities, larger is nearer.

    :param ids: n x k, int32 or int64, -1 where there is no neighbour
    :param distances: n x k, the metric's values, of any type of numbers; float32 must hold them
    :param metric: of the distances, one of ``gnnd.metrics``
    """

    ids: np.ndarray | DeviceArray
    distances: np.ndarray | DeviceArray

    def __init__(self, ids: Any, distances: Any, metric: str = "l2") -> None:
        if metric not in _native.metrics:
            raise ValueError(f"unknown metric '{metric}'; known are {', '.join(_native.metrics)}")
        if not isinstance(ids, DeviceArray):
            ids = checked_ids(ids)
        if not isinstance(distances, DeviceArray):
            distances = checked_distances(distances)
        if ids.shape != distances.shape:
            raise ValueError(f"ids are of shape {ids.shape}, distances of {distances.shape}")
        self.ids, self.distances, self.metric = ids, distances, metric
        #: What the build reports: why it stopped, seconds, choices, a record per iteration; empty for other graphs.
        self.stats: dict[str, Any] = {}
        self._recall = None
        self._base: tuple[int, int, str, int] | None = None
        self._dtype = "f32"

    @property
    def n(self) -> int:
        """Rows, one for each vector."""
        return int(self.ids.shape[0])

    @property
    def k(self) -> int:
        """Entries of a row."""
        return int(self.ids.shape[1])

    def on_host(self) -> Graph:
        """This graph with its arrays in host memory: itself, where they lie there."""
        return self._on_host(LEGACY_STREAM)

    def _on_host(self, stream: int) -> Graph:
        """The same, in order with a stream."""
        if not isinstance(self.ids, DeviceArray) and not isinstance(self.distances, DeviceArray):
            return self
        ids, distances = (
            array.numpy(stream=stream) if isinstance(array, DeviceArray) else array
            for array in (self.ids, self.distances)
        )
        graph = Graph(ids, distances, self.metric)
        graph.stats, graph._recall, graph._base, graph._dtype = self.stats, self._recall, self._base, self._dtype
        return graph

    def save(self, path: Path, base: Any = None) -> None:
        """Writes a graph file, which `gnnd info`, `gnnd eval` and `gnnd.load` read. It appears whole or not at all.

        :param base: the vectors that the graph was built from. Graphs that were built from arrays on the host know
            them; for others the file can tell them from other vectors only with this.
        :raises OSError: when it cannot be written, ValueError for vectors that are not as many as rows
        """
        known = self._base if base is None else _native.identify(_host_vectors(base).native)
        recall = None if self._recall is None else report_of(self._recall)
        _native.save(path_of(path), self.on_host()._parts(), self._dtype if known is None else known[2], known, recall)

    def _parts(self) -> tuple[_native.Array, _native.Array, str]:
        """The graph as the native functions take it."""
        return _view_of(self.ids, "i32"), _view_of(self.distances, "f32"), self.metric

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        measured = "recall not measured" if self._recall is None else str(self._recall)
        return f"Graph({self.n} x {self.k}, {self.metric}, {measured})"


def require_graph(graph: Any, name: str = "graph") -> Graph:
    """:raises TypeError: for what is no graph in memory"""
    if not isinstance(graph, Graph):
        whole = "; its to_graph() is one" if hasattr(graph, "to_graph") else ""
        raise TypeError(f"{name} must be a gnnd.Graph, not {type(graph).__name__}{whole}")
    return graph


def checked_ids(ids: Any, name: str = "ids", dimensions: int = 2) -> np.ndarray:
    """Ids as the native functions take them: int32, in C order."""
    _require_unmasked(ids, name)
    array = np.asarray(ids)
    if array.ndim != dimensions:
        raise ValueError(f"{name} have {array.ndim} dimensions, not {dimensions}")
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name} are of {array.dtype}; they are whole numbers")
    if array.dtype != np.int32 and array.size and (array.min() < -1 or array.max() > np.iinfo(np.int32).max):
        raise ValueError(f"{name} out of -1 to 2,147,483,647")
    return np.ascontiguousarray(array, dtype=np.int32)


def checked_distances(distances: Any) -> np.ndarray:
    """Distances as the native functions take them: float32, in C order."""
    _require_unmasked(distances, "distances")
    array = np.asarray(distances)
    if array.dtype.kind not in "fiu" and array.dtype.name != "bfloat16":
        raise TypeError(f"distances are of {array.dtype}; they are numbers")
    with np.errstate(over="ignore"):
        narrow = np.ascontiguousarray(array, dtype=np.float32)
    if array.dtype.itemsize > 4 and not np.array_equal(np.isinf(narrow), np.isinf(array)):
        raise ValueError("distances beyond what float32 holds")
    return narrow


def _require_unmasked(array: Any, name: str) -> None:
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name} are a masked array; they are all there, and id -1 where there is no neighbour")


def _view_of(array: np.ndarray | DeviceArray, dtype: str) -> _native.Array:
    return array._view() if isinstance(array, DeviceArray) else _matrix(array, dtype)


def _matrix(array: np.ndarray, dtype: str) -> _native.Array:
    kind, wanted = {"i32": ("ids", np.int32), "f32": ("distances", np.float32)}[dtype]
    _require_unmasked(array, kind)
    if not isinstance(array, np.ndarray) or array.dtype != wanted or array.ndim != 2:
        found = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        raise TypeError(
            f"the {kind} of a graph must stay {np.dtype(wanted)}, n x k, not {found}; gnnd.Graph() converts"
        )
    if not array.flags.c_contiguous:
        raise ValueError("the arrays of a graph must stay contiguous")
    return _native.Array(
        array, array.ctypes.data, array.shape[0], array.shape[1], array.shape[1] * array.itemsize, dtype
    )


def _host_vectors(x: Any) -> Vectors:
    given = vectors(x)
    if given.device >= 0:
        raise ValueError("the vectors lie on a GPU; their identity is taken of a copy on the host")
    return given


def report_of(recall: Recall) -> dict[str, Any]:
    return {
        "recall": recall.value,
        "recall_low": recall.low,
        "recall_high": recall.high,
        "recall_at": recall.at,
        "recall_objects": recall.objects,
    }


def graph_of(
    ids: Any,
    distances: Any,
    metric: str,
    *,
    stats: dict[str, Any],
    base: tuple[int, int, str, int] | None,
    dtype: str,
    recall: dict[str, Any] | None = None,
) -> Graph:
    """A graph with all that its build, or its file, tells of it."""
    graph = Graph(ids, distances, metric)
    graph.stats, graph._base, graph._dtype = stats, base, dtype
    graph._recall = recall_of(stats if recall is None else recall)
    return graph

# SPDX-License-Identifier: MIT
"""Calls of native functions: where their arrays lie, on which stream they work, and where their graphs go."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import _native
from ._allocators import Allocator, allocator_of
from ._arrays import Vectors, place_of, vectors
from ._device_array import LEGACY_STREAM, DeviceArray
from ._digits import moved_warning
from ._graph import Graph, graph_of, require_graph
from ._process import named
from ._progress import Progress, shown


class Call:
    """A call: where its arrays lie, and what of it is no parameter of the builders."""

    def __init__(
        self,
        name: str,
        progress: bool | Progress | None,
        allocator: str | Allocator | None,
        stream: Any,
        **arrays: Any,
    ) -> None:
        self.name, self._progress, self._arrays = name, progress, arrays
        #: The vectors taken so far: how many, and those of float64, which were converted.
        self._parts: dict[str, tuple[int, np.ndarray | None]] = {}
        self.place = place_of(stream, **arrays)
        self.allocator = allocator_of(allocator)
        #: Of the work; 0: one of the build's own, which allocators know nothing of.
        self.stream = self.place.stream or (0 if self.allocator is None else LEGACY_STREAM)

    def vectors(self, name: str) -> Vectors:
        """Those of an array, in order with the call's stream."""
        given = vectors(self._arrays[name], stream=self.stream, name=name)
        self._parts[name] = given.n, given.wide
        return given

    def params(self, device: Any, given: dict[str, Any], **own: Any) -> dict[str, Any]:
        """As the native functions take them. Arrays on a GPU are worked on there.

        :param own: that the function's arguments, or its graph, decide
        """
        if twice := own.keys() & given.keys():
            raise TypeError(f"gnnd.{self.name}() takes no {' and no '.join(sorted(twice))}: its arguments tell it")
        if self.place.gpu >= 0 and str(device) in ("auto", "cuda"):
            device = f"cuda:{self.place.gpu}"
        return {**own, **given, "device": named(device)}

    @contextmanager
    def run(self, arrays: list[DeviceArray] | None = None) -> Iterator[_native.Run]:
        """As the native functions take it; the progress is shown meanwhile."""
        with shown(self._progress, f"gnnd.{self.name}") as report:
            out = None if arrays is None else [array._view() for array in arrays]
            yield _native.Run(out, self.place.gpu, self.stream, self.allocator, report)

    def graph(self, params: dict[str, Any], n: int, native: Any, *arguments: Any, stays: bool = True) -> Graph:
        """Calls the native function: the graph goes to the GPU that holds arrays of the call, if it stays there."""
        arrays = None
        if self.place.gpu >= 0 and stays:
            k = _native.whole("k", params["k"], 1)
            arrays = [
                DeviceArray(self.place.gpu, (n, k), dtype, self.allocator, self.stream) for dtype in ("i32", "f32")
            ]
        with self.run(arrays) as run:
            new, stats, base = native(*arguments, run)
        told = [_native.unresolved_warning(stats.get("unresolved", 0), params["metric"])]
        if arrays is None:
            ids, distances = new
            at = _native.recall_at(params)
            told.append(moved_warning(ids, distances, params["metric"], at, self._parts))
        else:
            ids, distances = arrays
        for warning in filter(None, told):
            warnings.warn(warning, RuntimeWarning, stacklevel=3)
        first = next(argument for argument in arguments if isinstance(argument, _native.Array))
        return graph_of(ids, distances, params["metric"], stats=stats, base=base, dtype=first.dtype)


def call_of_graph(
    name: str, graph: Graph, *, device: Any = "auto", stream: Any = None, allocator: Any = None
) -> tuple[Any, str, Call]:
    """A graph's arrays, the device and the call of an operation on it. With device="cpu" it comes to the host."""
    call = Call(name, None, allocator, stream, **arrays_of(graph=graph))
    if str(device) == "cpu" and call.place.gpu >= 0:
        graph = graph._on_host(call.stream)
        call = Call(name, None, allocator, None)
    if str(device) == "auto" and call.place.gpu < 0:
        device = "cpu"
    return graph._parts(), call.params(device, {})["device"], call


def arrays_of(**graphs: Graph) -> dict[str, Any]:
    """The arrays of graphs by their names. :raises TypeError: for what is no graph, or no longer one"""
    for name, graph in graphs.items():
        require_graph(graph, name)._parts()
    return {
        f"{name}.{kind}": array
        for name, graph in graphs.items()
        for kind, array in (("ids", graph.ids), ("distances", graph.distances))
    }

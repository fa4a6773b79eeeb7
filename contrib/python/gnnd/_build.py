# SPDX-License-Identifier: MIT
"""Builds, merges and measurements."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

import numpy as np

from . import _native
from ._allocators import Allocator, allocator_of
from ._arrays import LEGACY_STREAM, Vectors, on_host, vectors
from ._device_array import DeviceArray
from ._graph import Graph, Recall, checked_ids, graph_of, recall_of
from ._progress import Progress, shown


class _How(NamedTuple):
    """What of a call is no parameter of the builders."""

    progress: bool | Progress | None
    allocator: str | Allocator | None

    def memory(self, given: Vectors) -> tuple[Allocator | None, int]:
        """The allocator, and the stream of the work: allocators know none of a build's own."""
        allocator = allocator_of(self.allocator)
        return allocator, given.stream if allocator is None else given.stream or LEGACY_STREAM

    @contextmanager
    def run(self, given: Vectors, arrays: list[DeviceArray] | None, name: str) -> Iterator[_native.Run]:
        """As the native functions take it; the progress is shown meanwhile."""
        allocator, stream = self.memory(given)
        with shown(self.progress, name) as report:
            out = None if arrays is None else [array._view() for array in arrays]
            yield _native.Run(out, stream, allocator, report)


_cuda_process: int | None = None  # that has used a GPU; a fork of it cannot


def _note_device(device: str) -> None:
    global _cuda_process
    if device.startswith("cuda"):
        _cuda_process = os.getpid()


def parameters() -> dict[str, tuple[str, Any]]:
    """All parameters of the builders: what each is, and its default."""
    return _native.params_fields()


def build(
    x: Any,
    k: int = 32,
    metric: str = "l2",
    *,
    recall: float = 0.99,
    device: Any = "auto",
    progress: bool | Progress | None = None,
    stream: Any = None,
    allocator: Any = None,
    **params: Any,
) -> Graph:
    """Builds the k-NN graph of vectors with GNND, and goes on until it has the recall that is asked for.

    :param x: n x d vectors, n >= 2: numpy (also memory-mapped and strided), torch, cupy, jax, or anything with DLPack
        or the CUDA array interface; float32, float16, bfloat16, uint8, int8 (float64 is converted). They must not
        change meanwhile. On a GPU the graph stays there.
    :param k: neighbours per vector, 1 to 1024
    :param metric: "l2" (squared), "ip", "cosine", "l1", "linf" or "chi2"
    :param recall: the share of true nearest neighbours that the graph must have; it is measured. 1: all pairs are
        compared, 0: nothing is measured, and the paper's rule alone decides when to stop
    :param device: "auto" (where the vectors lie; of host memory a GPU if there is one), "cpu", "cuda" or "cuda:N"
    :param progress: True for a bar, or a callable that gets a dict after every iteration; what it raises ends the build
    :param stream: the CUDA stream of vectors on a GPU: an int, a stream of torch or cupy; None: the current one
    :param allocator: where memory of a GPU comes from, the graph's there too: "torch", "cupy" or "rmm" (its current
        resource), or an object with their methods, see :class:`gnnd.Allocator`; None: CUDA's own pool
    :param params: see :func:`parameters`: recall_at, seed, samples, list_size, iterations, threads, ...
    :raises ValueError: for parameters and vectors outside of what is allowed; TypeError, MemoryError, RuntimeError (no
        such device), KeyboardInterrupt
    """
    given = vectors(x, stream=stream)
    params = device_params(given, device, k=k, metric=metric, recall=recall, **params)
    return _run("build", given, params, _How(progress, allocator), given.n, _native.build, given.native, params)


def build_exact(
    x: Any,
    k: int = 32,
    metric: str = "l2",
    *,
    device: Any = "auto",
    progress: bool | Progress | None = None,
    stream: Any = None,
    allocator: Any = None,
    **params: Any,
) -> Graph:
    """Compares all pairs: the exact graph, whatever the vectors are like. Arguments as for :func:`build`."""
    given = vectors(x, stream=stream)
    params = device_params(given, device, k=k, metric=metric, **params)
    how = _How(progress, allocator)
    return _run("build_exact", given, params, how, given.n, _native.build_exact, given.native, params)


def refine(
    x: Any,
    graph: Graph,
    k: int | None = None,
    *,
    recall: float = 0.99,
    device: Any = "auto",
    progress: bool | Progress | None = None,
    stream: Any = None,
    allocator: Any = None,
    **params: Any,
) -> Graph:
    """Runs GNND's iterations on a given graph of the same vectors: a better one, with k columns (None: as many).

    :param graph: of any k; its distances are computed again. Its arrays are on the host in the result.
    """
    given = vectors(x, stream=stream)
    params = device_params(given, device, k=graph.k if k is None else k, metric=graph.metric, recall=recall, **params)
    start = graph.on_host()
    how, parts = _How(progress, allocator), start._parts()
    return _run("refine", given, params, how, given.n, _native.refine, given.native, parts, params, stays=False)


def merge(
    x1: Any,
    graph1: Graph,
    x2: Any,
    graph2: Graph,
    k: int | None = None,
    *,
    recall: float = 0.99,
    device: Any = "auto",
    progress: bool | Progress | None = None,
    stream: Any = None,
    allocator: Any = None,
    **params: Any,
) -> Graph:
    """Merges the graphs of two sets of vectors with GGM, the paper's Algorithm 3.

    :param k: of the result; None: the larger one of both graphs
    :return: (n1 + n2) x k: vector i of the first set keeps its number, vector j of the second one becomes n1 + j
    """
    _require_one_metric(graph1, graph2)
    first, second = vectors(x1, stream=stream, name="x1"), vectors(x2, stream=stream, name="x2")
    params = device_params(
        first, device, k=max(graph1.k, graph2.k) if k is None else k, metric=graph1.metric, recall=recall, **params
    )
    return _run(
        "merge",
        first,
        params,
        _How(progress, allocator),
        first.n + second.n,
        _native.merge,
        first.native,
        graph1._parts(),
        second.native,
        graph2._parts(),
        params,
    )


def append(
    x: Any,
    graph: Graph,
    added: Any,
    *,
    method: str = "auto",
    recall: float = 0.99,
    device: Any = "auto",
    progress: bool | Progress | None = None,
    stream: Any = None,
    allocator: Any = None,
    **params: Any,
) -> Graph:
    """Adds vectors to a graph: by searching it for each of them where they are few, by a merge otherwise.

    :param x: the vectors of the graph
    :param added: vectors of the same type; added vector j becomes n + j
    :param method: "auto", "search" or "merge"
    """
    old, new = vectors(x, stream=stream), vectors(added, stream=stream, name="added")
    params = device_params(old, device, metric=graph.metric, recall=recall, **{"k": graph.k, **params})
    return _run(
        "append",
        old,
        params,
        _How(progress, allocator),
        old.n + new.n,
        _native.append,
        old.native,
        graph._parts(),
        new.native,
        params,
        method,
    )


def duplicates_of(
    x: Any,
    threshold: float,
    values: str,
    neighbors: int,
    *,
    threads: int = 0,
    device: Any = "auto",
    progress: bool | Progress | None = None,
    stream: Any = None,
    allocator: Any = None,
    **params: Any,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """What `gnnd.duplicates` finds in vectors. Those on a GPU are copied to the host, and built with there."""
    given = vectors(x, stream=stream)
    params = device_params(given, device, threads=threads, **params)
    how = _How(progress, allocator)
    with how.run(given, None, "gnnd.duplicates") as run:
        found = _native.duplicates_of(on_host(given).native, threshold, values, neighbors, threads, params, run)
    _note_device(params["device"] if params["device"] != "auto" or _native.device_count()[0] == 0 else "cuda")
    return found


def exact_neighbors(
    x: Any, objects: Any, k: int = 32, metric: str = "l2", *, device: Any = "auto", **params: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Exact neighbours of some of the vectors, by comparing each with all.

    :param objects: numbers of vectors, in any order
    :return: ids and distances, len(objects) x k, as a graph's
    """
    given = vectors(x)
    numbers = checked_ids(objects, "objects", dimensions=1)
    if numbers.size == 0:
        raise ValueError("there are no objects")
    rows = _native.Array(numbers, numbers.ctypes.data, len(numbers), 1, 4, "i32")
    return _native.exact_rows(given.native, rows, device_params(given, device, k=k, metric=metric, **params))


def eval(  # noqa: A001
    graph: Graph,
    x: Any,
    at: int | None = None,
    *,
    objects: int = 4096,
    seed: int = 1234,  # noqa: A001
    device: Any = "auto",
    **params: Any,
) -> Recall:
    """Measures a graph's recall: a sample of its vectors is compared with all.

    :param at: nearest neighbours that count; None: 10, or as many as there are
    :param objects: in the sample; 0: all of them
    """
    given, on_host = vectors(x), graph.on_host()
    at = min(10, graph.k, max(graph.n - 1, 1)) if at is None else at
    params = device_params(given, device, k=at, metric=graph.metric, **params)
    if objects < 0:
        raise ValueError(f"objects = {objects}, allowed are 0 (all) and more")
    report: Any = _native.measure(given.native, on_host._parts(), params, min(objects or given.n, given.n), seed)
    return cast(Recall, recall_of(report))  # objects were measured: there is a report


def plan(
    n: int, d: int, dtype: Any = "float32", k: int = 32, metric: str = "l2", *, device: Any = "auto", **params: Any
) -> dict[str, Any]:
    """What a build of n vectors of d components would choose, the memory in bytes and the time that it would take."""
    name = vectors(np.empty((0, 1), dtype)).native.dtype
    return _native.plan(n, d, name, {"k": k, "metric": metric, "device": device, **params})


def device_params(given: Vectors, device: Any, **params: Any) -> dict[str, Any]:
    """The parameters as the native functions take them. Vectors on a GPU are worked on there."""
    if given.device >= 0 and str(device) in ("auto", "cuda"):
        device = f"cuda:{given.device}"
    if _cuda_process not in (None, os.getpid()) and str(device) != "cpu":
        raise RuntimeError(
            "CUDA was used before this process was forked; use device='cpu' here, or start processes by "
            "'spawn' (multiprocessing.get_context)"
        )
    return {**params, "device": str(device)}


def _run(
    what: str,
    given: Vectors,
    params: dict[str, Any],
    how: _How,
    n: int,
    native: Any,
    *arguments: Any,
    stays: bool = True,
) -> Graph:
    """Calls the native function: the graph goes to where the vectors lie, unless it does not stay there."""
    arrays = None
    if given.device >= 0 and stays:
        memory, stream = how.memory(given)
        arrays = [DeviceArray(given.device, (n, params["k"]), dtype, memory, stream) for dtype in ("i32", "f32")]
    with how.run(given, arrays, f"gnnd.{what}") as run:
        new, stats, base = native(*arguments, run)
    _note_device(stats["device"])
    ids, distances = new if arrays is None else arrays
    return graph_of(ids, distances, params["metric"], stats=stats, base=base, dtype=given.native.dtype)


def _require_one_metric(graph1: Graph, graph2: Graph) -> None:
    if graph1.metric != graph2.metric:
        raise ValueError(f"graphs of two metrics: {graph1.metric} and {graph2.metric}")


# Threads that OpenMP keeps do not survive a fork, and a child that expects them waits for ever.
os.register_at_fork(before=_native.pause_threads)

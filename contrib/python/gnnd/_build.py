# SPDX-License-Identifier: MIT
"""Builds, merges and measurements."""

from __future__ import annotations

import os
from typing import Any, cast

import numpy as np

from . import _native
from ._arrays import dtype_name, numpy_name, on_host
from ._call import Call, arrays_of
from ._device_array import LEGACY_STREAM
from ._graph import Graph, Recall, checked_ids, recall_of
from ._process import named
from ._progress import Progress


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
        or the CUDA array interface; float32, float16, bfloat16, uint8, int8. float64 is converted, provided that
        float32 has the digits by which they differ. They must not change meanwhile. On a GPU the graph stays there.
    :param k: neighbours per vector, 1 to 1024
    :param metric: "l2" (squared), "ip", "cosine", "l1", "linf" or "chi2"
    :param recall: the share of the ten true nearest neighbours, or `recall_at`, that the graph must have; it is
        measured. All k need nine tenths of it, or lists that have settled; `stats["recall_all"]` tells what they have.
        1: all pairs are compared, 0: nothing is measured, and the paper's rule alone decides when to stop
    :param device: "auto" (where the vectors lie; of host memory a GPU if there is one), "cpu", "cuda" or "cuda:N"
    :param progress: True for a bar, or a callable that gets a dict after every iteration; what it raises ends the build
    :param stream: the CUDA stream of vectors on a GPU: an int, a stream of torch or cupy; None: the current one
    :param allocator: where memory of a GPU comes from, the graph's there too: "torch", "cupy" or "rmm" (its current
        resource), or an object with their methods, see :class:`gnnd.Allocator`; None: CUDA's own pool
    :param params: see :func:`parameters`: recall_at, seed, samples, list_size, iterations, threads, ...
    :raises ValueError: for parameters and vectors outside of what is allowed; TypeError, MemoryError, RuntimeError (no
        such device), KeyboardInterrupt
    """
    call = Call("build", progress, allocator, stream, x=x)
    given = call.vectors("x")
    params = call.params(device, params, k=k, metric=metric, recall=recall)
    return call.graph(params, given.n, _native.build, given.native, params)


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
    call = Call("build_exact", progress, allocator, stream, x=x)
    given = call.vectors("x")
    params = call.params(device, params, k=k, metric=metric)
    return call.graph(params, given.n, _native.build_exact, given.native, params)


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
    call = Call("refine", progress, allocator, stream, x=x, **arrays_of(graph=graph))
    given = call.vectors("x")
    params = call.params(device, params, k=graph.k if k is None else k, metric=graph.metric, recall=recall)
    start = graph._on_host(call.stream or LEGACY_STREAM)
    return call.graph(params, given.n, _native.refine, given.native, start._parts(), params, stays=False)


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

    :param k: of the result; None: the smaller one of both graphs, as by the tool: the columns that only one has would
        hold what the merge happens to meet
    :return: (n1 + n2) x k: vector i of the first set keeps its number, vector j of the second one becomes n1 + j
    :raises ValueError: also for graphs whose distances are not those of their vectors under the metric ("l2" is
        squared), of which a sample is computed again where both lie on the host
    """
    call = Call("merge", progress, allocator, stream, x1=x1, x2=x2, **arrays_of(graph1=graph1, graph2=graph2))
    _require_one_metric(graph1, graph2)
    first, second = call.vectors("x1"), call.vectors("x2")
    k = min(graph1.k, graph2.k) if k is None else k
    params = call.params(device, params, k=k, metric=graph1.metric, recall=recall)
    arguments = (first.native, graph1._parts(), second.native, graph2._parts(), params)
    return call.graph(params, first.n + second.n, _native.merge, *arguments)


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
    :raises ValueError: also for a graph whose distances are not those of its vectors, as :func:`merge`
    """
    call = Call("append", progress, allocator, stream, x=x, added=added, **arrays_of(graph=graph))
    old, new = call.vectors("x"), call.vectors("added")
    params = call.params(device, {"k": graph.k, **params}, metric=graph.metric, recall=recall)
    arguments = (old.native, graph._parts(), new.native, params, method)
    return call.graph(params, old.n + new.n, _native.append, *arguments)


def duplicates_of(
    x: Any,
    given_params: dict[str, Any],
    *,
    device: Any = "auto",
    progress: bool | Progress | None = None,
    stream: Any = None,
    allocator: Any = None,
    **params: Any,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Finds copies for `gnnd.duplicates`. Vectors on a GPU are copied to the host, and built with there."""
    call = Call("duplicates", progress, allocator, stream, x=x)
    given = on_host(call.vectors("x"))
    params = call.params(device, params)
    with call.run() as run:
        return _native.duplicates_of(given.native, given_params, params, run)


def exact_neighbors(
    x: Any,
    objects: Any,
    k: int = 32,
    metric: str = "l2",
    *,
    device: Any = "auto",
    stream: Any = None,
    **params: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Exact neighbours of some of the vectors, by comparing each with all.

    :param objects: numbers of vectors, in any order
    :return: ids and distances, len(objects) x k, as a graph's
    """
    call = Call("exact_neighbors", None, None, stream, x=x)
    given = call.vectors("x")
    numbers = checked_ids(objects, "objects", dimensions=1)
    if numbers.size == 0:
        raise ValueError("objects holds none; allowed are one and more")
    outside = (numbers < 0) | (numbers >= given.n)
    if outside.any():
        at = int(outside.argmax())
        raise ValueError(f"objects[{at}] = {numbers[at]}, allowed are 0 to {given.n - 1}")
    rows = _native.Array(numbers, numbers.ctypes.data, len(numbers), 1, 4, "i32")
    params = call.params(device, params, k=k, metric=metric)
    call.place.wait()
    return _native.exact_rows(given.native, rows, params)


def eval(  # noqa: A001
    graph: Graph,
    x: Any,
    at: int | None = None,
    *,
    objects: int = 4096,
    seed: int = 1234,  # noqa: A001
    device: Any = "auto",
    stream: Any = None,
    **params: Any,
) -> Recall:
    """Measures a graph's recall: a sample of its vectors is compared with all, as by the tool's `gnnd eval`.

    The sample is none that a build draws, whatever the seed. Of the graph only ids count: the distances are computed
    anew, on the host, to which vectors on a GPU are copied.

    :param at: nearest neighbours that count; None: 10, or as many as there are
    :param objects: in the sample; 0: all of them
    :raises ValueError: for a graph of another number of vectors, and for ids that are no vector's
    """
    call = Call("eval", None, None, stream, x=x, **arrays_of(graph=graph))
    given, rows = call.vectors("x"), graph._on_host(call.stream or LEGACY_STREAM)
    at = min(10, graph.k, max(graph.n - 1, 1)) if at is None else _native.whole("at", at, 1)
    params = call.params(device, params, k=at, metric=graph.metric, seed=seed)
    count = min(_native.whole("objects", objects, 0) or given.n, given.n)
    call.place.wait()
    report: Any = _native.measure(given.native, on_host(given).native, rows._parts(), params, count)
    return cast(Recall, recall_of(report))  # objects were measured: there is a report


def plan(
    n: int, d: int, dtype: Any = "float32", k: int = 32, metric: str = "l2", *, device: Any = "auto", **params: Any
) -> dict[str, Any]:
    """Predicts what a build of n vectors of d components would choose, its memory in bytes and its time."""
    name = dtype_name("float32" if numpy_name(dtype) == "float64" else dtype)
    n, d = _native.whole("n", n), _native.whole("d", d)
    return _native.plan(n, d, name, {"k": k, "metric": metric, "device": named(device), **params})


def _require_one_metric(graph1: Graph, graph2: Graph) -> None:
    if graph1.metric != graph2.metric:
        raise ValueError(f"graphs of two metrics: {graph1.metric} and {graph2.metric}")


# Threads that OpenMP keeps do not survive a fork, and a child that expects them waits for ever.
os.register_at_fork(before=_native.pause_threads)

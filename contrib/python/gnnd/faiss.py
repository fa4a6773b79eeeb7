# SPDX-License-Identifier: MIT
"""Python's FAISS: vectors out of its indexes, and k-NN graphs into its graph indexes.

    x = gnnd.faiss.vectors(index)                            # of any index that holds vectors, also on a GPU
    graph = gnnd.build(x, 32, gnnd.faiss.metric(index))
    nsg = gnnd.faiss.to_nsg(x, graph)                        # a faiss.IndexNSGFlat, ready to search

gnnd and FAISS share no code in a process: indexes are made of arrays, or read from bytes, by the FAISS that is
imported. They number the vectors as the rows of x are. Metrics are l2, ip, l1, linf, and cosine, which becomes an index
of normalised vectors under the inner product: normalise the queries too (``faiss.normalize_L2``).
"""

from __future__ import annotations

import functools
from typing import Any

import faiss
import numpy as np

from . import _native
from ._arrays import rows_on_host
from ._arrays import vectors as vectors_of
from ._faiss_vectors import ids, metric, vectors
from ._graph import Graph, require_graph
from .graph import _links_with_levels, search_links

__all__ = ["ids", "metric", "to_cagra", "to_hnsw", "to_hnsw_cagra", "to_nndescent", "to_nsg", "vectors"]


def to_nsg(
    x: Any,
    graph: Graph,
    R: int = 32,  # noqa: N803
    *,
    search_L: int = 64,  # noqa: N803
    threads: int = 0,
    device: Any = "cpu",
) -> faiss.IndexNSGFlat:
    """An NSG over the graph. FAISS's own build of one is not used: for some sets with equal vectors it never returns.

    :param x: the n x d vectors of the graph in host memory, or a FAISS index that holds them, n >= 2
    :param graph: n x k, over them
    :param R: links of an object, 1 to 4096; all objects are reachable by them
    :param search_L: beam width set on the index; lowered to n. FAISS's search of an NSG never returns where it, or the
        number of neighbours that are searched for, is more than n
    :param threads: that choose links; 0: all. The result is the same
    :param device: that chooses links, see :func:`gnnd.graph.search_links`
    :return: the index, which owns a float32 copy of the vectors; three copies exist while it is made
    :raises ValueError: for vectors and a graph that do not fit, metrics that FAISS lacks, parameters out of range
    """
    given = _Given(x, graph)
    index = faiss.IndexNSGFlat(given.d, _native.whole("R", R, 1, 4096), given.faiss_metric)
    links = given.links(R, threads, device)
    # FAISS writes the links of an NSG that is built behind its parameters and before the vectors: each object's, ended
    # by -1. An index without links or vectors shows where that is.
    index.nsg.ntotal, index.nsg.enterpoint, index.ntotal = given.n, given.entry, given.n
    empty, no_vectors = faiss.serialize_index(index), faiss.serialize_index(faiss.downcast_index(index.storage))
    head = empty[: empty.size - no_vectors.size].copy()
    if head[-1] != 0 or not np.array_equal(empty[head.size :], no_vectors):
        raise RuntimeError(f"faiss {faiss.__version__} writes an IndexNSGFlat in an order that is not known here")
    head[-1] = 1  # it is built
    ended = np.concatenate([links, np.full((given.n, 1), -1, np.int32)], axis=1)
    keep = ended >= 0
    keep[np.arange(given.n), keep.sum(1)] = True
    made = faiss.deserialize_index(
        np.concatenate([head, ended[keep].astype("<i4").view(np.uint8), faiss.serialize_index(given.storage)])
    )
    made.is_built = True
    made.nsg.search_L = min(_native.whole("search_L", search_L, 1), given.n)
    return made


def to_hnsw(
    x: Any,
    graph: Graph,
    M: int = 16,  # noqa: N803
    *,
    efSearch: int = 64,  # noqa: N803
    threads: int = 0,
    device: Any = "cpu",
) -> faiss.IndexHNSWFlat:
    """An HNSW over the graph, linked as by :func:`to_nsg`, with levels above of graphs over ever smaller samples.

    :param x: as for :func:`to_nsg`
    :param M: objects have 2 M links, and M on each level above; 2 to 2048
    :param efSearch: beam width set on the index; lowered to n
    """
    given = _Given(x, graph)
    index = faiss.IndexHNSWFlat(given.d, _native.whole("M", M, 2, 2048), given.faiss_metric)
    given.require_places(2 * M)
    degrees = index.hnsw.nb_neighbors(0), index.hnsw.nb_neighbors(1)
    where = {"entry": given.entry, "threads": threads, "device": device}
    _fill_hnsw(index, given, *_links_with_levels(given.x, given.graph, *degrees, **where))
    index.hnsw.efSearch = min(_native.whole("efSearch", efSearch, 1), given.n)
    return index


def to_hnsw_cagra(
    x: Any,
    graph: Graph,
    degree: int = 32,
    *,
    efSearch: int = 64,  # noqa: N803
    threads: int = 0,
    device: Any = "cpu",
) -> faiss.IndexHNSWCagra:
    """An ``IndexHNSWCagra`` of its base level only, every row full: what ``GpuIndexCagra.copyFrom`` takes.

    :param x: as for :func:`to_nsg`; l2, ip or cosine
    :param degree: links of every object, even, 4 to n - 1; what the graph does not give is drawn at random
    :param efSearch: beam width set on the index; lowered to n
    :raises RuntimeError: where FAISS is older than 1.9
    """
    if not hasattr(faiss, "IndexHNSWCagra"):
        raise RuntimeError(f"faiss {faiss.__version__} has no IndexHNSWCagra; 1.9 and later do")
    given = _Given(x, graph)
    if graph.metric not in ("l2", "ip", "cosine"):
        raise ValueError(f"FAISS's CAGRA has no metric {graph.metric}; it has l2, ip and cosine")
    _native.whole("degree", degree, 4, min(4096, given.n - 1))
    if degree % 2:
        raise ValueError(f"degree = {degree} is not even")
    index = faiss.IndexHNSWCagra(given.d, degree // 2, given.faiss_metric)
    index.base_level_only = True
    links = given.links(degree, threads, device)
    _fill_up(links)
    _fill_hnsw(index, given, links, np.ones(given.n, np.int32))
    index.hnsw.efSearch = min(_native.whole("efSearch", efSearch, 1), given.n)
    return index


def to_cagra(
    x: Any, graph: Graph, degree: int = 32, *, resources: Any = None, threads: int = 0, device: Any = "auto"
) -> faiss.GpuIndexCagra:
    """A ``faiss.GpuIndexCagra`` over the graph, by way of :func:`to_hnsw_cagra`.

    :param resources: a ``faiss.StandardGpuResources``; None: new ones
    :raises RuntimeError: where FAISS was built without it (PyPI's faiss-gpu-cuvs has it)
    """
    if not hasattr(faiss, "GpuIndexCagra"):
        raise RuntimeError(f"this faiss {faiss.__version__} has no GpuIndexCagra; PyPI's faiss-gpu-cuvs does")
    host = to_hnsw_cagra(x, graph, degree, threads=threads, device=device)
    resources = faiss.StandardGpuResources() if resources is None else resources
    index = faiss.GpuIndexCagra(resources, host.d, host.metric_type)
    index.copyFrom(host)
    # FAISS's wrappers of GPU indexes keep theirs in the same way; the index goes on using the vectors of what it was
    # copied from.
    index.referenced_objects = [resources, host]
    return index


def to_nndescent(x: Any, graph: Graph, *, search_L: int = 64) -> faiss.IndexNNDescentFlat:  # noqa: N803
    """An ``IndexNNDescentFlat`` whose final graph is the graph: its first min(k, n - 1) columns.

    :param x: as for :func:`to_nsg`
    :param search_L: beam width set on the index; lowered to n - 1
    :raises ValueError: for a graph that lacks neighbours there, too: FAISS cannot search it
    """
    given = _Given(x, graph)
    columns = min(graph.k, given.n - 1)
    rows = np.ascontiguousarray(graph.on_host().ids[:, :columns])
    if rows.min() < 0 or rows.max() >= given.n:
        raise ValueError(
            f"row {int(np.argmax(((rows < 0) | (rows >= given.n)).any(1)))} of the graph has fewer than "
            f"{columns} neighbours, or ones that are not there; FAISS cannot search it"
        )
    index = faiss.IndexNNDescentFlat(given.d, columns, given.faiss_metric)
    faiss.downcast_index(index.storage).add(given.x)
    index.ntotal = given.n
    index.nndescent.ntotal = given.n
    faiss.copy_array_to_vector(rows.reshape(-1), index.nndescent.final_graph)
    # FAISS starts from search_L distinct random objects, which it can draw only from a larger set.
    index.nndescent.search_L = min(_native.whole("search_L", search_L, 1), given.n - 1)
    index.nndescent.has_built = True
    return index


class _Given:
    """Vectors as FAISS's storage has them, and the graph over them; both were checked."""

    def __init__(self, x: Any, graph: Graph) -> None:
        rows = vectors(x) if isinstance(x, faiss.Index) else x
        self.x = np.ascontiguousarray(rows_on_host(rows), dtype=np.float32)
        self.n, self.d = self.x.shape
        self.graph = require_graph(graph).on_host()
        if graph.metric not in _FAISS_METRICS:
            raise ValueError(f"FAISS has no metric {graph.metric}; it has {', '.join(_FAISS_METRICS)}")
        if isinstance(x, faiss.Index) and graph.metric not in (metric(x), "cosine"):
            raise ValueError(f"a graph under {graph.metric} for an index under {metric(x)}")
        if self.n < 2 or self.n != graph.n:
            raise ValueError(f"a graph of {graph.n} objects for {self.n} vectors; there must be 2 or more")
        _native.check_graph(self.graph._parts())
        _native.check_vectors(vectors_of(self.x).native, graph.metric)
        if graph.metric == "cosine":
            if np.shares_memory(self.x, np.asarray(rows)):
                self.x = self.x.copy()
            faiss.normalize_L2(self.x)
        self.faiss_metric = _FAISS_METRICS[graph.metric]

    @property
    def storage(self) -> faiss.IndexFlat:
        flat = faiss.IndexFlatL2(self.d) if self.graph.metric == "l2" else faiss.IndexFlat(self.d, self.faiss_metric)
        flat.add(self.x)
        return flat

    @functools.cached_property
    def entry(self) -> int:
        """The object that searches start from: the nearest to the mean."""
        mean = self.x.mean(0, dtype=np.float64).astype(np.float32)
        nearest = faiss.knn(mean[None], self.x, 1, metric=self.faiss_metric)[1]
        return int(nearest[0, 0])

    def require_places(self, degree: int) -> None:
        if self.n * degree > np.iinfo(np.int32).max:
            raise ValueError(f"{self.n} objects with {degree} links each are more than FAISS can number, 2147483647")

    def links(self, degree: int, threads: int, device: Any) -> np.ndarray:
        """n x degree."""
        self.require_places(degree)
        return search_links(self.x, self.graph, degree, entry=self.entry, threads=threads, device=device)


def _fill_hnsw(index: Any, given: _Given, links: np.ndarray, levels: np.ndarray) -> None:
    faiss.downcast_index(index.storage).add(given.x)
    index.ntotal = given.n
    hnsw = index.hnsw
    faiss.copy_array_to_vector(levels, hnsw.levels)
    hnsw.max_level = hnsw.prepare_level_tab(given.n, True)
    faiss.rev_swig_ptr(hnsw.neighbors.data(), hnsw.neighbors.size())[:] = links.reshape(-1)
    hnsw.entry_point = given.entry


def _fill_up(links: np.ndarray) -> None:
    """Random objects where links are missing, none twice and none to itself."""
    n, degree = links.shape
    random = np.random.default_rng(1)
    short = np.flatnonzero(links[:, -1] < 0)
    for _ in range(16):
        if short.size == 0:
            return
        rows = links[short]
        drawn = np.where(rows < 0, random.integers(0, n, rows.shape, dtype=np.int32), rows)
        order = np.argsort(drawn, axis=1, kind="stable")
        ordered = np.take_along_axis(drawn, order, 1)
        again = np.zeros(rows.shape, bool)
        np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], 1)
        drawn[again | (drawn == short[:, None])] = -1
        # Links that were there stand in front of drawn ones, so that it is a drawn one that is taken away.
        links[short] = np.take_along_axis(drawn, np.argsort(drawn < 0, axis=1, kind="stable"), 1)
        short = short[links[short, -1] < 0]
    for row in short:  # nearly all objects are linked already
        there = links[row][links[row] >= 0]
        others = np.setdiff1d(np.arange(n, dtype=np.int32), np.append(there, row))
        links[row, there.size :] = random.choice(others, degree - there.size, replace=False)


# FAISS's number of each metric that it has; of cosine that of the inner product, for vectors of norm 1.
_FAISS_METRICS = {
    name: number for name in _native.metrics if (number := _native.metric_traits(name)["faiss_metric"]) is not None
}

# SPDX-License-Identifier: MIT
"""What others make of a k-NN graph before they work with it: sparse matrices, components, copies, links for searches.

Matrices are n x n: ``scipy.sparse.csr_matrix`` where SciPy is installed, a :class:`Csr` of the same arrays otherwise.
No row has its own column; an entry may be 0, as distances of copies are. Everything runs on the CPU (graphs on a GPU
are copied), and gives the same bits on any number of threads. Arguments that most of them have:

:param graph: a :class:`gnnd.Graph`
:param neighbors: first entries of a row that count; 0: all k
:param values: "distance": true distances, 0 for equal vectors (the root of squared l2, 1 - cosine, 1 - ip of vectors of
    length 1); "metric": the graph's values as they are
:param radius: entries farther than this do not count; None: all do. In the unit of `values`
:param threads: 0: all
:raises ValueError: for graphs whose rows are not as :class:`gnnd.Graph` says, and parameters out of range
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import _native
from ._arrays import on_host, vectors
from ._build import duplicates_of
from ._graph import Graph, _view_of
from ._process import named


class Csr(NamedTuple):
    """A sparse matrix in compressed rows: row i has columns indices[indptr[i]:indptr[i + 1]], ascending."""

    indptr: np.ndarray  #: n + 1, int64
    indices: np.ndarray  #: int32
    data: np.ndarray  #: float32, as many

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.indptr) - 1, len(self.indptr) - 1


class Duplicates(NamedTuple):
    """Groups of rows that are copies, or near copies, of each other."""

    labels: np.ndarray  #: n, int32: the row's group 0, 1, ...; -1: it has no copy
    sizes: np.ndarray  #: rows of each group, 2 or more, int64
    firsts: np.ndarray  #: of each group the lowest row, int32
    full: int  #: rows all of whose neighbours in the graph are copies: their groups may be larger than k shows

    def kept(self) -> np.ndarray:
        """The rows that are left when all of a group but its first are dropped, ascending."""
        keep = self.labels < 0
        keep[self.firsts] = True
        return np.flatnonzero(keep)


def neighbors_graph(
    graph: Graph, *, neighbors: int = 0, values: str = "distance", radius: float | None = None, threads: int = 0
) -> Any:
    """Every row's own entries: scikit-learn's kneighbors_graph without the objects themselves; with a radius its
    radius_neighbors_graph, as far as rows reach (:func:`full_rows`)."""
    return _csr(_native.neighbors_graph(_parts(graph), neighbors, values, radius, threads))


def full_rows(
    graph: Graph, *, neighbors: int = 0, values: str = "distance", radius: float | None = None, threads: int = 0
) -> int:
    """How many rows have all their entries within the radius: these may have more neighbours there."""
    return _native.full_rows(_parts(graph), neighbors, values, radius, threads)


def symmetric_graph(
    graph: Graph, *, neighbors: int = 0, values: str = "distance", radius: float | None = None, threads: int = 0
) -> Any:
    """The union: i and j are joined where either is among the other's entries."""
    return _csr(_native.symmetric_graph(_parts(graph), neighbors, values, radius, threads))


def mutual_graph(
    graph: Graph, *, neighbors: int = 0, values: str = "distance", radius: float | None = None, threads: int = 0
) -> Any:
    """The intersection: i and j are joined where each is among the other's entries."""
    return _csr(_native.mutual_graph(_parts(graph), neighbors, values, radius, threads))


def jaccard_graph(
    graph: Graph, *, neighbors: int = 0, include_self: bool = False, prune: float = 0, threads: int = 0
) -> Any:
    """Shared-neighbour weights of the union: the Jaccard index of both rows, from 0 to 1.

    :param include_self: whether an object counts as one of its own neighbours, as in Seurat
    :param prune: pairs of less weight are left out; Seurat takes 1/15
    """
    return _csr(_native.jaccard_graph(_parts(graph), neighbors, include_self, prune, threads))


def fuzzy_simplicial_set(
    graph: Graph,
    *,
    neighbors: int = 0,
    local_connectivity: float = 1,
    set_op_mix_ratio: float = 1,
    bandwidth: float = 1,
    threads: int = 0,
) -> Any:
    """UMAP's weights, as umap-learn computes them of a graph that has each object in its own row in addition: its
    n_neighbors is k + 1."""
    return _csr(
        _native.fuzzy_simplicial_set(_parts(graph), neighbors, local_connectivity, set_op_mix_ratio, bandwidth, threads)
    )


def core_distances(
    graph: Graph, *, neighbors: int = 0, min_samples: int = 5, alpha: float = 1, threads: int = 0
) -> np.ndarray:
    """The true distance of every object's neighbour number min_samples, itself not counted: n, float32."""
    return _native.core_distances(_parts(graph), neighbors, min_samples, alpha, threads)


def mutual_reachability_graph(
    graph: Graph, *, neighbors: int = 0, min_samples: int = 5, alpha: float = 1, threads: int = 0
) -> Any:
    """HDBSCAN's mutual reachability of the union's pairs. See :mod:`gnnd.hdbscan` for clusters.

    :param min_samples: as hdbscan's; scikit-learn's counts the object itself: one more
    """
    return _csr(_native.mutual_reachability_graph(_parts(graph), neighbors, min_samples, alpha, threads))


def connected_components(
    graph: Graph, *, neighbors: int = 0, values: str = "distance", radius: float | None = None, threads: int = 0
) -> tuple[int, np.ndarray]:
    """Components of the union: how many, and each object's, numbered as SciPy does it (int32)."""
    labels, sizes = _native.connected_components(_parts(graph), neighbors, values, radius, threads)
    return len(sizes), labels


def equal_rows(x: Any, *, threads: int = 0) -> np.ndarray:
    """Rows that are equal to the bit: n, int32, the lowest row that is equal to this one (itself where there is none
    before it). Vectors on a GPU are copied to the host."""
    return _native.equal_rows(on_host(vectors(x)).native, threads)


def duplicates(
    x: Any,
    threshold: float = 0,
    *,
    metric: str = "l2",
    values: str = "distance",
    k: int = 32,
    neighbors: int = 0,
    threads: int = 0,
    base: Any = None,
    **params: Any,
) -> Duplicates:
    """Groups of near-equal rows across the whole set: components of pairs no farther apart than the threshold.

    Rows that are equal to the bit are one group, however many there are: one of them stands for all in the graph. (A
    distance of 0, or a cosine of 1, must be within the threshold; under "ip" they are a group in any case.) Groups of
    more than k + 1 rows that are only near each other are found whole where rows of the graph connect them: see
    ``full``.

    :param x: n x d vectors, whose graph is built, or a graph that is there
    :param threshold: farthest distance of copies; with values="metric" a value of the metric
    :param k: of the graph
    :param base: with a graph: its vectors, for those of them that are equal
    :param params: of :func:`gnnd.build`, as `recall` and `device`
    """
    if isinstance(x, Graph):
        equal = None
        if base is not None:
            rows = equal_rows(base, threads=threads)
            if len(rows) != x.n:
                raise ValueError(f"a graph of {x.n} objects for {len(rows)} vectors")
            equal = _view_of(rows[:, None], "i32")
        return Duplicates(*_native.duplicates(_parts(x), threshold, values, neighbors, threads, equal))
    if base is not None:
        raise TypeError("base is for a graph; x are vectors")
    params = {"recall": 0.99, "k": k, "metric": metric, "threads": threads, **params}
    return Duplicates(*duplicates_of(x, threshold, values, neighbors, **params))


def search_links(
    x: Any, graph: Graph, degree: int = 32, *, entry: int | None = None, threads: int = 0, device: Any = "cpu"
) -> np.ndarray:
    """Links for a greedy search: neighbours, but in as many directions as possible (HNSW's and NSG's rule), and their
    opposites while there is room.

    :param x: the n x d vectors of the graph, in host memory
    :param degree: links of an object, 1 to 4096
    :param entry: an object from which all can be reached then; None: some may be out of reach
    :param device: "cpu", "cuda", "cuda:N" or "auto". A GPU makes up to 128 links of an object, and compares floats as
        float16, so that some links are others
    :return: n x degree, int32, -1 at the end of rows with fewer
    """
    given = vectors(x)
    if given.device >= 0:
        raise ValueError("the vectors lie on a GPU; links are chosen of vectors on the host")
    if not 1 <= degree <= 4096:
        raise ValueError(f"degree = {degree}, allowed are 1 to 4096")
    links = np.empty((graph.n, degree), np.int32)
    first = -1 if entry is None else entry
    _native.search_links(given.native, _parts(graph), _view_of(links, "i32"), first, threads, named(device))
    return links


def _parts(graph: Graph) -> Any:
    if not isinstance(graph, Graph):
        raise TypeError(f"a gnnd.Graph is needed, not {type(graph).__name__}")
    return graph.on_host()._parts()


def _csr(arrays: tuple[np.ndarray, np.ndarray, np.ndarray]) -> Any:
    csr = Csr(*arrays)
    try:
        from scipy.sparse import csr_matrix
    except ImportError:
        return csr
    matrix = csr_matrix((csr.data, csr.indices, csr.indptr), shape=csr.shape)
    matrix.has_canonical_format = True
    return matrix

# SPDX-License-Identifier: MIT
"""Forms of a k-NN graph that others work with: sparse matrices, components, copies, links for searches.

Matrices are n x n. On the host they are ``scipy.sparse.csr_matrix`` where SciPy is installed, a :class:`Csr` of the
same arrays otherwise. Of a graph whose arrays lie on a GPU they stay there, as a :class:`Csr` of
:class:`gnnd.DeviceArray`: ``to_torch()``, ``to_cupy()`` and ``on_host()`` make of it what others take. Labels and the
like come to the host. No row has its own column; an entry may be 0, as distances of copies are. Structure and values
have the same bits on any number of threads and on a GPU (there UMAP's weights are within 3e-5). Arguments that most of
them have:

:param graph: a :class:`gnnd.Graph`
:param neighbors: first entries of a row that count; 0: all k
:param values: "distance": true distances, 0 for equal vectors (the root of squared l2, 1 - cosine, 1 - ip of vectors of
    length 1); "metric": the graph's values as they are
:param radius: entries farther than this do not count; None: all do. In the unit of `values`
:param threads: 0: all
:param device: "auto" (the default: where the graph lies), "cpu" (a graph on a GPU is copied), "cuda" or "cuda:N" (a
    graph on the host is copied, and the result comes back)
:param stream: as of :func:`gnnd.build`
:param allocator: as of :func:`gnnd.build`
:raises ValueError: for graphs whose rows are not as :class:`gnnd.Graph` says, and parameters out of range;
    RuntimeError: for a device that is not there; MemoryError
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import numpy as np

from . import _native
from ._arrays import on_host, vectors
from ._build import duplicates_of
from ._call import call_of_graph
from ._csr import Csr as Csr
from ._csr import csr_of
from ._graph import Graph, _view_of, require_graph
from ._process import named

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Where(TypedDict, total=False):
    """The place where an operation runs: see the module's own text."""

    device: Any
    stream: Any
    allocator: Any


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
    graph: Graph,
    *,
    neighbors: int = 0,
    values: str = "distance",
    radius: float | None = None,
    threads: int = 0,
    **where: Unpack[Where],
) -> Any:
    """Every row's own entries: scikit-learn's kneighbors_graph without the objects themselves; with a radius its
    radius_neighbors_graph, as far as rows reach (:func:`full_rows`)."""
    return _matrix(_native.neighbors_graph, graph, _edges(neighbors, values, radius, threads), **where)


def full_rows(
    graph: Graph,
    *,
    neighbors: int = 0,
    values: str = "distance",
    radius: float | None = None,
    threads: int = 0,
    **where: Unpack[Where],
) -> int:
    """Counts the rows that have all their entries within the radius: these may have more neighbours there."""
    return _run(_native.full_rows, graph, _edges(neighbors, values, radius, threads), **where)


def symmetric_graph(
    graph: Graph,
    *,
    neighbors: int = 0,
    values: str = "distance",
    radius: float | None = None,
    threads: int = 0,
    **where: Unpack[Where],
) -> Any:
    """The union: i and j are joined where either is among the other's entries."""
    return _matrix(_native.symmetric_graph, graph, _edges(neighbors, values, radius, threads), **where)


def mutual_graph(
    graph: Graph,
    *,
    neighbors: int = 0,
    values: str = "distance",
    radius: float | None = None,
    threads: int = 0,
    **where: Unpack[Where],
) -> Any:
    """The intersection: i and j are joined where each is among the other's entries."""
    return _matrix(_native.mutual_graph, graph, _edges(neighbors, values, radius, threads), **where)


def jaccard_graph(
    graph: Graph,
    *,
    neighbors: int = 0,
    include_self: bool = False,
    prune: float = 0,
    threads: int = 0,
    **where: Unpack[Where],
) -> Any:
    """Shared-neighbour weights of the union: the Jaccard index of both rows, from 0 to 1.

    :param include_self: whether an object counts as one of its own neighbours, as in Seurat
    :param prune: pairs of less weight are left out; Seurat takes 1/15
    """
    params = {"neighbors": neighbors, "include_self": include_self, "prune": prune, "threads": threads}
    return _matrix(_native.jaccard_graph, graph, params, **where)


def fuzzy_simplicial_set(
    graph: Graph,
    *,
    neighbors: int = 0,
    local_connectivity: float = 1,
    set_op_mix_ratio: float = 1,
    bandwidth: float = 1,
    threads: int = 0,
    **where: Unpack[Where],
) -> Any:
    """UMAP's weights, as umap-learn computes them of a graph that has each object in its own row in addition: its
    n_neighbors is k + 1."""
    params = {
        "neighbors": neighbors,
        "local_connectivity": local_connectivity,
        "set_op_mix_ratio": set_op_mix_ratio,
        "bandwidth": bandwidth,
        "threads": threads,
    }
    return _matrix(_native.fuzzy_simplicial_set, graph, params, **where)


def core_distances(
    graph: Graph,
    *,
    neighbors: int = 0,
    min_samples: int = 5,
    alpha: float = 1,
    threads: int = 0,
    **where: Unpack[Where],
) -> np.ndarray:
    """The true distance of every object's neighbour number min_samples, itself not counted: n, float32."""
    return _run(_native.core_distances, graph, _reachability(neighbors, min_samples, alpha, threads), **where)


def mutual_reachability_graph(
    graph: Graph,
    *,
    neighbors: int = 0,
    min_samples: int = 5,
    alpha: float = 1,
    threads: int = 0,
    **where: Unpack[Where],
) -> Any:
    """HDBSCAN's mutual reachability of the union's pairs. See :mod:`gnnd.hdbscan` for clusters.

    :param min_samples: as hdbscan's; scikit-learn's counts the object itself: one more
    """
    params = _reachability(neighbors, min_samples, alpha, threads)
    return _matrix(_native.mutual_reachability_graph, graph, params, **where)


def connected_components(
    graph: Graph,
    *,
    neighbors: int = 0,
    values: str = "distance",
    radius: float | None = None,
    threads: int = 0,
    **where: Unpack[Where],
) -> tuple[int, np.ndarray]:
    """Components of the union: how many, and each object's, numbered as SciPy does it (int32)."""
    labels, sizes = _run(_native.connected_components, graph, _edges(neighbors, values, radius, threads), **where)
    return len(sizes), labels


def equal_rows(x: Any, *, threads: int = 0) -> np.ndarray:
    """Rows that are equal to the bit: n, int32, the lowest row that is equal to this one (itself where there is none
    before it). Vectors on a GPU are copied to the host."""
    return _native.equal_rows(on_host(vectors(x)).native, threads)


def duplicates(
    x: Any,
    threshold: float = 0,
    *,
    metric: str | None = None,
    values: str = "distance",
    k: int | None = None,
    neighbors: int = 0,
    threads: int = 0,
    base: Any = None,
    device: Any = "auto",
    stream: Any = None,
    allocator: Any = None,
    **params: Any,
) -> Duplicates:
    """Groups of near-equal rows across the whole set: components of pairs no farther apart than the threshold.

    Rows that are equal to the bit are one group, however many there are: one of them stands for all in the graph. (A
    distance of 0, or a cosine of 1, must be within the threshold; under "ip" they are a group in any case.) Groups of
    more than k + 1 rows that are only near each other are found whole where rows of the graph connect them: see
    ``full``.

    :param x: n x d vectors, whose graph is built, or a graph that is there
    :param threshold: farthest distance of copies; with values="metric" a value of the metric
    :param metric: of vectors, None: "l2"; a graph has its own
    :param k: of the graph of vectors, None: 32
    :param base: with a graph: its vectors, for those of them that are equal
    :param device: of a graph that is there as above, of a build as of :func:`gnnd.build`
    :param params: of :func:`gnnd.build`, as `recall`, for vectors
    """
    where: dict[str, Any] = {"device": device, "stream": stream, "allocator": allocator}
    given = {"threshold": threshold, "values": values, "neighbors": neighbors, "threads": threads}
    if isinstance(x, Graph) or hasattr(x, "to_graph"):
        x = require_graph(x, "x")
        if params:
            raise TypeError(f"a graph is not built again: {', '.join(params)}")
        for name, wanted, own in (("metric", metric, x.metric), ("k", k, x.k)):
            if wanted is not None and wanted != own:
                raise ValueError(f"{name} = {wanted!r} for a graph, whose {name} is {own!r}")
        equal = None
        if base is not None:
            rows = equal_rows(base, threads=threads)
            if len(rows) != x.n:
                raise ValueError(f"a graph of {x.n} objects for {len(rows)} vectors")
            equal = _view_of(rows[:, None], "i32")
        return Duplicates(*_run(_native.duplicates, x, given, equal, **where))
    if base is not None:
        raise TypeError("base is for a graph; x are vectors")
    k, metric = 32 if k is None else k, "l2" if metric is None else metric
    params = {"recall": 0.99, "k": k, "metric": metric, "threads": threads, **params}
    return Duplicates(*duplicates_of(x, given, **where, **params))


def search_links(
    x: Any, graph: Graph, degree: int = 32, *, entry: int | None = None, threads: int = 0, device: Any = "cpu"
) -> np.ndarray:
    """Links for a greedy search: neighbours, but in as many directions as possible (HNSW's and NSG's rule), and their
    opposites while there is room.

    :param x: the n x d vectors of the graph, in host memory
    :param degree: links of an object, 1 to 4096
    :param entry: an object from which all can be reached then, and the links are for searches from there: of all scales
        where neighbours lead nowhere far. None: some may be out of reach
    :param device: "cpu", "cuda", "cuda:N" or "auto". A GPU makes up to 128 links of an object, and compares floats as
        float16, so that some links are others
    :return: n x degree, int32, -1 at the end of rows with fewer
    """
    require_graph(graph)
    first = -1 if entry is None else _native.whole("entry", entry, 0, graph.n - 1)
    links, _ = _links_with_levels(x, graph, degree, 0, entry=first, threads=threads, device=device)
    return links.reshape(graph.n, degree)


def _links_with_levels(
    x: Any, graph: Graph, degree: int, upper_degree: int, *, entry: int, threads: int, device: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Links as FAISS's HNSW keeps them, and of each object on how many levels it is.

    :param upper_degree: links of an object on each level above the one that all are on; 0: there are no others
    :param entry: -1: none
    """
    given = vectors(x)
    if given.device >= 0:
        raise ValueError("the vectors lie on a GPU; links are chosen of vectors on the host")
    parts = graph.on_host()._parts()
    _native.whole("degree", degree, 1, 4096)
    links = np.empty((1, _native.places_of_links(graph.n, degree, upper_degree)), np.int32)
    levels = np.ones((1, graph.n), np.int32)
    views = _view_of(links, "i32"), _view_of(levels, "i32")
    _native.search_links(given.native, parts, degree, upper_degree, *views, entry, threads, named(device))
    return links[0], levels[0]


def _edges(neighbors: int, values: str, radius: float | None, threads: int) -> dict[str, Any]:
    return {"neighbors": neighbors, "values": values, "radius": radius, "threads": threads}


def _reachability(neighbors: int, min_samples: int, alpha: float, threads: int) -> dict[str, Any]:
    return {"neighbors": neighbors, "min_samples": min_samples, "alpha": alpha, "threads": threads}


def _run(operation: Any, graph: Graph, *arguments: Any, **where: Unpack[Where]) -> Any:
    """Calls a native function where it is to run."""
    parts, device, call = call_of_graph(operation.__name__, graph, **where)
    with call.run() as run:
        return operation(parts, *arguments, device, run)


def _matrix(operation: Any, graph: Graph, *arguments: Any, **where: Unpack[Where]) -> Any:
    return csr_of(_run(operation, graph, *arguments, **where))

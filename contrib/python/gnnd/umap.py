# SPDX-License-Identifier: MIT
"""UMAP: neighbours for umap-learn and for cuML.

umap.UMAP(n_neighbors=15, precomputed_knn=gnnd.umap.precomputed_knn(x, 15)).fit_transform(x)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _native
from ._arrays import rows_on_host, vectors
from ._build import build
from ._graph import Graph
from ._metrics import distances_of, metric_of, true_distances
from ._search import Searcher, held_as


def knn(x: Any, n_neighbors: int = 15, metric: str = "euclidean", **params: Any) -> tuple[np.ndarray, np.ndarray]:
    """Indices and distances, n x n_neighbors, each row beginning with the object itself at 0: cuML's precomputed_knn,
    and the first two of umap-learn's.

    :param x: n x d vectors, whose graph is built, or a :class:`gnnd.Graph` that is there, of n_neighbors - 1 or more
        columns; its own metric counts
    :param n_neighbors: 2 to n, at most 1025; UMAP's, which counts the object itself
    :param metric: umap's name: "euclidean", "manhattan", "chebyshev", "cosine"
    :param params: of :func:`gnnd.build`, as `recall` and `device`
    :return: int32 and float32
    """
    _native.whole("n_neighbors", n_neighbors, 2)
    if isinstance(x, Graph):
        graph = x.on_host()
        if graph.k < n_neighbors - 1:
            raise ValueError(
                f"n_neighbors = {n_neighbors} of a graph with {graph.k} neighbours; it counts the object too"
            )
    else:
        given = vectors(x)
        if not 2 <= n_neighbors <= given.n:
            raise ValueError(f"n_neighbors = {n_neighbors}, allowed are 2 to {given.n}, the number of vectors")
        # Every neighbour is handed over, and counts; a build alone would count the nearest ten.
        graph = build(x, n_neighbors - 1, metric_of(metric), **{"recall_at": n_neighbors - 1, **params}).on_host()
    values = np.ascontiguousarray(graph.distances[:, : n_neighbors - 1])
    distances = true_distances(values, graph.metric) if isinstance(x, Graph) else distances_of(values, metric)
    own = np.arange(graph.n, dtype=np.int32)[:, None]
    ids = np.concatenate([own, graph.ids[:, : n_neighbors - 1]], axis=1)
    return ids, np.concatenate([np.zeros((graph.n, 1), np.float32), distances], axis=1)


def precomputed_knn(
    x: Any,
    n_neighbors: int = 15,
    metric: str = "euclidean",
    *,
    search: str = "auto",
    recall: float = 0.99,
    **params: Any,
) -> tuple[np.ndarray, np.ndarray, Any]:
    """Makes what umap-learn's ``UMAP(precomputed_knn=...)`` takes: indices, distances and a searcher for transform().

    :param x: n x d vectors in host memory, kept for transform(); arguments as for :func:`knn`
    :param search: of transform(): "exact", "graph" or "auto", see :class:`gnnd.sklearn.KNeighborsTransformer`
    :raises ModuleNotFoundError: without pynndescent, which umap-learn depends on
    """
    array = rows_on_host(x)
    ids, distances = knn(array, n_neighbors, metric, recall=recall, **params)
    searcher = Searcher(
        array,
        metric_of(metric),
        method=search,
        recall=recall,
        device=params.get("device", "auto"),
        threads=params.get("threads", 0),
    )
    return ids, distances, _search_index(searcher, metric)


def _search_index(searcher: Searcher, metric: str) -> Any:
    """umap-learn takes nothing but a pynndescent.NNDescent here; of that it uses what this has."""
    from pynndescent import NNDescent

    class SearchIndex(NNDescent):
        """Finds fitted vectors near new ones."""

        _angular_trees = False

        def __init__(self) -> None:
            self._raw_data = searcher.x
            self._wide: Searcher | None = None

        def prepare(self) -> None:
            """There is nothing to prepare."""

        def query(self, query_data: Any, k: int = 10, epsilon: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
            """Ids and distances, m x k. Epsilon is not needed: the recall says how good they are."""
            found = searcher
            queries = held_as(np.asarray(query_data), searcher.x.dtype)
            if queries is None:  # umap-learn's are of float32, whatever it was fitted with
                found = self._wide = self._wide or searcher.in_float32()
                queries = np.asarray(query_data, dtype=np.float32)
            ids, values = found.search(np.ascontiguousarray(queries), k)
            return ids, distances_of(values, metric)

        def update(self, *_: Any, **__: Any) -> None:
            raise NotImplementedError("neighbours that gnnd has precomputed cannot be updated; fit again")

        def __reduce__(self) -> Any:
            return _search_index, (searcher, metric)

    return SearchIndex()

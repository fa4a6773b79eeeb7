# SPDX-License-Identifier: MIT
"""HDBSCAN: the sparse matrix of mutual reachability, from which hdbscan and scikit-learn make their clusters.

distances = gnnd.hdbscan.mutual_reachability(x, min_samples=5)
hdbscan.HDBSCAN(metric="precomputed", min_samples=1, min_cluster_size=15).fit(distances)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import connected_components

from . import _native
from ._arrays import rows_on_host
from ._build import build
from ._graph import Graph, require_graph
from ._metrics import distances_of, metric_of
from ._search import Searcher
from .graph import core_distances, mutual_reachability_graph

_FEW = 63  # objects of a component whose nearest others are all found by one search
_MEMBERS = 1024  # of a larger component that look for others
_LEAST = np.finfo(np.float32).tiny  # in place of 0, which hdbscan takes as no entry


def mutual_reachability(
    x: Any,
    min_samples: int = 5,
    metric: str = "euclidean",
    *,
    alpha: float = 1.0,
    k: int | None = None,
    graph: Graph | None = None,
    recall: float = 0.99,
    device: Any = "auto",
    threads: int = 0,
    **params: Any,
) -> csr_matrix:
    """A connected graph of mutual reachability: the pairs of the k-NN graph, and those that join its components.

    Give it to ``hdbscan.HDBSCAN(metric="precomputed", min_samples=1)`` or to ``sklearn.cluster.HDBSCAN``: with
    min_samples of 1 both leave the values as they are. Pairs that join components are found exactly, of up to 1,024
    objects of a component; each round joins every component to the one nearest to it, until there is one.

    :param x: n x d vectors in host memory
    :param min_samples: neighbours that make an object dense, itself not counted, as hdbscan's; scikit-learn's counts it
    :param metric: "euclidean", "cosine", "manhattan" or "chebyshev"
    :param k: of the graph that is built, at least min_samples; None: the larger one of 2 min_samples and 32
    :param graph: of the vectors, that is there already
    :param params: of :func:`gnnd.build`
    :return: n x n, float64, symmetric; no entry is 0 (equal vectors have the least positive float32)
    """
    name = metric_of(metric)
    rows = rows_on_host(x)
    if len(rows) < 2:
        raise ValueError(f"x has {len(rows)} vectors, allowed are 2 and more")
    _native.whole("min_samples", min_samples, 1)
    if graph is None:
        columns = min(max(2 * min_samples, 32) if k is None else _native.whole("k", k, 1), len(rows) - 1)
        params = {"recall_at": columns, **params}  # every pair counts; a build alone would count the nearest ten
        graph = build(rows, columns, name, recall=recall, device=device, threads=threads, **params)
    require_graph(graph)
    if graph.n != len(rows) or graph.metric != name:
        raise ValueError(f"a graph of {graph.n} objects under {graph.metric} for {len(rows)} vectors under {name}")
    graph = graph.on_host()
    core = core_distances(graph, min_samples=min_samples, alpha=alpha, threads=threads)
    matrix = mutual_reachability_graph(graph, min_samples=min_samples, alpha=alpha, threads=threads)
    matrix = matrix.astype(np.float64)
    matrix.data = np.maximum(matrix.data, _LEAST)
    searcher = Searcher(rows, name, method="exact", device=device, threads=threads)
    while True:
        count, labels = connected_components(matrix, directed=False)
        if count == 1:
            return matrix
        i, j, distances = _joins(searcher, metric, labels, core)
        values = np.maximum(np.maximum(core[i], core[j]), distances / np.float32(alpha)).astype(np.float64)
        added = coo_matrix((np.maximum(values, _LEAST), (i, j)), shape=matrix.shape).tocsr()
        matrix = matrix.maximum(added.maximum(added.T)).tocsr()


def _joins(
    searcher: Searcher, metric: str, labels: np.ndarray, core: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For every component but the largest the pair that joins it to another: objects inside and outside, distances."""
    sizes = np.bincount(labels)
    largest = int(np.argmax(sizes))
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    small = np.flatnonzero((sizes[labels] <= _FEW) & (labels != largest))
    if small.size:
        # Among so many nearest there is one outside, for a component has fewer objects.
        ids, values = searcher.search(searcher.x[small], min(_FEW + 1, len(searcher.x)))
        outside = np.argmax(labels[ids] != labels[small][:, None], axis=1)[:, None]
        nearest = np.take_along_axis(ids, outside, 1)[:, 0]
        found.append((small, nearest, distances_of(np.take_along_axis(values, outside, 1), metric)[:, 0]))
    for component in np.flatnonzero(sizes > _FEW):
        if component == largest:
            continue
        members = np.flatnonzero(labels == component)
        members = members[np.argsort(core[members], kind="stable")[:_MEMBERS]]
        others = np.flatnonzero(labels != component)
        outside = Searcher(
            searcher.x[others], searcher.metric, method="exact", device=searcher.device, threads=searcher.threads
        )
        ids, values = outside.search(searcher.x[members], 1)
        found.append((members, others[ids[:, 0]], distances_of(values, metric)[:, 0]))
    i, j, distances = (np.concatenate(part) for part in zip(*found, strict=True))
    order = np.lexsort((np.maximum(np.maximum(core[i], core[j]), distances), labels[i]))
    best = order[np.r_[True, np.diff(labels[i][order]) != 0]]
    return i[best], j[best], distances[best]

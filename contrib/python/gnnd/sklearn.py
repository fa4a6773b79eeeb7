# SPDX-License-Identifier: MIT
"""scikit-learn: neighbours for whatever takes a precomputed graph.

make_pipeline(gnnd.sklearn.KNeighborsTransformer(n_neighbors=30), TSNE(metric="precomputed", init="random"))
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _native
from ._build import build
from ._digits import narrowed, widened
from ._graph import Recall
from ._metrics import distances_of, metric_of, translation_invariant
from ._search import Searcher, held_as

# Others become the first, which holds whole numbers of 32 bits; those of 64 bits are checked before they do.
_DTYPES = (np.float64, np.float32, np.float16, np.uint8, np.int8, np.int64, np.uint64)


class KNeighborsTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The graph of the nearest neighbours as a sparse matrix, as scikit-learn's own class of this name makes it.

    :param mode: "distance": entries are distances, and rows have n_neighbors + 1 of them, for the first is the vector
        itself; "connectivity": they are 1, and the vector itself is one of n_neighbors
    :param n_neighbors: 1 to 1023
    :param metric: "euclidean", "sqeuclidean", "cosine", "manhattan", "chebyshev", "chi2", other names that
        scikit-learn has for them, and "minkowski" with p of 1, 2 or inf
    :param p: of "minkowski"
    :param recall: the share of true neighbours that fit_transform() must find; it is measured. 1: exact
    :param search: how transform() finds neighbours of new vectors: "exact" compares them with all that were fitted,
        "graph" searches along a graph with the recall asked for (measured on a sample of them), "auto" takes the faster
    :param device: "auto" (a GPU if there is one), "cpu", "cuda" or "cuda:N"
    :param random_state: seed of the build, an int; None: 1234. Builds by several threads may still differ where
        neighbours are not found
    :param n_jobs: CPU threads; None and -1: all

    Vectors are compared in float32. Those of float64 and of whole numbers are moved to their mean before, where the
    metric allows it, so that digits of a common offset cost nothing. Where float32 takes the digits by which they
    differ all the same, a ValueError says so, as of :func:`gnnd.build`. float16, uint8 and int8 stay what they are.

    ``recall_`` is the measured recall of fit_transform() as a :class:`gnnd.Recall`, or None where nothing was measured;
    ``n_samples_fit_`` the number of fitted vectors, ``effective_metric_`` gnnd's name of the metric.
    """

    def __init__(
        self,
        *,
        mode: str = "distance",
        n_neighbors: int = 5,
        metric: str = "minkowski",
        p: float = 2,
        recall: float = 0.99,
        search: str = "auto",
        device: Any = "auto",
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.mode = mode
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.p = p
        self.recall = recall
        self.search = search
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> KNeighborsTransformer:  # noqa: N803
        """Keeps the n x d vectors; nothing is built yet."""
        if self.mode not in ("distance", "connectivity"):
            raise ValueError(f"mode = {self.mode!r}, allowed are 'distance' and 'connectivity'")
        if (
            isinstance(self.n_neighbors, bool)
            or not isinstance(self.n_neighbors, (int, np.integer))
            or not 1 <= self.n_neighbors <= 1023
        ):
            raise ValueError(f"n_neighbors = {self.n_neighbors!r}, allowed are 1 to 1023")
        metric = metric_of(self.metric, self.p)
        x = self._validated(X)
        self._offset = x.mean(0) if x.dtype == np.float64 and translation_invariant(metric) else None
        self._searcher = Searcher(
            self._narrow(x),
            metric,
            method=self.search,
            recall=self.recall,
            device=self.device,
            threads=_threads(self.n_jobs),
        )
        self.effective_metric_ = metric
        self.n_samples_fit_ = self._n_features_out = len(x)
        self.recall_: Recall | None = None
        self._wide = x.dtype == np.float64
        return self

    def fit_transform(self, X: Any, y: Any = None) -> csr_matrix:  # noqa: N803
        """The graph of the n vectors among themselves: n x n, each row nearest first, beginning with itself."""
        self.fit(X)
        x, n, k = self._searcher.x, self.n_samples_fit_, self._entries() - 1
        self._require_rows(k + 1)
        ids = np.empty((n, k + 1), np.int32)
        values = np.zeros((n, k + 1), np.float32)
        ids[:, 0] = np.arange(n)
        if k > 0:
            # Every neighbour is handed over, and counts; a build alone would count the nearest ten.
            params: dict[str, Any] = {"recall_at": k}
            if self.random_state is not None:
                params["seed"] = _native.whole("random_state", self.random_state, 0)
            graph = build(
                x,
                k,
                self.effective_metric_,
                recall=self.recall,
                device=self.device,
                threads=self._searcher.threads,
                **params,
            ).on_host()
            self._searcher.graph, self.recall_ = graph, graph.measured
            ids[:, 1:] = graph.ids
            values[:, 1:] = distances_of(graph.distances, self.metric, self.p)
        return self._matrix(ids, values, self._wide)

    def transform(self, X: Any) -> csr_matrix:  # noqa: N803
        """The neighbours that vectors have among the fitted ones: m x n, each row its nearest first."""
        check_is_fitted(self)
        self._require_rows(self._entries())
        given = self._validated(X, reset=False)
        queries = self._narrow(given)
        if queries.dtype != self._searcher.x.dtype:
            queries = _as(queries, self._searcher.x.dtype)
        ids, values = self._searcher.search(queries, self._entries())
        return self._matrix(ids, distances_of(values, self.metric, self.p), given.dtype == np.float64)

    def _entries(self) -> int:
        """Of a row."""
        return self.n_neighbors + (self.mode == "distance")

    def _require_rows(self, count: int) -> None:
        if count > self.n_samples_fit_:
            raise ValueError(
                f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {count}, n_samples_fit = "
                f"{self.n_samples_fit_} (mode 'distance' counts the vector itself beside n_neighbors)"
            )

    def _validated(self, X: Any, **how: Any) -> np.ndarray:  # noqa: N803
        x = validate_data(self, X, dtype=_DTYPES, order="C", **how)
        return widened(x, "X") if x.dtype in (np.int64, np.uint64) else x

    def _narrow(self, x: np.ndarray) -> np.ndarray:
        if getattr(self, "_offset", None) is not None:
            x = x - self._offset
        return narrowed(x, "X") if x.dtype == np.float64 else x

    def _matrix(self, ids: np.ndarray, values: np.ndarray, wide: bool) -> csr_matrix:
        data = np.ones(values.size, np.float32) if self.mode == "connectivity" else values.reshape(-1)
        if wide:  # a transformer's result is of its input's type
            data = data.astype(np.float64)
        indptr = np.arange(0, ids.size + 1, ids.shape[1], dtype=np.int32 if ids.size < 2**31 else np.int64)
        return csr_matrix(
            (data, ids.reshape(-1).astype(indptr.dtype, copy=False), indptr), shape=(len(ids), self.n_samples_fit_)
        )


def _as(queries: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Vectors of another type than the fitted ones. :raises ValueError: where that type does not hold them"""
    converted = held_as(queries, dtype)
    if converted is None:
        raise ValueError(f"vectors of {queries.dtype} for ones of {dtype}, which does not hold them; fit with float32")
    return converted


def _threads(jobs: int | None) -> int:
    if jobs is None or jobs == -1:
        return 0
    if _native.whole("n_jobs", jobs) < 1:
        raise ValueError(f"n_jobs = {jobs}, allowed are None, -1 and 1 or more")
    return jobs

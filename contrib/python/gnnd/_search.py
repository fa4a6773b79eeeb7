# SPDX-License-Identifier: MIT
"""The nearest rows of a set for vectors that are not in it."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from . import _native
from ._arrays import vectors
from ._build import build
from ._graph import Graph, _view_of
from ._process import named
from .graph import search_links

# Measured on descriptors (benchs/NOTEBOOK.md): a search along links takes as long as comparing with so many rows, and
# making links as many comparisons for each row.
_WALKED_ROWS, _LINKED_ROWS = 150_000, 20_000
_DEGREE = 32
_SAMPLE = 200  # queries whose neighbours are compared with the exact ones
_WIDEST = 2048
_ROUNDING = 1e-5


class Searcher:
    """Finds neighbours among the rows of x: by comparing with all of them, or along links where there are many.

    What searches along links find is measured on a sample of the queries, whose exact neighbours are looked for; while
    it is less than asked for they are made wider, and in the end all rows are compared.

    :param x: n x d vectors in host memory, kept
    :param method: "exact", "graph", or "auto": whichever is expected to be faster
    """

    def __init__(
        self,
        x: np.ndarray,
        metric: str,
        *,
        method: str = "auto",
        recall: float = 0.99,
        device: Any = "auto",
        threads: int = 0,
    ) -> None:
        if method not in ("auto", "exact", "graph"):
            raise ValueError(f"search = {method!r}, allowed are 'auto', 'exact' and 'graph'")
        self.x, self.metric, self.method = x, metric, method
        self.recall = _native.real("recall", recall, 0, 1)
        self.device, self.threads = device, threads
        self.graph: Graph | None = None  # given, or built when it is needed
        self.links: np.ndarray | None = None
        #: Of the last search along links: the recall that was measured, and the width of its beam.
        self.measured: float | None = None
        self.width = 64

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest rows of each query: ids and the metric's values, m x k, best first."""
        by_links = self.method == "graph" or (self.method == "auto" and self._pays(len(queries)))
        if by_links and len(self.x) > 2:
            found = self._along_links(queries, k)
            if found is not None:
                return found
        return self._exact(queries, k)

    def in_float32(self) -> Searcher:
        """This one with its rows in float32, for queries that their own type does not hold. The links are the same."""
        wide = copy.copy(self)
        wide.x = self.x.astype(np.float32)
        return wide

    def _pays(self, count: int) -> bool:
        """True where searches along links are expected to be faster for so many queries."""
        if self.recall >= 1 or count <= 5 * _SAMPLE:
            return False
        links = 0 if self.links is not None else _LINKED_ROWS * len(self.x)
        return count * (len(self.x) - _WALKED_ROWS) > links

    def _exact(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        return _native.nearest_rows(vectors(self.x).native, vectors(queries).native, self._params(k, self.device))

    def _along_links(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray] | None:
        links = self._links()
        chosen = np.random.default_rng(1).permutation(len(queries))[:_SAMPLE]
        truth_ids, truth = self._exact(queries[chosen], k)
        # A GPU that has compared all may add in another order: values that round elsewhere are equal.
        last = truth[:, -1:]
        slack = _ROUNDING * np.abs(last)
        while self.width <= min(_WIDEST, len(self.x)):
            ids, values = self._walk(queries[chosen], links, k)
            nearer = values >= last - slack if _native.is_similarity(self.metric) else values <= last + slack
            self.measured = float(np.mean(nearer & (ids >= 0)))
            if self.measured >= self.recall:
                ids, values = self._walk(queries, links, k)
                short = np.flatnonzero(ids[:, -1] < 0)
                if short.size:  # that did not reach k rows
                    ids[short], values[short] = self._exact(queries[short], k)
                return ids, values
            self.width *= 2
        return None

    def _walk(self, queries: np.ndarray, links: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        return _native.search_rows(
            vectors(self.x).native,
            _view_of(links, "i32"),
            vectors(queries).native,
            max(self.width, k),
            self._params(k, "cpu"),
        )

    def _params(self, k: int, device: Any) -> dict[str, Any]:
        return {"device": named(device), "k": k, "metric": self.metric, "threads": self.threads}

    def _links(self) -> np.ndarray:
        if self.links is None:
            if self.graph is None or self.graph.k < _DEGREE // 2:
                self.graph = build(
                    self.x, min(_DEGREE, len(self.x) - 1), self.metric, device=self.device, threads=self.threads
                )
            self.links = search_links(self.x, self.graph, _DEGREE, entry=0, threads=self.threads)
        return self.links


def held_as(queries: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """Queries in another type, None where that does not hold them. float32 takes what is nearest to them."""
    with np.errstate(over="ignore", invalid="ignore"):
        converted = queries.astype(dtype, copy=False)
    return converted if dtype == np.float32 or np.array_equal(converted, queries) else None

# SPDX-License-Identifier: MIT
"""Other libraries' names of the metrics, and their distances, which are true distances."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _native
from ._graph import _view_of

# The name elsewhere (scikit-learn, SciPy, UMAP, HDBSCAN) and gnnd's.
_NAMES = {
    **dict.fromkeys(("euclidean", "l2", "sqeuclidean"), "l2"),
    "cosine": "cosine",
    **dict.fromkeys(("manhattan", "l1", "cityblock", "taxicab"), "l1"),
    **dict.fromkeys(("chebyshev", "linfinity", "linf"), "linf"),
    "chi2": "chi2",
}
_MINKOWSKI = {1: "manhattan", 2: "euclidean", np.inf: "chebyshev"}


def metric_of(name: Any, p: float = 2) -> str:
    """gnnd's metric of another library's name. :raises ValueError: that lists the known ones"""
    if isinstance(name, str) and name == "minkowski":
        if p not in tuple(_MINKOWSKI):  # p need not be hashable
            raise ValueError(f"metric 'minkowski' with p = {p!r}, allowed are 1, 2 and inf")
        name = _MINKOWSKI[p]
    if not isinstance(name, str) or name not in _NAMES:
        raise ValueError(f"metric {name!r} is not known here; there are {', '.join(_NAMES)} and minkowski")
    return _NAMES[name]


def distances_of(values: np.ndarray, name: Any, p: float = 2) -> np.ndarray:
    """The distances of that name, from gnnd's values. A new array."""
    if isinstance(name, str) and name == "sqeuclidean":
        return values.copy()
    return true_distances(values, metric_of(name, p))


def true_distances(values: np.ndarray, metric: str, threads: int = 0) -> np.ndarray:
    """The root of squared l2, 1 - similarity, others as they are; 0 for equal vectors, never below it. A new array."""
    values = np.ascontiguousarray(values, dtype=np.float32)
    out = np.empty_like(values)
    _native.true_distances(_view_of(values, "f32"), metric, _view_of(out, "f32"), threads)
    return out


def translation_invariant(metric: str) -> bool:
    """True where the metric does not change when all vectors are moved."""
    return bool(_native.metric_traits(metric)["translation_invariant"])

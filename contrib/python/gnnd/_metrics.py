# SPDX-License-Identifier: MIT
"""Other libraries' names of the metrics, and their distances, which are true distances."""

from __future__ import annotations

from typing import Any

import numpy as np

# The name elsewhere (scikit-learn, SciPy, UMAP, HDBSCAN), gnnd's, and how the distance follows from gnnd's value.
_NAMES = {
    "euclidean": ("l2", "root"),
    "l2": ("l2", "root"),
    "sqeuclidean": ("l2", "same"),
    "cosine": ("cosine", "one_minus"),
    "manhattan": ("l1", "same"),
    "l1": ("l1", "same"),
    "cityblock": ("l1", "same"),
    "taxicab": ("l1", "same"),
    "chebyshev": ("linf", "same"),
    "linfinity": ("linf", "same"),
    "linf": ("linf", "same"),
    "chi2": ("chi2", "same"),
}
_MINKOWSKI = {1: "manhattan", 2: "euclidean", np.inf: "chebyshev"}


def metric_of(name: Any, p: float = 2) -> str:
    """gnnd's metric of another library's name. :raises ValueError: that lists the known ones"""
    return _entry(name, p)[0]


def distances_of(values: np.ndarray, name: Any, p: float = 2) -> np.ndarray:
    """True distances from gnnd's values: 0 for equal vectors, never below it. A new array, or the given one."""
    way = _entry(name, p)[1]
    if way == "root":
        return np.sqrt(values)
    if way == "one_minus":
        return np.clip(1 - values, 0, None)
    return values


def true_distances(values: np.ndarray, metric: str) -> np.ndarray:
    """The same under gnnd's own name of the metric: the root of squared l2, 1 - cosine.

    :raises ValueError: for the inner product, of which there is no distance
    """
    if metric == "ip":
        raise ValueError("inner products are no distances; normalise the vectors and use 'cosine'")
    return distances_of(values, metric)


def translation_invariant(metric: str) -> bool:
    """Whether the metric does not change when all vectors are moved."""
    return metric in ("l2", "l1", "linf")


def _entry(name: Any, p: float) -> tuple[str, str]:
    if name == "minkowski":
        if p not in _MINKOWSKI:
            raise ValueError(f"metric 'minkowski' with p = {p!r}, allowed are 1, 2 and inf")
        name = _MINKOWSKI[p]
    if not isinstance(name, str) or name not in _NAMES:
        raise ValueError(f"metric {name!r} is not known here; there are {', '.join(_NAMES)} and minkowski")
    return _NAMES[name]

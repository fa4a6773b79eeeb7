# SPDX-License-Identifier: MIT
"""Numbers of other types as float32: none of the digits by which vectors differ is lost without a word."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import _native


def widened(x: np.ndarray, name: str) -> np.ndarray:
    """Numbers of any type as float64. :raises ValueError: where it does not hold them, as whole ones beyond 2^53"""
    most = 2**53
    if x.dtype.kind in "iu" and x.dtype.itemsize > 4 and x.size and (x.max() > most or x.min() < -most):
        raise ValueError(
            f"{name} holds {x.min()} to {x.max()}; float64 has whole numbers up to {most}: subtract an offset"
        )
    return x.astype(np.float64)


def narrowed(x: np.ndarray, name: str) -> np.ndarray:
    """float64 vectors as float32, which is the widest that vectors are compared in.

    :raises ValueError: where it lacks the digits by which they differ, as of 1e12 + i. A sample tells; files of float64
        are looked at where they are opened
    """
    rows = np.ascontiguousarray(x[:: _native.digits_step(*x.shape)], np.float64)
    _native.require_digits(name, rows.ctypes.data, *rows.shape)
    with np.errstate(all="ignore"):  # infinities are found, and their row is named
        return x.astype(np.float32)


def moved_warning(
    ids: np.ndarray, distances: np.ndarray, metric: str, at: int, parts: dict[str, tuple[int, np.ndarray | None]]
) -> str:
    """Of a graph of vectors of which some were converted: where float32 tells its neighbours apart no more; or empty.

    :param ids: the graph's, n x k, as its distances
    :param parts: the vectors' arrays by name, one after the other: how many, and those of float64
    """
    wide = [array for _, array in parts.values() if array is not None]
    if not wide:
        return ""
    told: str = _native.moved_warning(
        ids,
        distances,
        metric,
        at,
        wide[0].shape[1],
        [(name, n, _rows_of(x)) for name, (n, x) in parts.items()],
    )
    return told


def _rows_of(x: np.ndarray | None) -> Callable[[list[int]], np.ndarray] | None:
    return None if x is None else lambda rows: np.ascontiguousarray(x[rows], np.float64)

# SPDX-License-Identifier: MIT
"""Numbers of other types as float32: none of the digits by which vectors differ is lost without a word."""

from __future__ import annotations

import numpy as np

# The sample by which narrowed() tells what float32 takes: vectors, and at most so many components of them.
_SAMPLE, _COMPONENTS = 1000, 1 << 22


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

    :raises ValueError: where that takes the digits by which they differ, as of 1e12 + i. It is a sample that tells:
        the error of more than half of its vectors is more than 1/256 of their distance from the median
    """
    with np.errstate(all="ignore"):  # infinities are found, and their row is named
        narrow = x.astype(np.float32)
        chosen = slice(None, None, max(1, len(x) // _SAMPLE, x.size // _COMPONENTS))
        rows, error = x[chosen], narrow[chosen] - x[chosen]
        finite = np.isfinite(error).all(axis=1)
        rows, error = rows[finite], error[finite]
        if not rows.size:
            return narrow
        scale = np.abs(rows).max() or 1.0  # squares of very large and very small numbers are none
        spread, lost = (
            float(np.median(np.linalg.norm(one / scale, axis=1)) * scale)
            for one in (rows - np.median(rows, axis=0), error)
        )
    if lost > spread / 256 > 0:
        raise ValueError(
            f"{name} is of float64, and differs by less than float32 has digits for: the vectors lie {spread:.2g} from "
            f"their median, and float32, in which vectors are compared, moves them by {lost:.2g}. Subtract their mean, "
            "which changes no l2, l1 and linf, or scale them"
        )
    return narrow

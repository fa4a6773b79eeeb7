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

    :raises ValueError: as :func:`require_digits`
    """
    require_digits(x, name)
    with np.errstate(all="ignore"):  # infinities are found, and their row is named
        return x.astype(np.float32)


def require_digits(x: np.ndarray, name: str) -> None:
    """float32 has the digits of float64 vectors, which may lie in a file.

    :raises ValueError: where it lacks those by which they differ, as of 1e12 + i. It is a sample that tells: the error
        of more than half of its vectors is more than 1/256 of their distance from the median
    """
    rows = np.asarray(x[:: max(1, len(x) // _SAMPLE, x.size // _COMPONENTS)], np.float64)
    with np.errstate(all="ignore"):
        error = rows.astype(np.float32) - rows
        finite = np.isfinite(error).all(axis=1)
        rows, error = rows[finite], error[finite]
        if not rows.size:
            return
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


def require_digits_of_file(path: str) -> None:
    """As :func:`require_digits`, of a file in NumPy's format; other formats hold no float64. Of one that cannot be read
    nothing is said here."""
    try:
        x = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return
    if isinstance(x, np.memmap) and x.ndim == 2 and x.dtype.kind == "f" and x.dtype.itemsize > 4:
        require_digits(_sample_of(path, x), path)


def _sample_of(path: str, x: np.memmap) -> np.ndarray:
    """Some rows of a matrix in a file, which are read and not mapped: the system would end the process where another
    one shortens the file."""
    apart = max(1, len(x) // _SAMPLE, x.size // _COMPONENTS)
    across, length = (x.T, len(x[::apart])) if x.flags.f_contiguous else (x[::apart], x.shape[1])
    parts = []
    with open(path, "rb") as file:
        for row in across:
            file.seek(x.offset + row.ctypes.data - x.ctypes.data)
            parts.append(np.fromfile(file, x.dtype, length))
    whole = np.stack([part for part in parts if len(part) == length] or [np.empty(length, x.dtype)])
    return whole.T if x.flags.f_contiguous else whole

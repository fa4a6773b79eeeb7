# SPDX-License-Identifier: MIT
"""Work on pieces of arrays and files by several threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def in_threads(threads: int, action: Callable[[T], R], pieces: Iterable[T]) -> list[R]:
    """What it gives for each piece, in their order; by this thread alone where there is one of either. What it raises
    is raised here."""
    pieces = list(pieces)
    if min(threads, len(pieces)) <= 1:
        return [action(piece) for piece in pieces]
    with ThreadPoolExecutor(min(threads, len(pieces))) as pool:
        return list(pool.map(action, pieces))

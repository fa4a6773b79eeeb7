# SPDX-License-Identifier: MIT
"""The cut of a base into shards: which vectors a shard has, and where an object is."""

from __future__ import annotations

import contextlib
import functools
import os
import zlib
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from ._base import Base, Rows
from ._plan import Plan
from ._threads import in_threads

Places = tuple[np.ndarray, np.ndarray]

_BLOCK = 16 << 20  # bytes that a thread sums up at a time
_THREADS = 16  # more read memory no faster


class Cut(Protocol):
    """As a worker sees it."""

    @property
    def moved(self) -> int:
        """Bytes of vectors that it has read."""

    def vectors(self, shard: int) -> Rows:
        """Those of a shard."""

    def places(self) -> Places:
        """Of the objects on which the recall is measured the shards, and their numbers in these."""

    def naming(self, shard: int) -> contextlib.AbstractContextManager[None]:
        """Errors in the block that name a vector of the shard say what its number is one of."""


class Reading:
    """Ranges of the base, each of which must be the same whenever it is read."""

    def __init__(self, plan: Plan, base: Base, threads: int = 0) -> None:
        self._plan, self._base = plan, base
        self._threads = min(threads or len(os.sched_getaffinity(0)), _THREADS)
        self._sums: dict[int, list[int]] = {}  # of the blocks of a part, as they were read first
        self.moved = 0

    def part(self, number: int) -> Rows:
        """As many rows as the shard of this number has, from its begin on. :raises OSError: others than before"""
        for _ in range(3):
            rows = self._base.read(self._plan.begin(number), self._plan.rows(number), self._threads)
            self.moved += rows.array.nbytes
            found = self._sums_of(rows.array)
            if self._sums.setdefault(number, found) == found:
                return rows
        raise OSError(
            f"{self._plan.manifest.base['path']}: the vectors of shard {number} change from reading to reading"
        )

    def _sums_of(self, array: np.ndarray) -> list[int]:
        """Of its blocks."""
        block = max(1, _BLOCK // max(1, self._plan.row_bytes))
        return in_threads(self._threads, sum_of, [array[at : at + block] for at in range(0, len(array), block)])


def sum_of(array: np.ndarray) -> int:
    """A checksum of its bytes."""
    return zlib.crc32(memoryview(np.ascontiguousarray(array)).cast("B")) if array.size else 0


class ByRows:
    """A shard is a range of the base's rows."""

    def __init__(self, plan: Plan, base: Base, threads: int = 0) -> None:
        self._plan, self._reading = plan, Reading(plan, base, threads)

    @property
    def moved(self) -> int:
        return self._reading.moved

    def vectors(self, shard: int) -> Rows:
        return self._reading.part(shard)

    def places(self) -> Places:
        return self._places

    @functools.cached_property
    def _places(self) -> Places:
        objects = self._plan.objects().astype(np.int64)
        begins = np.array([self._plan.begin(shard) for shard in range(self._plan.manifest.count)])
        shards = np.searchsorted(begins, objects, side="right") - 1
        return shards, objects - begins[shards]

    @contextlib.contextmanager
    def naming(self, shard: int) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            if not str(error).startswith("vector "):
                raise
            raise ValueError(f"of the vectors from {self._plan.begin(shard)} on: {error}") from None

# SPDX-License-Identifier: MIT
"""The cut of a base into shards: which vectors a shard has, and where an object is."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from ._base import Base, Rows
from ._plan import Plan

Places = tuple[np.ndarray, np.ndarray]


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

    def __init__(self, plan: Plan, base: Base) -> None:
        self._plan, self._base = plan, base
        self._sums: dict[int, int] = {}  # as they were read first
        self.moved = 0

    def part(self, number: int) -> Rows:
        """As many rows as the shard of this number has, from its begin on. :raises OSError: others than before"""
        for _ in range(3):
            rows = self._base.read(self._plan.begin(number), self._plan.rows(number))
            self.moved += rows.array.nbytes
            found = sum_of(rows.array)
            if self._sums.setdefault(number, found) == found:
                return rows
        raise OSError(
            f"{self._plan.manifest.base['path']}: the vectors of shard {number} change from reading to reading"
        )


def sum_of(array: np.ndarray) -> int:
    """A checksum of its bytes."""
    return zlib.crc32(memoryview(np.ascontiguousarray(array)).cast("B")) if array.size else 0


class ByRows:
    """A shard is a range of the base's rows."""

    def __init__(self, plan: Plan, base: Base) -> None:
        self._plan, self._reading = plan, Reading(plan, base)

    @property
    def moved(self) -> int:
        return self._reading.moved

    def vectors(self, shard: int) -> Rows:
        return self._reading.part(shard)

    def places(self) -> Places:
        objects = self._plan.objects().astype(np.int64)
        begins = np.array([self._plan.begin(shard) for shard in range(self._plan.manifest.count)])
        shards = np.searchsorted(begins, objects, side="right") - 1
        return shards, objects - begins[shards]

    @contextlib.contextmanager
    def naming(self, shard: int) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            raise ValueError(f"of the vectors from {self._plan.begin(shard)} on: {error}") from None

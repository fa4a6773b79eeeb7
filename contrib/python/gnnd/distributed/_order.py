# SPDX-License-Identifier: MIT
"""The order of a base whose shards are parts of the space. Each range of its rows is read twice, by whoever takes the
task: the first time for its rows' cells, the second time to store its vectors by their shards, so that a shard is a
piece of each of these files. Within a shard objects are in the order of the base."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .. import _native
from ._base import Base, Rows, new_array, numpy_type, scattered
from ._cut import Places, Reading, sum_of
from ._plan import Plan
from ._records import Record, Records
from ._schedule import Task
from ._storage import Damaged

_READERS = 8


class Order:
    """The cut of a base by the order that its parts hold, and the tasks that make it."""

    def __init__(self, plan: Plan, records: Records, base: Base, threads: int) -> None:
        self._plan, self._records, self._base, self._threads = plan, records, base, threads
        self._reading = Reading(plan, base, threads)
        self._parts: dict[int, Record] = {}  # as they were read last
        self._rows: np.ndarray | None = None
        self._read = 0  # bytes of pieces

    @property
    def moved(self) -> int:
        return self._reading.moved + self._read

    def partition(self, _: Task) -> None:
        """Parts the space by a sample of the base."""
        start = time.monotonic()
        manifest = self._plan.manifest
        sample = scattered(self._base, _native.order_sample(manifest))
        with self.naming(0):
            planes = _native.order_planes(manifest, sample.native, self._threads)
        self._records.save_array("planes", planes, time.monotonic() - start)

    def assign(self, task: Task) -> None:
        """Finds the cells of a range of rows.

        :raises ValueError: the metric cannot work with one of them, whose number is told
        """
        start = time.monotonic()
        planes = self._records.load_array("planes", np.float32)
        rows = self._reading.part(task.first)
        begin = self._plan.begin(task.first)
        cells = _native.order_cells(self._plan.manifest, planes, rows.native, begin, self._threads)
        sizes = np.bincount(cells, minlength=self._cells(planes)).tolist()
        seconds = time.monotonic() - start
        self._records.save_array(task.records[0], cells, seconds, sizes=sizes, sum=sum_of(rows.array))

    def divide(self, task: Task) -> None:
        """Stores a range of rows by their shards, and tells the shards of those that are in a sample."""
        start = time.monotonic()
        plan, part = self._plan, task.first
        begin, count = plan.begin(part), plan.rows(part)
        name = Task("assign", part).records[0]
        cells = self._records.load_array(name, np.uint16, count)
        rows = self._reading.part(part)
        if self._records.read(name).about["sum"] != sum_of(rows.array):
            raise OSError(f"{plan.manifest.base['path']}: the vectors from {begin} on change from reading to reading")
        shards = _native.order_shards(plan.manifest, cells, self._next_in_cells(part))
        order = np.argsort(shards, kind="stable").astype(np.int32)
        counts = np.bincount(shards, minlength=plan.manifest.count)
        ends = np.cumsum(counts)
        place = np.empty_like(order)
        place[order] = np.arange(count, dtype=np.int32)
        in_piece = place - (ends - counts)[shards]  # of each row its number in its piece
        mine = _within(plan.objects(), begin, count)
        vectors = rows.array[order]
        pieces = np.split(vectors, ends[:-1])
        seconds = time.monotonic() - start
        rows_name, parts_name = task.records
        self._records.save_array(rows_name, order.astype(plan.id_type) + plan.id_type(begin), 0)
        self._records.save_array(
            parts_name,
            vectors,
            seconds,
            counts=counts.tolist(),
            sums=[sum_of(piece) for piece in pieces],
            objects=[shards[mine].tolist(), in_piece[mine].tolist()],
            borders=shards[_within(_native.border_sample(plan.manifest), begin, count)].tolist(),
        )

    def vectors(self, shard: int) -> Rows:
        plan = self._plan
        counts = self._counts()[:, shard]
        array = new_array((plan.rows(shard), plan.d), numpy_type(plan.dtype))
        ends = np.cumsum(counts)
        if ends[-1] != len(array):
            raise OSError(
                f"{self._records.storage.url}: parts of shard {shard} hold {ends[-1]} of {len(array)} vectors"
            )

        def read(part: int) -> None:
            array[ends[part] - counts[part] : ends[part]] = self._piece(part, shard)

        with ThreadPoolExecutor(_READERS) as readers:
            for _ in readers.map(read, np.flatnonzero(counts).tolist()):
                """What a reader raises is raised here."""
        self._read += array.nbytes
        return Rows(array, plan.dtype)

    def places(self) -> Places:
        counts = self._counts()
        before = np.cumsum(counts, axis=0) - counts  # of each shard its rows in the parts before
        found = [self._part(part).about["objects"] for part in range(len(counts))]
        shards = [np.array(shards, np.int64) for shards, _ in found]
        numbers = [np.array(numbers, np.int64) + before[part][shards[part]] for part, (_, numbers) in enumerate(found)]
        return np.concatenate(shards), np.concatenate(numbers)

    def shards_of_border_sample(self) -> np.ndarray:
        """The shard of each row of the base that is in the sample."""
        found = [self._part(part).about["borders"] for part in range(self._plan.manifest.count)]
        return np.concatenate([np.array(shards, np.int32) for shards in found])

    def rows(self) -> np.ndarray:
        """For each place the row of the base, of the type of the plan's ids."""
        if self._rows is None:
            plan, counts = self._plan, self._counts()
            at = [plan.begin(shard) for shard in range(len(counts))]
            order = np.empty(plan.n, plan.id_type)
            for part, pieces in enumerate(counts):
                rows = self._records.load_array(Task("divide", part).records[0], plan.id_type, plan.rows(part))
                for shard, piece in enumerate(np.split(rows, np.cumsum(pieces)[:-1])):
                    order[at[shard] : at[shard] + len(piece)] = piece
                    at[shard] += len(piece)
            self._rows = order
        return self._rows

    @contextlib.contextmanager
    def naming(self, shard: int) -> Iterator[None]:
        """Vectors were looked at before they were divided: no error names one of a shard."""
        yield

    def _cells(self, planes: np.ndarray) -> int:
        return len(planes) // (self._plan.d + 1) + 1

    def _next_in_cells(self, part: int) -> np.ndarray:
        """For each cell the place of its first row in the range: all cells before it, and its rows before the range."""
        names = [Task("assign", one).records[0] for one in range(self._plan.manifest.count)]
        sizes = np.array([self._records.read(name).about["sizes"] for name in names], np.int64)
        whole = sizes.sum(axis=0)
        return np.cumsum(whole) - whole + sizes[:part].sum(axis=0)

    def _part(self, part: int) -> Record:
        if part not in self._parts:
            self._parts[part] = self._records.read(Task("divide", part).records[1])
        return self._parts[part]

    def _counts(self) -> np.ndarray:
        """Of each part the rows in each shard."""
        return np.array([self._part(part).about["counts"] for part in range(self._plan.manifest.count)], np.int64)

    def _piece(self, part: int, shard: int) -> np.ndarray:
        """Of the vectors of a part those in a shard, verified."""
        for last in (False, True):
            record = self._part(part)
            counts, row = record.about["counts"], self._plan.row_bytes
            begin, count = sum(counts[:shard]) * row, counts[shard] * row
            try:
                data = self._records.storage.read_range(record.file, record.size, begin, count)
                array: np.ndarray = np.frombuffer(data, numpy_type(self._plan.dtype)).reshape(-1, self._plan.d)
                if sum_of(array) == record.about["sums"][shard]:
                    return array
                raise Damaged(f"{self._records.storage.url}/{record.file}: altered")
            except Damaged:
                self._parts.pop(part, None)  # it may have been made anew
                if last:
                    self._records.withdraw(Task("divide", part).records[1], record)
                    raise
        raise AssertionError


def _within(numbers: np.ndarray, begin: int, count: int) -> np.ndarray:
    """Those of [begin, begin + count), from there on."""
    return numbers[(numbers >= begin) & (numbers < begin + count)] - begin

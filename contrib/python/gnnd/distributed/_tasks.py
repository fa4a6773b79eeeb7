# SPDX-License-Identifier: MIT
"""A worker does tasks here. One may be done twice, or by two at the same time: the first record counts."""

from __future__ import annotations

import contextlib
import os
import re
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from .. import _native
from .._process import named
from ._base import Base, Rows
from ._plan import BUILD, MANIFEST, SAMPLE, Plan, finished
from ._records import Graph, Records, parts, view
from ._schedule import Task
from ._storage import Storage

T = TypeVar("T")

# The files that builds write beside records and leases, whole or not.
_MADE = re.compile(r"(local|nearest|lists)-\d{5}[.\w-]*\.gnnd(\.tmp\..*)?|[a-z]+\.(json|bin)\.tmp\.[0-9a-f]{12}")


@contextlib.contextmanager
def _rows_from(begin: int) -> Iterator[None]:
    """Errors may name a row: they say where its shard begins."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"of the vectors from {begin} on: {error}") from None


class Carrier:
    """A worker's hands and memory: it keeps the vectors, local graphs and lists of the shards of its last task."""

    def __init__(self, storage: Storage, plan: Plan, base: Base, device: str = "auto", threads: int = 0) -> None:
        self.plan, self.records = plan, Records(storage, plan)
        self._storage, self._base = storage, base
        self._params = {**plan.manifest.params, "device": named(device), "threads": threads}
        self._threads = threads or len(os.sched_getaffinity(0))
        self._kept: dict[tuple[str, int], Any] = {}
        self.moved = 0  # bytes of vectors that were read
        self._sums: dict[int, int] = {}  # of the vectors of shards, as they were read first

    @property
    def held(self) -> set[int]:
        """Shards that it need not read."""
        return {shard for _, shard in self._kept}

    def do(self, task: Task) -> None:
        """Carries out the task as far as it is not done.

        :raises Damaged: an object that it needs is altered; it is withdrawn, and what it held to be done again
        :raises OSError, MemoryError, ValueError: as the storage and the library
        """
        # Threads that check files would spin after it, on processors that other workers are to have.
        before = _native.limit_threads(self._threads)
        try:
            {"build": self._build, "merge": self._merge, "finish": self._finish}[task.kind](task)
        except BaseException:
            self._kept.clear()
            raise
        finally:
            _native.limit_threads(before)
        self._kept = {key: value for key, value in self._kept.items() if key[1] in task.shards}

    def _keep(self, what: str, shard: int, make: Callable[[], T]) -> T:
        key = (what, shard)
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]  # type: ignore[no-any-return]

    def _vectors(self, shard: int) -> Rows:
        def read() -> Rows:
            for _ in range(3):
                rows = self._base.read(self.plan.begin(shard), self.plan.rows(shard))
                self.moved += rows.array.nbytes
                found = zlib.crc32(memoryview(rows.array).cast("B"))
                if self._sums.setdefault(shard, found) == found:
                    return rows
            raise OSError(
                f"{self.plan.manifest.base['path']}: the vectors of shard {shard} change from reading to reading"
            )

        return self._keep("vectors", shard, read)

    def _local(self, shard: int) -> Graph:
        rows = self.plan.rows(shard)
        columns = self.plan.manifest.local_columns
        return self._keep("local", shard, lambda: self.records.load(f"local-{shard:05d}", rows, columns, rows))

    def _build(self, task: Task) -> None:
        shard = task.first
        state = self.records.state()
        begin, rows = self.plan.begin(shard), self.plan.rows(shard)
        vectors = self._vectors(shard)
        if shard not in state.nearest:
            start = time.monotonic()
            with _rows_from(begin):
                nearest = self._nearest(shard, vectors)
            self.records.save(f"nearest-{shard:05d}", nearest, rows, time.monotonic() - start, 0)
        if shard in state.local and state.at(shard) >= 0:
            return
        start = time.monotonic()
        with _rows_from(begin):
            (ids, distances), stats, _ = _native.build(
                vectors.native, self._params, _native.Run(None, -1, 0, None, None)
            )
        columns = self.plan.manifest.local_columns
        local = ids[:, :columns].copy(), distances[:, :columns].copy()
        seconds, samples = time.monotonic() - start, int(stats["choices"]["samples"])
        if state.at(shard) < 0:
            ids[ids >= 0] += begin
            self.records.save(f"lists-{shard:05d}.0000", (ids, distances), self.plan.n, seconds, samples)
        if shard not in state.local:
            self.records.save(f"local-{shard:05d}", local, rows, 0, 0)

    def _nearest(self, shard: int, vectors: Rows) -> Graph:
        """Of all objects of the recall's sample the nearest in the shard, with its ids."""
        objects = self.plan.objects()
        if not len(objects):
            return np.full((1, 1), -1, np.int32), np.full((1, 1), np.inf, np.float32)
        begin, rows = self.plan.begin(shard), self.plan.rows(shard)
        selves = np.where((objects >= begin) & (objects < begin + rows), objects - begin, -1).astype(np.int32)
        sample = self.plan.sample(self._storage, self._base)
        return _native.nearest(vectors.native, sample.native, view(selves[:, None], "i32"), self._at(), self._params)

    def _at(self) -> int:
        """Neighbours that count."""
        return min(self.plan.manifest.recall_at, self.plan.n - 1)

    def _merge(self, task: Task) -> None:
        plan, state = self.plan, self.records.state()
        sides = state.sides(task)
        if not sides:
            return
        before = dict(zip(task.shards, plan.schedule.before(task), strict=True))
        # One thread alone moves files of graphs, while this one reads vectors and computes.
        with ThreadPoolExecutor(1, initializer=_native.limit_threads, initargs=(self._threads,)) as mover:
            loading = mover.submit(lambda: [self._local(shard) for shard in task.shards])
            first, second = self._vectors(task.first), self._vectors(task.second)
            graphs = [parts(local, plan.metric) for local in loading.result()]
            lists = mover.submit(lambda: {side: self._lists(side, before[side]) for side in sides})
            start = time.monotonic()
            found, stats = _native.merge_across(first.native, graphs[0], second.native, graphs[1], self._params)
            seconds = (time.monotonic() - start) / len(sides)
            samples = int(stats["choices"]["samples"])
            written = []
            for side in sides:
                graph, taken, most = lists.result()[side]
                self._fold(task, side, found, graph)
                written.append(
                    mover.submit(self._put_lists, side, task.round, graph, taken + seconds, max(most, samples))
                )
            for one in written:
                one.result()

    def _fold(self, task: Task, side: int, found: Graph, lists: Graph) -> None:
        """Takes what a merge has found of one of its shards into that one's lists."""
        plan, (ids, distances) = self.plan, found
        border = plan.rows(task.first)
        mine = slice(0, border) if side == task.first else slice(border, None)
        partner, objects = (task.second, (border, len(ids))) if side == task.first else (task.first, (0, border))
        _native.fold(
            parts((ids[mine], distances[mine]), plan.metric),
            *objects,
            plan.begin(partner),
            view(lists[0], "i32"),
            view(lists[1], "f32"),
            self._threads,
        )

    def _lists(self, shard: int, version: int) -> tuple[Graph, float, int]:
        """A shard's lists, the seconds that they took, and the most samples."""
        kept = self._kept.get(("lists", shard))
        if kept is not None and kept[0] == version:
            return kept[1:]  # type: ignore[no-any-return]
        name = f"lists-{shard:05d}.{version:04d}"
        record = self.records.read(name)
        return self.records.load(name, self.plan.rows(shard), self.plan.k, self.plan.n), record.seconds, record.samples

    def _put_lists(self, shard: int, version: int, lists: Graph, seconds: float, samples: int) -> None:
        """The version before stays, in case that this one is damaged before the next is there."""
        created = self.records.save(f"lists-{shard:05d}.{version:04d}", lists, self.plan.n, seconds, samples)
        self._kept.pop(("lists", shard), None)
        if not created:
            return
        self._kept["lists", shard] = version, lists, seconds, samples
        older = [one for one in self.records.state().versions.get(shard, ()) if one < version]
        for one in sorted(older)[:-1]:
            self.records.drop(f"lists-{shard:05d}.{one:04d}")

    def _finish(self, task: Task) -> None:
        """Reads every list once more: what it declares finished is whole, and the recall measured on it."""
        plan, schedule = self.plan, self.plan.schedule
        objects, at = plan.objects(), self._at()
        fill = -np.inf if _native.is_similarity(plan.metric) else np.inf
        rows = np.full((len(objects), at), -1, np.int32), np.full((len(objects), at), fill, np.float32)
        truth = rows[0].copy(), rows[1].copy()
        files, seconds, samples = [], 0.0, 0
        for shard in range(plan.manifest.count):
            name = f"lists-{shard:05d}.{schedule.last(shard):04d}"
            record = self.records.read(name)
            lists = self.records.load(name, plan.rows(shard), plan.k, plan.n)
            files.append((record.file, record.size, record.checksum))
            seconds, samples = seconds + record.seconds, max(samples, record.samples)
            begin, count = plan.begin(shard), plan.rows(shard)
            if not len(objects):
                continue
            here = (objects >= begin) & (objects < begin + count)
            for to, source in zip(rows, lists, strict=True):
                to[here] = source[objects[here] - begin, :at]
            nearest = self.records.load(f"nearest-{shard:05d}", len(objects), at, count)
            _native.fold(
                parts(nearest, plan.metric),
                0,
                count,
                begin,
                view(truth[0], "i32"),
                view(truth[1], "f32"),
                self._threads,
            )
        recall = None
        if len(objects):
            recall = _native.recall_of_rows(plan.n, parts(rows, plan.metric), parts(truth, plan.metric))
        elif plan.manifest.params["recall"] == 1:
            recall = {"recall": 1.0, "recall_low": 1.0, "recall_high": 1.0, "recall_at": at, "recall_objects": plan.n}
        manifest = plan.manifest.completed(files, seconds, samples, recall)
        self._storage.replace(MANIFEST, manifest.text().encode())
        clean(self._storage, {name for name, _, _ in files})


def clean_up(storage: Storage) -> None:
    """Of a finished graph: what its end has not deleted, since it was ended itself."""
    manifest = finished(storage)
    if manifest is not None and storage.read(BUILD) is not None:
        clean(storage, {name for name, _, _ in manifest.files})


def clean(storage: Storage, keep: set[str]) -> None:
    """Deletes what is not part of the finished graph. Records go before what they tell of, the plan last."""
    with contextlib.suppress(OSError):  # what stays does no harm
        for folder in ("done", "leases"):
            for name in storage.names(folder):
                storage.delete(f"{folder}/{name}")
        for name in storage.names() - keep:
            if _MADE.fullmatch(name):
                storage.delete(name)
        for name in (SAMPLE, BUILD):
            storage.delete(name)

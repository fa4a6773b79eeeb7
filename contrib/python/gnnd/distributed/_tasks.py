# SPDX-License-Identifier: MIT
"""A worker does tasks here. One may be done twice, or by two at the same time: the first record counts."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from .. import _native
from .._process import named
from ._base import Base, Rows, new_array
from ._clean import clean
from ._near import Near
from ._plan import MANIFEST, Plan
from ._records import Graph, Records, parts
from ._rules import AllPairs
from ._schedule import Task
from ._storage import Folder, Storage
from ._threads import in_threads
from ._turns import Turns

T = TypeVar("T")

_ROOM = 256 << 20  # bytes at most of what is kept of other shards than the last task's
_ROOM_OF_FOLDERS = 4 << 20  # the same where the system keeps files in memory: new memory takes longer than to read them
_FOR_TWO = 4  # threads of a worker, from which on two others move files at the same time, or where it is one
_BLOCK = 16 << 20  # bytes that a thread works on at a time
_MOST_THREADS = 8  # more do not copy faster


class Carrier:
    """A worker's hands and memory: until the next task begins it keeps the vectors, local graphs and lists of the
    shards of its last one, and of more where they are small."""

    def __init__(self, storage: Storage, plan: Plan, base: Base, device: str = "auto", threads: int = 0) -> None:
        self.plan, self.records = plan, Records(storage, plan)
        self._storage = storage
        self._threads = threads or len(os.sched_getaffinity(0))
        self._params = {**plan.manifest.params, "device": named(device), "threads": threads}
        self._turns = Turns(self._threads) if _on_cpu(self._params["device"]) else None
        self._rules = (Near if plan.is_ordered else AllPairs)(plan, self.records, base, self._params)
        self._cut, self._recall = self._rules.cut, self._rules.recall
        own = {"build": self._build, "merge": self._merge, "check": self._check, "finish": self._finish}
        self._tasks: dict[str, Callable[[Task], None]] = {**own, **self._rules.tasks}
        self._kept: dict[tuple[str, int], Any] = {}
        self._last: tuple[int, ...] = ()  # shards of the last task
        self.phases: dict[str, float] = {}  # seconds of the last task, of the thread that computes

    @property
    def moved(self) -> int:
        """Bytes of vectors that were read."""
        return self._cut.moved

    @property
    def held(self) -> set[int]:
        """Shards that it need not read."""
        return {shard for _, shard in self._kept}.intersection(self._last)

    def do(self, task: Task) -> None:
        """Carries out the task as far as it is not done.

        :raises Damaged: an object that it needs is altered; it is withdrawn, and what it held to be done again
        :raises OSError, MemoryError, ValueError: as the storage and the library
        """
        self.phases = {}
        if task.kind != "check":  # merges may follow, for which the last one's shards stay
            self._last = task.shards
            self._forget()  # what others held the next can have
        # Threads that check files would spin after it, on processors that other workers are to have.
        before = _native.limit_threads(self._threads)
        try:
            self._tasks[task.kind](task)
        except BaseException:
            self._kept.clear()
            raise
        finally:
            _native.limit_threads(before)

    def _forget(self) -> None:
        """Keeps what belongs to the shards of this task, and of others what does not change, while it is little: where
        shards are small, reading them is not."""
        kept = {key: value for key, value in self._kept.items() if key[1] in self._last}
        room = min(_ROOM_OF_FOLDERS if isinstance(self._storage, Folder) else _ROOM, self.plan.task_bytes)
        for key, value in reversed(self._kept.items()):  # what was used last first
            if key in kept or key[0] == "lists":
                continue
            room -= sum(part.nbytes for part in ((value.array,) if isinstance(value, Rows) else value))
            if room < 0:
                break
            kept[key] = value
        self._kept = dict(reversed(kept.items()))

    @contextlib.contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.phases[name] = self.phases.get(name, 0) + time.monotonic() - began

    @contextlib.contextmanager
    def _turn(self) -> Iterator[contextlib.ExitStack]:
        """While the block runs, or until what it gets is closed, other workers on this machine leave processors for
        it."""
        with contextlib.ExitStack() as turn:
            if self._turns is not None:
                with self._phase("waiting"):
                    turn.enter_context(self._turns.waited_for())
            yield turn

    def _keep(self, what: str, shard: int, make: Callable[[], T]) -> T:
        key = (what, shard)
        if key not in self._kept:
            self._kept[key] = make()
        self._kept[key] = self._kept.pop(key)  # as the one that was used last
        return self._kept[key]  # type: ignore[no-any-return]

    def _vectors(self, shard: int) -> Rows:
        return self._keep("vectors", shard, lambda: self._cut.vectors(shard))

    def _local(self, shard: int) -> Graph:
        rows = self.plan.rows(shard)
        columns = self.plan.manifest.local_columns
        return self._keep("local", shard, lambda: self.records.load(f"local-{shard:05d}", rows, columns, rows))

    def _build(self, task: Task) -> None:
        shard = task.first
        state = self.records.state()
        begin, rows = self.plan.begin(shard), self.plan.rows(shard)
        with self._phase("reading"):
            vectors = self._vectors(shard)
        if shard not in state.nearest:
            with self._turn():
                start = time.monotonic()
                with self._phase("sample"), self._cut.naming(shard):
                    nearest = self._recall.nearest(shard, vectors)
            self.records.save(f"nearest-{shard:05d}", nearest, rows, time.monotonic() - start, 0)
        if shard in state.local and state.at(shard) >= 0:
            return
        with self._turn():
            start = time.monotonic()
            with self._phase("build"), self._cut.naming(shard):
                (ids, distances), stats = _native.build_shard(vectors.native, self._rules.build_params)
        columns = self.plan.manifest.local_columns
        with self._phase("writing"), self._movers() as movers:
            local = _columns(self._threads, ids, columns), _columns(self._threads, distances, columns)
            seconds, samples = time.monotonic() - start, int(stats["choices"]["samples"])
            lists = state.schedule.lists_name(shard, 0)
            written: dict[str, tuple[Any, Future[bool]]] = {}
            if shard not in state.local:
                written["local"] = local, movers.submit(self.records.save, f"local-{shard:05d}", local, rows, 0, 0)
            if state.at(shard) < 0:
                ids = ids.astype(self.plan.id_type, copy=False)
                _in_blocks(self._threads, lambda block: np.add(block, begin, out=block, where=block >= 0), ids)
                about = lists, (ids, distances), seconds, samples
                written["lists"] = about, movers.submit(self._save_lists, lists, shard, *about[1:])
            for what, (made, created) in written.items():
                if created.result():  # another's may be another one
                    self._kept[what, shard] = made

    def _merge(self, task: Task) -> None:
        plan, state = self.plan, self.records.state()
        schedule, sides = state.schedule, state.sides(task)
        if not sides or not schedule.knows(task):
            return
        before = dict(zip(task.shards, schedule.before(task), strict=True))
        # Others move files of graphs, while this thread reads vectors and computes.
        with self._movers() as movers:
            with self._phase("reading"):
                loading = [movers.submit(self._local, shard) for shard in task.shards]
                first, second = self._vectors(task.first), self._vectors(task.second)
                graphs = [parts(one.result(), plan.metric) for one in loading]
            lists = {side: movers.submit(self._lists, schedule.lists_name(side, before[side]), side) for side in sides}
            params = self._rules.merge_params(schedule, task)
            with self._turn() as turn:
                start = time.monotonic()
                with self._phase("merge"):
                    found, stats = _native.merge_across(first.native, graphs[0], second.native, graphs[1], params)
                seconds = (time.monotonic() - start) / len(sides)
                if not all(one.done() for one in lists.values()):  # others compute while a slow storage is waited for
                    turn.close()
                with self._phase("reading"):
                    read = {side: lists[side].result() for side in sides}
                with self._phase("fold"):
                    for side in sides:
                        self._fold(task, side, found, read[side][0])
            samples = int(stats["choices"]["samples"])
            written = []
            for side, (graph, taken, most) in read.items():
                name = schedule.lists_name(side, task.round)
                about = name, graph, taken + seconds, max(most, samples)
                written.append((side, about, movers.submit(self._save_lists, name, side, *about[1:])))
            dropping = []
            for side, about, created in written:
                with self._phase("writing"):
                    created.result()
                self._replaced(side, about, created.result())
                if created.result():
                    dropping += [movers.submit(self.records.drop, name) for name in self._old_lists(side)]
            with self._phase("deleting"):
                for one in dropping:
                    one.result()

    def _movers(self) -> ThreadPoolExecutor:
        """Threads that move files of graphs: two where there are processors for it, since one alone copies to a file
        no faster than the system gives it pages, and where each is a single thread, since one waits until a disk has
        them. Objects are moved in parts by several threads in any case."""
        count = 2 if isinstance(self._storage, Folder) and (self._threads == 1 or self._threads >= _FOR_TWO) else 1
        threads = max(1, self._threads // count)
        return ThreadPoolExecutor(count, initializer=_native.limit_threads, initargs=(threads,))

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
            parts(lists, plan.metric),
            self._threads,
        )

    def _lists(self, name: str, shard: int) -> tuple[Graph, float, int]:
        """A version of a shard's lists, the seconds that they took, and the most samples."""
        kept = self._kept.get(("lists", shard))
        if kept is not None and kept[0] == name:
            return kept[1:]  # type: ignore[no-any-return]
        record = self.records.read(name)
        return self.records.load_lists(name, shard), record.seconds, record.samples

    def _save_lists(self, name: str, shard: int, lists: Graph, seconds: float, samples: int) -> bool:
        sample = self._recall.of_lists(shard, lists)
        return self.records.save(name, lists, self.plan.n, seconds, samples, sample=sample)

    def _replaced(self, shard: int, lists: tuple[str, Graph, float, int], created: bool) -> None:
        """A new version of a shard's lists is there, this one's or another's."""
        self._kept.pop(("lists", shard), None)
        if created:
            self._kept["lists", shard] = lists

    def _old_lists(self, shard: int) -> list[str]:
        """The records of versions that nobody needs. The one before the newest stays, in case that this is damaged
        before the next is there."""
        state = self.records.state()
        return [state.schedule.lists_name(shard, one) for one in sorted(state.versions.get(shard, ()))[:-2]]

    def _check(self, task: Task) -> None:
        """Reads what is stored of the graph in the end once more, whoever has written it."""
        start, name = time.monotonic(), self.records.state().schedule.result(task.first)
        record = self.records.read(name)
        with self._phase("reading"):
            self.records.check_lists(name, task.first)
        self.records.note(task.records[0], record, time.monotonic() - start)

    def _finish(self, _: Task) -> None:
        """Declares finished what was checked."""
        plan, schedule = self.plan, self.records.state().schedule
        files, seconds, samples = [], 0.0, 0
        for shard, check in enumerate(schedule.checks):
            result, lists = self.records.look(schedule.result(shard)), self.records.read(schedule.last_lists(shard))
            seconds += lists.seconds + self.records.noted(check.records[0], result).seconds
            files.append((result.file, result.size, result.checksum))
            samples = max(samples, lists.samples)
        others = (task for stage in schedule.stages for task in stage if task.kind != "check")
        for name in (name for task in others for name in task.records):
            seconds += self.records.read(name).seconds
        merges = [task.pair for task in schedule.merges]
        recall = self._rules.recall_in_the_end(schedule)
        manifest = plan.manifest.completed(files, merges, seconds, samples, recall)
        self._storage.replace(MANIFEST, manifest.text().encode())
        with self._phase("deleting"):
            clean(self._storage, {name for name, _, _ in files})


def _on_cpu(device: str) -> bool:
    return device == "cpu" or (device == "auto" and _native.device_count()[0] == 0)


def _in_blocks(threads: int, action: Callable[..., object], *arrays: np.ndarray) -> None:
    """Does it to all of the arrays' rows, by several threads where there are many."""
    pieces = max(1, arrays[0].nbytes // _BLOCK)
    blocks = zip(*(np.array_split(array, pieces) for array in arrays), strict=True)
    in_threads(min(threads, _MOST_THREADS), lambda block: action(*block), blocks)


def _columns(threads: int, rows: np.ndarray, count: int) -> np.ndarray:
    """A copy of the first columns."""
    array = new_array((len(rows), min(count, rows.shape[1])), rows.dtype)
    _in_blocks(threads, np.copyto, array, rows[:, :count])
    return array

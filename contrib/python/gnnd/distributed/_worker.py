# SPDX-License-Identifier: MIT
"""A worker: takes one task after the other until the graph is finished. Any number of them may work at the same place;
they may come and go."""

from __future__ import annotations

import argparse
import logging
import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from .. import _native
from .._files import ShardedGraph
from ._base import open_base
from ._clean import clean_up
from ._leases import Leases, Waiting
from ._plan import MANIFEST, Plan, finished, read_plan
from ._plan import start as begin
from ._records import Records
from ._schedule import Task
from ._storage import STORAGE_OPTIONS, Damaged, Folder, Storage, checked_name, storage
from ._tasks import Carrier

log = logging.getLogger("gnnd.distributed")

T = TypeVar("T")
FINISHED = object()

_ATTEMPTS = 6  # while the storage fails
PAUSE = 1.0  # seconds after the first of them; then twice as long each


def start(
    base: str | os.PathLike[str],
    work: str | os.PathLike[str],
    k: int = 32,
    metric: str = "l2",
    *,
    shards: int,
    recall: float = 0.99,
    plan: str = "all",
    id_bytes: int = 0,
    recall_objects: int = 1024,
    **params: Any,
) -> bool:
    """Begins a build in shards, or joins one that was begun with the same words; :func:`work` does it.

    :param base: file of vectors, n x d; a path that all workers have, or a URL that fsspec opens
    :param work: folder that all workers share, or URL; it becomes the graph, which :func:`gnnd.load` reads
    :param shards: 1 to 1024, of two vectors at least; a worker holds two of them, their graphs and lists in memory
    :param plan: ``"all"`` merges every pair of shards; ``"near"`` cuts shards by a partition of the space and merges
        those near each other, until ``recall`` is measured; vectors then have a copy in ``work`` until the end
    :param id_bytes: of an id in the graph's files, 4, of up to 2^31 - 1 vectors, or 8; 0: as few as there must be
    :param recall: that every build and merge has; it is measured on the whole in the end, on ``recall_objects``
    :param params: those of :func:`gnnd.parameters` that decide the graph, and, of URLs, ``storage_options`` for fsspec,
        ``staging``, a local folder for copies of objects, and ``staging_bytes``, how much it may hold
    :return: False where the graph is finished
    :raises OSError: another graph is there (the difference is told), or another process builds there alone;
        ValueError: parameters out of range
    """
    _native.whole("shards", shards, 1)
    _native.whole("recall_objects", recall_objects, 0)
    _native.whole("id_bytes", id_bytes, 0)
    for name, word in (("metric", metric), ("plan", plan)):
        if not isinstance(word, str):
            raise TypeError(f"{name} must be a str, not {type(word).__name__}: {word!r}")
    options = {name: params.pop(name) for name in STORAGE_OPTIONS if name in params}
    vectors = open_base(base, options.get("storage_options"))
    given = {"k": k, "metric": metric, "recall": recall, **params}
    return begin(storage(work, True, **options), vectors, given, shards, recall_objects, plan, id_bytes) is not None


def work(
    work: str | os.PathLike[str],
    *,
    base: str | os.PathLike[str] | None = None,
    device: Any = "auto",
    threads: int = 0,
    lease_seconds: float = 60,
    progress: Callable[[dict[str, Any]], object] | None = None,
    **storage_options: Any,
) -> int:
    """Works on a build that :func:`gnnd.distributed.start` has begun until it is finished.

    :param work: folder or URL
    :param base: where the base is found from here; None: under the name with which the build was begun
    :param device, threads: as for :func:`gnnd.build`
    :param lease_seconds: a task whose worker has not been heard of for so long is done by another. All workers should
        have the same
    :param progress: called with a dict after every task: tasks_done, tasks (of near pairs those chosen so far), seconds
    :param storage_options: ``staging``, ``staging_bytes``, ``storage_options``: see :func:`gnnd.distributed.start`
    :return: tasks that this worker has done
    :raises OSError: the storage or the base fails again and again; ValueError, MemoryError as :func:`gnnd.build`
    """
    place = storage(work, **storage_options)
    plan = read_plan(place)
    if plan is None:
        return 0
    worker = Worker(place, plan, base, str(device), threads, lease_seconds, storage_options.get("storage_options"))
    done, began, waiting = 0, time.monotonic(), Waiting(place, lease_seconds)
    while True:
        task = patiently(lambda: FINISHED if worker.is_finished() else worker.step())
        if task is FINISHED:
            clean_up(place)
            return done
        if task is None:
            waiting.pause()
            continue
        done += 1
        if progress is not None:
            tasks_done, tasks = patiently(worker.progress)
            progress({"tasks_done": tasks_done, "tasks": tasks, "seconds": time.monotonic() - began})
        waiting = Waiting(place, lease_seconds)


def fetch(work: str | os.PathLike[str], folder: str | os.PathLike[str], **storage_options: Any) -> None:
    """Copies a finished graph to a local folder, which :func:`gnnd.load` reads.

    :raises FileNotFoundError: it is not finished; Damaged (an OSError): a part of it is altered
    """
    place, target = storage(work, **storage_options), Folder(folder, create=True)
    manifest = finished(place)
    if manifest is None:
        raise FileNotFoundError(2, "No finished graph is there", place.url)
    for name, size, _ in manifest.files:
        shutil.copyfile(place.fetch(checked_name(name), size), target.path_for(name))
    target.replace(MANIFEST, manifest.text().encode())
    ShardedGraph(target.url)


def patiently(action: Callable[[], T]) -> T:
    """Returns the action's result, and tries it again while the storage fails."""
    for attempt in range(_ATTEMPTS):
        try:
            return action()
        except OSError as error:
            if attempt == _ATTEMPTS - 1:
                raise
            log.warning("%s; tried again", error)
            time.sleep(PAUSE * 2**attempt * random.uniform(0.5, 1))
    raise AssertionError


class Worker:
    """A process's part in a build, and what it needs for that."""

    def __init__(
        self,
        place: Storage,
        plan: Plan,
        base: str | os.PathLike[str] | None,
        device: str,
        threads: int,
        lease_seconds: float,
        storage_options: dict[str, Any] | None = None,
        name: str = "",
    ) -> None:
        """:param name: by which an engine knows it, without spaces"""
        _native.real("lease_seconds", lease_seconds, 0, float("inf"))
        _native.whole("threads", threads, 0)
        vectors = open_base(base or plan.manifest.base["path"], storage_options)
        for field in ("n", "d", "dtype", "checksum"):
            if vectors.record[field] != plan.manifest.base[field]:
                raise OSError(f"{vectors.record['path']}: not the base that the graph is built of: {field} differs")
        self.place, self._plan = place, plan
        self._carrier = Carrier(place, plan, vectors, device, threads)
        self._leases = Leases(place, lease_seconds, name)
        self.records: Records = self._carrier.records

    @property
    def moved(self) -> int:
        """Bytes that it has read and written so far."""
        return self._carrier.moved + self.records.moved

    def is_finished(self) -> bool:
        return finished(self.place) is not None

    def progress(self) -> tuple[int, int]:
        """How many tasks are done, and how many there are, of near pairs as they were chosen so far."""
        known, state = len(self.records.schedule), self.records.state()
        if self.is_finished():  # no record is left, nor what was chosen
            return known, known
        return state.done(), len(state.schedule)

    def step(self, first: Task | None = None, begins: Callable[[Task], object] = lambda task: None) -> Task | None:
        """Does one task, this one before others if it can be done; None where there is none that nobody else does.

        :param begins: called with the task before it is done
        """
        ready, leases = self.records.state().ready(self._carrier.held), self._leases.there()
        ready.sort(key=lambda task: task != first)
        return next((task for task in ready if self._try_to_do(task, leases, begins)), None)

    def _try_to_do(self, task: Task, leases: Collection[str], begins: Callable[[Task], object]) -> bool:
        """Does the task, unless it is another's, or was since somebody looked last: short ones are soon done."""
        with self._leases.held(task, leases) as mine:
            if not mine or not self.records.state().is_ready(task):
                return False
            begins(task)
            return self._do(task)

    def _do(self, task: Task) -> bool:
        """False where it could not be done: something that it needs has to be made anew."""
        began = time.monotonic()
        try:
            self._carrier.do(task)
        except Damaged as error:  # it was withdrawn, and is a task again
            if not self.is_finished():
                log.warning("%s: %s; made anew", task, error)
            return False
        phases = ", ".join(f"{name} {seconds:.2f}" for name, seconds in self._carrier.phases.items())
        log.info("%s: %.2f s%s", task, time.monotonic() - began, f" ({phases})" if phases else "")
        return True


def main(arguments: Sequence[str]) -> int:
    """`python -m gnnd worker`; the exit code."""
    parser = argparse.ArgumentParser(
        prog="gnnd worker",
        description="Builds a graph in shards together with all others that are started with the same words.",
    )
    parser.add_argument("work", metavar="WORK", help="folder that they share, or URL that fsspec opens")
    parser.add_argument("--base", help="file of vectors; without it the build must have been begun")
    parser.add_argument("--shards", type=int, help="into which the base is cut, where the build is to be begun")
    parser.add_argument("-k", type=int, default=32, help="neighbours per object (32)")
    parser.add_argument("--metric", default="l2")
    parser.add_argument("--recall", type=float, default=0.99)
    parser.add_argument(
        "--plan", default="all", help="pairs of shards that are merged: all, or near, until the recall is reached"
    )
    parser.add_argument(
        "--id-bytes", type=int, default=0, help="of an id in the graph's files: 4, 8; 0: as few as needed"
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--lease", type=float, default=60, metavar="SECONDS", help="after which the lost are replaced")
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s gnnd worker: %(message)s", stream=sys.stderr)
    try:
        if given.shards is not None:
            if given.base is None:
                parser.error("--shards needs --base")
            start(
                given.base,
                given.work,
                given.k,
                given.metric,
                shards=given.shards,
                recall=given.recall,
                plan=given.plan,
                id_bytes=given.id_bytes,
            )
        done = work(given.work, base=given.base, device=given.device, threads=given.threads, lease_seconds=given.lease)
    except (OSError, ValueError, MemoryError, RuntimeError) as error:
        print(f"gnnd worker: {error}", file=sys.stderr)
        return 1
    log.info("%s is finished, %d tasks of it done here", given.work, done)
    return 0

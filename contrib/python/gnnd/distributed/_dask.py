# SPDX-License-Identifier: MIT
"""Builds on Dask distributed. It hands tasks out and tells of progress; what is done lies in the storage alone, so that
a scheduler, a client or workers that are lost cost the tasks under way."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from .._files import ShardedGraph
from .._paths import path_of
from ._clean import clean_up
from ._dask_worker import carry_out, forget
from ._leases import Leases
from ._plan import Plan, finished, read_plan
from ._quiet import quiet_others
from ._records import Records
from ._schedule import FINISH, Task
from ._sizing import begun_shards, shards_for, workers_of
from ._storage import STORAGE_OPTIONS, is_url, place_of, storage
from ._worker import patiently, start

if TYPE_CHECKING:
    import distributed

log = logging.getLogger("gnnd.distributed")

_LOSSES = 20  # of workers that a task may cost: then it is the task
_LOOK = 0.5  # seconds, after which new workers are looked for
_PATIENCE = 10.0  # seconds, in which Dask tells of what is done
_MOST = 0.8  # of a worker's memory limit: there Dask pauses it, and ends it a little above


def build(
    base: str | os.PathLike[str],
    work: str | os.PathLike[str],
    k: int = 32,
    metric: str = "l2",
    *,
    shards: int | None = None,
    client: distributed.Client | None = None,
    recall: float = 0.99,
    plan: str = "all",
    device: Any = "auto",
    threads: int = 0,
    lease_seconds: float = 60,
    progress: Callable[[dict[str, Any]], object] | None = None,
    **params: Any,
) -> ShardedGraph | None:
    """Builds a graph in shards on the workers of a Dask cluster, or goes on with what is there of it.

    Where some of the workers have a resource GPU (``dask worker --resources GPU=1``), they alone get tasks, one each;
    otherwise all do. A worker gets tasks of the shards that it holds before others. `gnnd worker` may help.

    :param base: file of vectors that all workers read, by a path or URL
    :param work: folder that they share, or URL; it becomes the graph
    :param shards: None: as were begun, or two for each worker that there is, and more where two of these do not fit
        the memory of a worker or its device
    :param client: of the cluster; None: the current one
    :param plan: as for :func:`gnnd.distributed.start`
    :param device, threads: of every worker: see :func:`gnnd.build`
    :param progress: called with a dict after every task: tasks_done, tasks (of near pairs those chosen so far),
        seconds, seconds_left, bytes
    :param params: as for :func:`gnnd.distributed.start`; the others are its own
    :return: the graph; None for a URL: see :func:`gnnd.distributed.fetch`
    :raises ImportError: Dask distributed is not there; ValueError: there is no client; RuntimeError: a task has
        lost too many workers; MemoryError: Dask would end every worker over its memory limit; CancelledError,
        ConnectionError: the scheduler is lost, or tasks were cancelled; and as
        :func:`gnnd.distributed.start` and :func:`gnnd.distributed.work`
    """
    try:
        from distributed import get_client
    except ImportError:
        raise ImportError("gnnd.distributed.build() needs Dask distributed: pip install gnnd[dask]") from None
    options = {name: params[name] for name in STORAGE_OPTIONS if name in params}
    cluster = client or get_client()
    name = place_of(work)
    name = name if is_url(name) else os.path.abspath(name)
    if shards is None:
        words = {"k": k, "metric": metric, "recall": recall, "plan": plan, **params}
        shards = begun_shards(name, options) or shards_for(cluster, base, str(device), words, options)
    start(base, name, k, metric, shards=shards, recall=recall, plan=plan, **params)
    place = storage(name, **options)
    begun = read_plan(place)
    if begun is not None:
        given = (path_of(base, "base"), str(device), threads, lease_seconds, options)
        engine = _Engine(cluster, Records(place, begun), begun, (name, *given), progress)
        with quiet_others(cluster):
            engine.run()
        clean_up(place)
        engine.release()
    return None if is_url(name) else ShardedGraph(name)


class _Engine:
    """One of Dask's tasks at a time for each worker: a task, and, where these are short, more that follow it."""

    def __init__(
        self,
        client: distributed.Client,
        records: Records,
        plan: Plan,
        given: tuple[Any, ...],
        progress: Callable[[dict[str, Any]], object] | None,
    ) -> None:
        self._client, self._records, self._plan, self._given, self._progress = client, records, plan, given, progress
        # Of each worker Dask's task, and which one it does now as far as is known.
        self._running: dict[str, tuple[distributed.Future, Task]] = {}
        self._held: dict[str, tuple[int, ...]] = {}  # shards of a worker's last task
        self._losses: dict[Task, int] = {}
        self._small: set[str] = set()  # workers that were told to be too small
        self._there: set[str] = set()  # all workers, as they were seen last
        self._known: tuple[list[str], dict[str, int] | None] = [], None  # what _workers() has given last
        self._looked = float("-inf")  # when that was
        self._over: dict[str, float] = {}  # since when a worker's task is done by the storage, and nothing heard
        self._topic = f"gnnd-{uuid.uuid4().hex}"  # of this call alone
        self._heard: deque[dict[str, Any]] = deque()  # what workers tell under it
        self._news = threading.Event()  # something was heard, or a task of Dask's is over
        self._began, self._before = time.monotonic(), patiently(records.state).done()
        self._done = self._before  # tasks
        self._bytes = 0
        self._is_over = False  # the end was told

    def run(self) -> None:
        # Not self, which the client would keep for as long as it lives.
        topic, heard, news = self._topic, self._heard, self._news

        def hear(event: tuple[float, dict[str, Any]]) -> None:
            heard.append(event[1])
            news.set()

        # What workers tell comes before the ends of Dask's tasks, with the same messages. Results would be fetched from
        # them, one by one, by way of the scheduler.
        self._client.subscribe_topic(topic, hear)
        try:
            while patiently(lambda: finished(self._records.storage)) is None:
                self._hand_out()
                if not self._news.wait(_LOOK):
                    self._look_through()
                self._news.clear()
                self._take_back()
            self._hear_the_end()
        finally:
            for future, _ in self._running.values():
                future.cancel()
            with contextlib.suppress(Exception):  # of a client that is closed
                self._client.unsubscribe_topic(topic)

    def release(self) -> None:
        """Workers forget what they hold: two shards are much of their memory."""
        with contextlib.suppress(Exception):  # of a worker that is lost
            self._client.run(forget, self._given[0], self._plan.id, workers=list(self._held), on_error="ignore")

    def _hear_the_end(self) -> None:
        """The graph may be there before Dask tells that its last tasks are done."""
        began = time.monotonic()
        while True:
            last = all(future.done() for future, _ in self._running.values())
            self._tell_what_was_heard()
            # Of an end that is another's nothing is heard, nor soon of workers that did what others have done.
            hears = not self._is_over and any(task == FINISH for _, task in self._running.values())
            if last or time.monotonic() - began > (_PATIENCE if hears else _LOOK):
                return
            time.sleep(0.002)

    def _workers(self) -> tuple[list[str], dict[str, int] | None]:
        """Addresses of those that get tasks, and the resources that a task takes."""
        workers, resources = workers_of(self._client)
        lost, self._there = self._there - set(workers), set(workers)
        if lost:  # others need not wait until their leases run out
            ended = patiently(lambda: Leases(self._records.storage, 0).free(lost))
            log.info("%s lost%s", ", ".join(sorted(lost)), f", free again: {', '.join(ended)}" if ended else "")
        return self._large_enough(workers), resources

    def _large_enough(self, workers: dict[str, Any]) -> list[str]:
        """Those whose memory limit a task does not pass: Dask would end the others again and again."""
        need = self._plan.task_bytes
        limits = {address: about.get("memory_limit") or float("inf") for address, about in workers.items()}
        small = {address for address, limit in limits.items() if need > _MOST * limit}
        if small and len(small) == len(workers):
            most = max(limits.values())
            raise MemoryError(
                f"a task holds {need} bytes or more, {need / _MOST:.0f} with Dask's reserve, and workers have memory "
                f"limits of up to {most}: raise them (dask worker --memory-limit, 0 for none), or take more shards"
            )
        for address in small - self._small:
            log.warning("%s gets no tasks: its memory limit is %d, a task holds %d", address, limits[address], need)
        self._small |= small
        return [address for address in workers if address not in small]

    def _hand_out(self) -> None:
        if (now := time.monotonic()) - self._looked >= _LOOK:
            self._known, self._looked = self._workers(), now
        workers, resources = self._known
        self._held = {worker: shards for worker, shards in self._held.items() if worker in workers}
        busy = {task for _, task in self._running.values()}
        idle = [worker for worker in workers if worker not in self._running]
        if not idle:
            return
        state = patiently(self._records.state)
        for worker in idle:
            others = {shard for one, shards in self._held.items() if one != worker for shard in shards}
            ready = [task for task in state.ready(self._held.get(worker, ()), others) if task not in busy]
            if not ready:
                return
            task = ready[0]
            busy.add(task)
            future = self._client.submit(
                carry_out,
                task,
                self._topic,
                self._plan.id,
                *self._given,
                key=f"gnnd-{task.name}-{uuid.uuid4().hex}",
                workers=[worker],
                allow_other_workers=True,
                resources=resources,
                retries=2,
                pure=False,
            )
            future.add_done_callback(lambda _, news=self._news: news.set())
            self._running[worker] = future, task

    def _look_through(self) -> None:
        """Forgets what Dask does not tell the end of, though the storage does."""
        state, now = patiently(self._records.state), time.monotonic()
        for worker, (future, task) in list(self._running.items()):
            if state.is_ready(task):
                self._over.pop(worker, None)
            elif now - self._over.setdefault(worker, now) > _PATIENCE:
                del self._running[worker], self._over[worker]
                future.cancel()

    def _take_back(self) -> None:
        self._tell_what_was_heard()
        for worker, (future, task) in list(self._running.items()):
            if not future.done():
                continue
            del self._running[worker]
            self._over.pop(worker, None)
            if future.status == "finished":
                continue
            if future.cancelled():  # by another, or since the scheduler is lost
                raise CancelledError(str(task))
            error = future.exception() if future.status == "error" else None
            if error is not None and type(error).__name__ != "KilledWorker":
                raise error
            self._losses[task] = self._losses.get(task, 0) + 1
            log.warning("%s: its worker is lost", task)
            if self._losses[task] >= _LOSSES:
                raise RuntimeError(f"{task}: {_LOSSES} workers were lost while they did it") from error

    def _tell_what_was_heard(self) -> None:
        while self._heard:
            told = self._heard.popleft()
            for worker, (future, _) in self._running.items():
                if future.key == told["key"]:
                    self._over.pop(worker, None)
                    if "begins" in told:
                        self._running[worker] = future, Task(*told["begins"])
                    break
            if "begins" in told:
                continue
            task = Task(*told["task"])
            if task.kind != "check":  # of which nothing is held
                self._held[told["worker"]] = task.shards
            self._bytes += told["moved"]
            self._is_over |= task == FINISH
            self._tell(task, told["done"], told["tasks"])

    def _tell(self, task: Task, done: int, tasks: int) -> None:
        seconds = time.monotonic() - self._began
        done = self._done = max(self._done, done)  # what two workers tell may come in the other order
        here = done - self._before
        left = seconds / here * (tasks - done) if here > 0 else None
        log.info(
            "%s; %d of %d tasks, %.1f GB moved, %.3f GB/s%s",
            task,
            done,
            tasks,
            self._bytes / 1e9,
            self._bytes / 1e9 / seconds,
            "" if left is None else f", {left:.0f} s left",
        )
        if self._progress is not None:
            self._progress(
                {"tasks_done": done, "tasks": tasks, "seconds": seconds, "seconds_left": left, "bytes": self._bytes}
            )

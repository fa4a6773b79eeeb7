# SPDX-License-Identifier: MIT
"""A worker of Dask's: what runs in its process for a build."""

from __future__ import annotations

import dataclasses
import threading
import time
from typing import Any

from ._leases import Waiting
from ._plan import read_plan
from ._quiet import quiet
from ._schedule import Task
from ._storage import storage
from ._worker import Worker, patiently

_mine: dict[tuple[str, str], Worker] = {}  # of this process: the place and the build that it works on
_one_at_a_time = threading.Lock()
_SHORT = 3.0  # seconds: what takes less is not worth a task of Dask's, which costs 6 ms of processors


def forget(work: str, build_id: str) -> None:
    """On a worker, when a build is finished."""
    _mine.pop((work, build_id), None)


def carry_out(
    task: Task,
    topic: str,
    build_id: str,
    work: str,
    base: str,
    device: str,
    threads: int,
    lease_seconds: float,
    options: dict[str, Any],
) -> None:
    """On a worker: returns when the task is done, by it or by another, or is another's for long. Where tasks are short,
    or this one is another's, it goes on with others.

    :param topic: under which it tells of tasks, each with the key of Dask's: ``begins``, of those that it goes on with;
        ``task``, of those that it has done, with the bytes moved, and how many tasks are done of how many
    """
    from distributed import get_worker

    dask = get_worker()
    key = dask.get_current_task()

    def tell(**what: Any) -> None:
        dask.log_event(topic, {"key": key, "worker": dask.address, **what})

    def is_wanted() -> bool:
        """False where the worker is retired, or the scheduler or the client lost, or it was cancelled."""
        here = dask.state.tasks.get(key)
        return dask.status.name == "running" and here is not None and here.state == "executing"

    known = task  # to the client, that it is being done

    def begins(next_one: Task) -> None:
        nonlocal known
        if next_one != known:
            known = next_one
            tell(begins=dataclasses.astuple(next_one))

    with _one_at_a_time, quiet(dask):
        about = work, build_id
        if about not in _mine:
            place = storage(work, **options)
            plan = patiently(lambda: read_plan(place))
            if plan is None:
                return
            _mine.clear()
            given = device, threads, lease_seconds, options.get("storage_options"), dask.address
            _mine[about] = Worker(place, plan, base, *given)
        mine = _mine[about]
        began, waiting = time.monotonic(), Waiting(mine.place, lease_seconds)
        while is_wanted() and not patiently(mine.is_finished):
            is_long = time.monotonic() - began >= _SHORT
            if is_long and not patiently(lambda: mine.records.state().is_ready(task)):
                return
            before, done = mine.moved, patiently(lambda: mine.step(task, begins))
            if done is not None:
                tasks_done, tasks = patiently(mine.progress)
                tell(task=dataclasses.astuple(done), moved=mine.moved - before, done=tasks_done, tasks=tasks)
                waiting = Waiting(mine.place, lease_seconds)
            elif is_long:  # others may have something for Dask's worker to do
                return
            else:
                waiting.pause()

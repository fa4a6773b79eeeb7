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


def topic_of(build_id: str) -> str:
    """Under which workers tell of tasks that are done: task, worker, and bytes moved."""
    return f"gnnd-{build_id}"


def forget(work: str, build_id: str) -> None:
    """On a worker, when a build is finished."""
    _mine.pop((work, build_id), None)


def carry_out(
    task: Task,
    build_id: str,
    work: str,
    base: str,
    device: str,
    threads: int,
    lease_seconds: float,
    options: dict[str, Any],
) -> None:
    """On a worker: returns when the task is done, by it or by another. Where tasks are short, or this one is another's,
    it goes on with others."""
    from distributed import get_worker

    dask = get_worker()
    with _one_at_a_time, quiet(dask):
        key = work, build_id
        if key not in _mine:
            place = storage(work, **options)
            plan = patiently(lambda: read_plan(place))
            if plan is None:
                return
            _mine.clear()
            about = device, threads, lease_seconds, options.get("storage_options"), dask.address
            _mine[key] = Worker(place, plan, base, *about)
        mine = _mine[key]
        began, waiting = time.monotonic(), Waiting(mine.place, lease_seconds)
        # A worker that is retired, or whose scheduler is lost, takes no more.
        while dask.status.name == "running" and not patiently(mine.is_finished):
            is_over = time.monotonic() - began >= _SHORT
            if is_over and not patiently(lambda: mine.records.state().is_ready(task)):
                return
            before, done = mine.moved, patiently(lambda: mine.step(task))
            if done is None:
                waiting.pause()
                continue
            told = {"task": dataclasses.astuple(done), "worker": dask.address, "moved": mine.moved - before}
            told["done"], told["tasks"] = patiently(lambda done=done: mine.progress_after(done))
            dask.log_event(topic_of(build_id), told)
            waiting = Waiting(mine.place, lease_seconds)

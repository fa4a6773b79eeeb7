# SPDX-License-Identifier: MIT
"""A worker of Dask's: what runs in its process for a build."""

from __future__ import annotations

import threading
from typing import Any

from ._leases import Waiting
from ._plan import read_plan
from ._quiet import quiet
from ._schedule import Task
from ._storage import storage
from ._worker import Worker, patiently

_mine: dict[tuple[str, str], Worker] = {}  # of this process: the place and the build that it works on
_one_at_a_time = threading.Lock()


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
) -> tuple[str, int]:
    """On a worker: returns when the task is done, by it or by another.

    :return: the worker's address, and the bytes that it moved
    """
    from distributed import get_worker

    with _one_at_a_time, quiet(get_worker()):
        key = work, build_id
        if key not in _mine:
            place = storage(work, **options)
            plan = patiently(lambda: read_plan(place))
            if plan is None:
                return get_worker().address, 0
            _mine.clear()
            about = device, threads, lease_seconds, options.get("storage_options"), get_worker().address
            _mine[key] = Worker(place, plan, base, *about)
        mine = _mine[key]
        before, waiting = mine.moved, Waiting(mine.place, lease_seconds)
        while not patiently(lambda: mine.is_finished() or not mine.records.state().is_ready(task)):
            if patiently(lambda: mine.try_to_do(task)):
                break
            waiting.pause()
        return get_worker().address, mine.moved - before

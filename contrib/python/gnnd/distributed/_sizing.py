# SPDX-License-Identifier: MIT
"""How many shards a build has that nobody has told: as few as keep all workers busy, since every merge reads and
writes two of them, and more where two of them do not fit."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import _native
from .._process import named
from ._base import open_base
from ._plan import Plan, finished, read_plan
from ._storage import STORAGE_OPTIONS, storage

if TYPE_CHECKING:
    import distributed

_MOST = 1024  # shards
_ROOM = 0.75  # of the memory: plans are of builds, merges take a little more
_SECONDS = 120.0  # to wait for a worker
_MOST_ROWS = 2**31 - 1  # of two shards
_NOT_OF_BUILDS = (*STORAGE_OPTIONS, "plan", "id_bytes", "recall_objects")  # among the words of start()


def begun_shards(work: str, options: dict[str, Any]) -> int | None:
    """Of what is there; None: nothing is."""
    try:
        place = storage(work, **options)
        plan = read_plan(place)
        manifest = finished(place) if plan is None else plan.manifest
    except FileNotFoundError:
        return None
    return None if manifest is None else manifest.count


def workers_of(client: distributed.Client) -> tuple[dict[str, Any], dict[str, int] | None]:
    """Those that may get tasks, by their addresses, and the resources that a task takes.

    :raises ConnectionError: the client is closed, since its scheduler is lost
    """
    there = client.scheduler_info(n_workers=-1).get("workers")
    if there is None:
        raise ConnectionError("Dask's client is closed")
    gpus = {address: about for address, about in there.items() if about.get("resources", {}).get("GPU", 0) >= 1}
    return gpus or there, {"GPU": 1} if gpus else None


def shards_for(
    client: distributed.Client,
    base: str | os.PathLike[str],
    device: str,
    words: dict[str, Any],
    options: dict[str, Any],
) -> int:
    """The number of shards for the workers that there are.

    :param words: those of start()
    """
    workers = workers_of(client)[0]
    if not workers:
        client.wait_for_workers(1, timeout=_SECONDS)
        workers = workers_of(client)[0]
    limit = max(about.get("memory_limit") or float("inf") for about in workers.values())
    about = open_base(base, options.get("storage_options")).record
    n, d, dtype = int(about["n"]), int(about["d"]), str(about["dtype"])
    params = {name: value for name, value in words.items() if name not in _NOT_OF_BUILDS}
    most = max(1, min(_MOST, n // 2))
    counts = [min(1 if len(workers) == 1 else 2 * len(workers), most)]
    while counts[-1] < most:
        counts.append(min(most, counts[-1] + max(1, counts[-1] // 4)))
    how = words.get("plan", "all"), words.get("id_bytes", 0)
    counts = counts_that_fit(counts, limit * _ROOM, about, params, *how)
    future = client.submit(first_that_fits, *(counts, n, d, dtype, device, params), workers=list(workers), pure=False)
    return int(future.result(timeout=_SECONDS))


def counts_that_fit(
    counts: list[int], room: float, about: dict[str, Any], params: dict[str, Any], plan: str, id_bytes: int
) -> list[int]:
    """The numbers of shards with which no task of a build holds more memory than that; the last where none is.

    :param about: the base's record
    """

    def fits(count: int) -> bool:
        if rows_of_two(int(about["n"]), count) > _MOST_ROWS:
            return False
        return Plan(_native.Manifest.begin(about, params, count, plan, id_bytes), 0).task_bytes <= room

    return [count for count in counts if fits(count)] or counts[-1:]


def rows_of_two(n: int, shards: int) -> int:
    """Two shards' rows, as a merge takes them."""
    return min(n, min(2, shards) * -(-n // shards))


def first_that_fits(
    counts: list[int],
    n: int,
    d: int,
    dtype: str,
    device: str,
    params: dict[str, Any],
    plan: Callable[..., dict[str, Any]] = _native.plan,
) -> int:
    """On a worker: the first number of shards two of which its device has room for; the last where none has."""
    for count in counts:
        needs = plan(rows_of_two(n, count), d, dtype, {**params, "device": named(device)})
        if needs["total"] <= _ROOM * needs["free"]:
            return count
    return counts[-1]

# SPDX-License-Identifier: MIT
"""What Dask's processes do beside the tasks: its workers' profiler looks 100 times a second, and so does a thread of
each process, to sample its event loop once a second; clocks tick 50 times, memory is looked at 10 times, and so on.
Each time a processor is woken up, or taken from a task where workers share processors: 5 to 7% of one for four workers.
A task is a few long calls of native code, in which there is nothing to see."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import distributed

Paces = dict[str, float]  # milliseconds from one time to the next

# Beside the names of Dask's callbacks: the thread, and how often a scheduler tells its workers that they be heard of.
_SAMPLER, _HEARTBEATS = "sampler", "heartbeats"
# A clock that ticks less often than every 3 s would be told as a loop that hangs.
_OF_ALL: Paces = {_SAMPLER: 500, "tick": 1000, "monitor": 2000}
_OF_WORKERS: Paces = {**_OF_ALL, "profile": 1000, "memory_monitor": 500}
_OF_NANNIES = _OF_ALL  # which look at the memory as often as ever, since they end a worker that takes too much
_OF_SCHEDULERS: Paces = {**_OF_ALL, _HEARTBEATS: 2000, "idle-timeout": 1000, "no-workers-timeout": 1000}


@contextlib.contextmanager
def quiet(worker: Any) -> Iterator[None]:
    """Meanwhile a worker does that less often."""
    before = _slow(worker, _OF_WORKERS)
    try:
        yield
    finally:
        _restore(worker, before)


@contextlib.contextmanager
def quiet_others(client: distributed.Client) -> Iterator[None]:
    """Meanwhile the nannies of the workers that there are, and the scheduler, do so."""
    nannies: dict[str, Paces] = {}
    scheduler: Paces = {}
    # Suppressed: that of a worker that is lost, or has no nanny, and of a scheduler that is.
    with contextlib.suppress(Exception):
        nannies = client.run(_slow_nanny, nanny=True, on_error="ignore")
    with contextlib.suppress(Exception):
        scheduler = client.run_on_scheduler(_slow, paces=_OF_SCHEDULERS)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):
            # All nannies of a cluster are configured alike, and the first of a process tells of its thread.
            before = {name: pace for one in nannies.values() for name, pace in one.items()}
            client.run(_restore_nanny, before, nanny=True, on_error="ignore")
        with contextlib.suppress(Exception):
            client.run_on_scheduler(_restore, before=scheduler)


def _of_no_module() -> tuple[Callable[..., Paces], Callable[..., None]]:
    """What slows a server of Dask, and what restores it. As functions of no module they travel as a whole: where the
    scheduler runs gnnd need not be installed."""

    def slow(dask_scheduler: Any, paces: Paces) -> Paces:
        """:return: the paces before, but those that another build has slowed, which restores them"""
        import time

        from distributed import profile, scheduler

        callbacks = getattr(dask_scheduler, "periodic_callbacks", {})
        before = {name: float(callbacks[name].callback_time) for name in paces if name in callbacks}
        before = {name: pace for name, pace in before.items() if pace < paces[name]}
        for name in before:
            callbacks[name].callback_time = paces[name]
        if _SAMPLER in paces and getattr(profile, "sleep", None) is time.sleep:
            before[_SAMPLER], least = 0.0, paces[_SAMPLER] / 1000
            profile.sleep = lambda seconds: time.sleep(max(seconds, least))
        plain = getattr(scheduler, "heartbeat_interval", None)
        if _HEARTBEATS in paces and plain is not None and not hasattr(plain, "plain"):

            def seldom(workers: int) -> float:
                return max(plain(workers), paces[_HEARTBEATS] / 1000)

            seldom.plain = plain  # type: ignore[attr-defined]
            before[_HEARTBEATS], scheduler.heartbeat_interval = 0.0, seldom
        return before

    def restore(dask_scheduler: Any, before: Paces) -> None:
        import time

        from distributed import profile, scheduler

        for name, pace in before.items():
            if name == _SAMPLER:
                profile.sleep = time.sleep
            elif name == _HEARTBEATS:
                scheduler.heartbeat_interval = scheduler.heartbeat_interval.plain
            else:
                dask_scheduler.periodic_callbacks[name].callback_time = pace

    return slow, restore


_slow, _restore = _of_no_module()


def _slow_nanny(dask_worker: Any) -> Paces:
    return _slow(dask_worker, _OF_NANNIES)


def _restore_nanny(before: Paces, dask_worker: Any) -> None:
    _restore(dask_worker, before)

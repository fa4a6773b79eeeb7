# SPDX-License-Identifier: MIT
"""What Dask's processes do beside the tasks: its workers' profiler looks 100 times a second, the clock of each process
ticks 50 times, and a worker looks at its memory 10 times. That takes 3% of a processor for each worker, and shows where
workers share processors. A task is a few long calls of native code, in which there is nothing to see."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import distributed

_OF_WORKERS = ("profile", "tick", "memory_monitor")
_OF_NANNIES = ("tick",)  # which look at the memory as often as ever, since they end a worker that takes too much
_SELDOM = 500.0  # milliseconds


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
    nannies: dict[str, Any] = {}
    scheduler: float | None = None
    # Suppressed: that of a worker that is lost, or has no nanny, and of a scheduler that is.
    with contextlib.suppress(Exception):
        nannies = client.run(_slow_nanny, nanny=True, on_error="ignore")
    with contextlib.suppress(Exception):
        scheduler = client.run_on_scheduler(_clock(), often=_SELDOM, slower=True)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):
            client.run(_restore_nanny, nannies, nanny=True, on_error="ignore")
        if scheduler is not None:
            with contextlib.suppress(Exception):
                client.run_on_scheduler(_clock(), often=scheduler)


def _clock() -> Callable[..., float | None]:
    """What sets the pace of a scheduler's clock, and returns what it was. As a function of no module it travels as a
    whole: where the scheduler runs gnnd need not be installed."""

    def set_pace(often: float, dask_scheduler: Any, slower: bool = False) -> float | None:
        tick = dask_scheduler.periodic_callbacks["tick"]
        before = float(tick.callback_time)
        if slower and before >= often:
            return None  # another build has slowed it, and restores it
        tick.callback_time = often
        return before

    return set_pace


def _slow(server: Any, names: tuple[str, ...]) -> dict[str, float]:
    """Of a server of Dask. :return: how often it did each that another build has not slowed, in milliseconds"""
    callbacks = getattr(server, "periodic_callbacks", {})
    before = {name: float(callbacks[name].callback_time) for name in names if name in callbacks}
    before = {name: often for name, often in before.items() if often < _SELDOM}
    for name in before:
        callbacks[name].callback_time = _SELDOM
    return before


def _restore(server: Any, before: dict[str, float]) -> None:
    for name, often in before.items():
        server.periodic_callbacks[name].callback_time = often


def _slow_nanny(dask_worker: Any) -> dict[str, float]:
    return _slow(dask_worker, _OF_NANNIES)


def _restore_nanny(before: dict[str, dict[str, float]], dask_worker: Any) -> None:
    for often in before.values():  # all of a cluster are configured alike
        _restore(dask_worker, often)
        return

# SPDX-License-Identifier: MIT
"""Leases tell who works on which task, so that two do not do the same. Nothing depends on them but time.

A lease is an object that its holder writes anew again and again. Others take the task over once they have seen the
same content for so long by their own clock: what clocks of different machines show does not matter."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Collection, Iterator

from ._schedule import Task
from ._storage import Storage, new_attempt

_FREE = b"free\n"  # the content of a lease that nobody holds
_LEAST, _MOST = 0.02, 1.0  # seconds between two looks for something to do
_REST = 9  # times as long as a look takes, until the next


class Waiting:
    """Of who finds nothing to do now. The pauses between two looks are a part of the time waited so far: what comes
    soon is found soon, since processors idle until then, and a storage where nothing comes for long is asked seldom.
    They end where the storage tells that something is done; but looks take a tenth of a processor at most, since a
    large build has many records, and many may wait on one machine."""

    def __init__(self, storage: Storage, lease_seconds: float) -> None:
        self._storage, self._most, self._began = storage, min(_MOST, lease_seconds / 8), time.monotonic()
        self._before = time.thread_time()  # the look

    def pause(self) -> None:
        time.sleep(min(self._most, _REST * (time.thread_time() - self._before)))
        waited = time.monotonic() - self._began
        self._storage.wait(min(self._most, max(_LEAST, waited / 2)) * random.uniform(0.5, 1))
        self._before = time.thread_time()


class Leases:
    """Those of a build, as one worker sees them."""

    def __init__(self, storage: Storage, seconds: float, name: str = "") -> None:
        """:param name: by which an engine knows this worker, without spaces"""
        self._storage, self.seconds = storage, seconds
        self._owner, self._name = new_attempt(), name
        self._seen: dict[str, tuple[bytes, float]] = {}  # content, and since when it is that

    def there(self) -> set[str]:
        """The names of all, for :meth:`held`: one look tells who works on what."""
        return self._storage.names("leases")

    @contextlib.contextmanager
    def held(self, task: Task, there: Collection[str] | None = None) -> Iterator[bool]:
        """While the block runs the task is this worker's; False where it is another's.

        :param there: see :meth:`there`; None: as it is now. Where it is old, two may do the task
        """
        name = self._taken(task, self.there() if there is None else there)
        if name is None:
            yield False
            return
        stop = threading.Event()
        heart = threading.Thread(target=self._beat, args=(name, stop), daemon=True)
        heart.start()
        try:
            yield True
        finally:
            stop.set()
            heart.join()
            with contextlib.suppress(OSError):  # then it runs out
                self._storage.delete(name)

    def free(self, workers: Collection[str]) -> list[str]:
        """Ends the leases of workers by these names, which somebody knows to be lost. One that lives on nevertheless
        goes on with its task, as one does that was not heard of for too long.

        :return: the leases' names
        """
        ended = []
        for lease in sorted(self.there()):
            task, _, number = lease.rpartition(".")
            holder = (self._storage.read(f"leases/{lease}") or b"").decode(errors="replace").split()[2:]
            if not holder or holder[0] not in workers or not number.isdecimal():
                continue
            if self._storage.create(f"leases/{task}.{int(number) + 1}", _FREE, durable=False):
                ended.append(lease)
        return ended

    def _taken(self, task: Task, names: Collection[str]) -> str | None:
        """The lease, which is this worker's now. Each that runs out is followed by one of the next number, which one
        of those who want it can create."""
        there = self._numbers(task, names)
        number = 0
        if there:
            number = max(there)
            name = f"leases/{task.name}.{number}"
            content = self._storage.read(name)
            if content == _FREE:
                number += 1
            elif content is not None:
                seen, since = self._seen.get(name, (None, 0.0))
                if seen != content:
                    self._seen[name] = (content, time.monotonic())
                    return None
                if time.monotonic() - since < self.seconds:
                    return None
                number += 1
        name = f"leases/{task.name}.{number}"
        # Nothing that is done depends on it: to flush it to a disk would keep the task, and maybe others, waiting.
        if not self._storage.create(name, self._content(0), durable=False):
            return None
        for old in there:
            if old < number:
                self._storage.delete(f"leases/{task.name}.{old}")
                self._seen.pop(f"leases/{task.name}.{old}", None)
        return name

    def _numbers(self, task: Task, names: Collection[str]) -> list[int]:
        endings = [name.removeprefix(f"{task.name}.") for name in names if task.name in name]
        return [int(ending) for ending in endings if ending.isdecimal() and len(ending) < 10]

    def _content(self, beat: int) -> bytes:
        return " ".join([self._owner, str(beat), *([self._name] if self._name else [])]).encode() + b"\n"

    def _beat(self, name: str, stop: threading.Event) -> None:
        beat, pause = 0, min(self.seconds / 4, threading.TIMEOUT_MAX)  # of leases that never run out
        while not stop.wait(pause):
            beat += 1
            with contextlib.suppress(OSError):  # the next may reach the storage
                self._storage.replace(name, self._content(beat))

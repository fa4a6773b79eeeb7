# SPDX-License-Identifier: MIT
"""Workers on one machine compute by turns, as many at a time as there are processors for their threads: where more do,
the system gives each processor to another one every few milliseconds, which then finds nothing of its own in the
caches. The others read and write meanwhile."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
import zlib
from collections.abc import Iterator

_LEAST = 2.0  # seconds that a worker waits for its turn at most, or twice what it has computed last
_AGAIN = 0.02  # seconds, after which it looks again where it cannot wait for the end of another's turn


class Turns:
    """Those of the workers that may use the same processors, as one of them sees them.

    Who has a turn listens at an address in memory, which one process of a machine alone can have, and others hear when
    it is closed, or its process gone. Who waits in vain, since another is stopped while it has its turn, goes on
    without one: nothing depends on turns but time."""

    def __init__(self, threads: int, among: str = "") -> None:
        """
        :param threads: of a worker that computes
        :param among: only workers with the same word wait for each other
        """
        processors = os.sched_getaffinity(0)
        # Workers that are bound to other processors have turns of their own.
        ours = f"{os.getuid()}{among}.{zlib.crc32(repr(sorted(processors)).encode()):08x}"
        at_a_time = max(1, len(processors) // threads)
        # Several threads of a single worker would leave processors idle, now and then, which another's can use.
        count = 0 if at_a_time == 1 and threads > 1 else at_a_time
        self._addresses = [f"\0gnnd-turn.{ours}.{turn}" for turn in range(count)]
        self._patience = _LEAST

    @contextlib.contextmanager
    def waited_for(self) -> Iterator[bool]:
        """While the block runs it is this worker's turn. False: it has waited for too long, or nobody waits."""
        turn = None
        if self._addresses:
            with contextlib.suppress(OSError):  # of a system without such addresses, or a process with too many files
                turn = self._wait(time.monotonic() + self._patience)
        began = time.monotonic()
        try:
            yield turn is not None
        finally:
            self._patience = max(_LEAST, 2 * (time.monotonic() - began))
            if turn is not None:
                turn.close()

    def _wait(self, end: float) -> socket.socket | None:
        while True:
            for address in self._addresses:
                if (turn := _listening(address)) is not None:
                    return turn
            left = end - time.monotonic()
            if left <= 0:
                return None
            self._hear(left)

    def _hear(self, seconds: float) -> None:
        """Returns when one of the turns may have ended."""
        with contextlib.ExitStack() as connections:
            ends = select.poll()
            for address in self._addresses:
                connection = connections.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                connection.setblocking(False)
                try:
                    connection.connect(address)
                except OSError:  # it has ended meanwhile, or does not listen yet
                    time.sleep(min(seconds, _AGAIN))
                    return
                ends.register(connection, 0)  # errors, among which is the end, are told unasked
            ends.poll(1000 * seconds)


def _listening(address: str) -> socket.socket | None:
    """A socket with the address; None where there is another."""
    turn = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        turn.bind(address)
        turn.listen(64)
    except OSError:
        turn.close()
        return None
    return turn

# SPDX-License-Identifier: MIT
"""Workers on one machine compute by turns, as many at a time as there are processors for their threads: where more do,
the system gives each processor to another one every few milliseconds, which then finds nothing of its own in the
caches. The others read and write meanwhile."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import time
import zlib
from collections.abc import Iterator

_LEAST = 2.0  # seconds that a worker waits for its turn at most, or twice what it has computed at a time
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
        # Workers that are bound to other processors, or have another number of threads, have turns of their own.
        ours = f"{os.getuid()}{among}.{threads}.{zlib.crc32(repr(sorted(processors)).encode()):08x}"
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
            self._patience = max(self._patience, 2 * (time.monotonic() - began))
            if turn is not None:
                _end(turn)

    def _wait(self, end: float) -> socket.socket | None:
        with contextlib.ExitStack() as held:
            others: dict[str, socket.socket] = {}  # connections that end with the turns of those that have them
            held.callback(lambda: [connection.close() for connection in others.values()])
            while True:
                for address in self._addresses:
                    if (turn := _begin(address)) is not None:
                        return turn
                left = end - time.monotonic()
                if left <= 0:
                    return None
                self._hear(others, left)

    def _hear(self, others: dict[str, socket.socket], seconds: float) -> None:
        """Returns when one of the turns may have ended."""
        ends = select.poll()
        for address in self._addresses:
            if address not in others and (connection := _connected(address)) is not None:
                others[address] = connection
            if address in others:
                ends.register(others[address], 0)  # errors, among which is the end, are told unasked
        if len(others) < len(self._addresses):  # one has ended meanwhile, or does not listen yet
            seconds = min(seconds, _AGAIN)
        ended = {number for number, _ in ends.poll(1000 * seconds)}
        for address, connection in list(others.items()):
            if connection.fileno() in ended:
                others.pop(address).close()


_turns_here: set[socket.socket] = set()


def _begin(address: str) -> socket.socket | None:
    """A socket with the address; None where there is another. Raises OSError where there are no such addresses."""
    turn = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        turn.bind(address)
        turn.listen(64)
    except OSError as error:
        turn.close()
        if error.errno != errno.EADDRINUSE:
            raise
        return None
    _turns_here.add(turn)
    return turn


def _end(turn: socket.socket) -> None:
    _turns_here.discard(turn)
    turn.close()


def _connected(address: str) -> socket.socket | None:
    """A connection to who has the address; None where nobody has."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.setblocking(False)
    try:
        connection.connect(address)
    except OSError:
        connection.close()
        return None
    return connection


def _forget_turns() -> None:
    """A process that is forked while its parent has a turn would keep the address for as long as it lives."""
    for turn in _turns_here:
        turn.close()
    _turns_here.clear()


os.register_at_fork(after_in_child=_forget_turns)

# SPDX-License-Identifier: MIT
"""Whoever waits for what others make in a folder hears of it where the system tells: Linux, of what is done on the same
machine. Of others' machines it does not tell, so that nobody waits for that alone."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import struct
import time
import weakref
from collections.abc import Callable, Iterator

_CLOSED, _AT_ONCE = os.O_CLOEXEC, os.O_NONBLOCK  # inotify's flags have these values
_MOVED_TO, _CREATED, _OVERFLOW = 0x80, 0x100, 0x4000
_EVENT = struct.Struct("iIII")  # watch, what, cookie, bytes of the name


class Changes:
    """New names in some folders, from when this was made."""

    def __init__(self, folders: list[str], is_one: Callable[[str], bool]) -> None:
        """:param is_one: tells of a name whether it counts"""
        self._is_one = is_one
        self._queue: int | None = None
        with contextlib.suppress(OSError, AttributeError):  # no inotify, or no more of it for this user
            self._queue = _watching(folders)
            weakref.finalize(self, os.close, self._queue)

    def wait(self, seconds: float) -> None:
        """Returns after so many seconds, or as soon as there is something new since the last call."""
        if self._queue is None:
            time.sleep(seconds)
            return
        end, queue = time.monotonic() + seconds, select.poll()
        queue.register(self._queue, select.POLLIN)
        while (left := end - time.monotonic()) > 0 and not self._is_new():
            queue.poll(1000 * left)

    def _is_new(self) -> bool:
        """Empties the queue."""
        assert self._queue is not None
        new = False
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._queue, 1 << 16):
                new = any([self._is_one(name) for name in _names(data)]) or new
        return new


def _watching(folders: list[str]) -> int:
    """A descriptor that gives events. :raises OSError, AttributeError: there is nothing of the kind"""
    library = ctypes.CDLL(None, use_errno=True)
    queue = library.inotify_init1(_CLOSED | _AT_ONCE)
    if queue < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1")
    for folder in folders:
        if library.inotify_add_watch(queue, os.fsencode(folder), ctypes.c_uint32(_MOVED_TO | _CREATED)) < 0:
            os.close(queue)
            raise OSError(ctypes.get_errno(), "inotify_add_watch", folder)
    return int(queue)


def _names(data: bytes) -> Iterator[str]:
    """Of the events; an empty one for those that were too many."""
    at = 0
    while at < len(data):
        _, what, _, size = _EVENT.unpack_from(data, at)
        at += _EVENT.size + size
        yield "" if what & _OVERFLOW else os.fsdecode(data[at - size : at].rstrip(b"\0"))

# SPDX-License-Identifier: MIT
"""One record for each thing that is done: which file holds it. Whoever creates a record first has done it; what others
made of the same task meanwhile is deleted."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from .. import _native
from ._base import new_array
from ._batches import Batches
from ._plan import MANIFEST, Plan, seal, unseal
from ._schedule import Schedule, State
from ._storage import Damaged, Storage, checked_name, new_attempt

Graph = tuple[np.ndarray, np.ndarray]
T = TypeVar("T")


def view(array: np.ndarray, dtype: str) -> _native.Array:
    """A matrix as the native functions take it."""
    rows, columns = array.shape
    return _native.Array(array, array.ctypes.data, rows, columns, columns * array.itemsize, dtype)


def parts(graph: Graph, metric: str) -> tuple[Any, _native.Array, str]:
    """A graph as the native functions take it. Its ids may have 64 bits."""
    ids = np.ascontiguousarray(graph[0]) if graph[0].dtype == np.int64 else view(graph[0], "i32")
    return ids, view(graph[1], "f32"), metric


def new_graph(n: int, k: int, id_type: type = np.int32) -> Graph:
    """The arrays of one, with nothing in them yet."""
    return new_array((n, k), id_type), new_array((n, k), np.float32)


@dataclass(frozen=True)
class Record:
    """The content of ``done/NAME``: a file, and what it took to make it and all before it."""

    file: str
    size: int
    checksum: int
    seconds: float
    samples: int
    about: dict[str, Any] = field(default_factory=dict)  # what else is told of what is in the file


def _sum_of(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


class Records:
    """Those of one build."""

    def __init__(self, storage: Storage, plan: Plan) -> None:
        self.storage, self.plan = storage, plan
        self.schedule = plan.schedule  # as it was known when somebody looked last
        self.batches = Batches(storage, plan.id)
        self.moved = 0  # bytes of files that were read and written

    def state(self) -> State:
        names = self.storage.names("done")
        if self.plan.is_ordered:
            batches = self.batches.known(names)
            if batches != self.schedule.batches:
                self.schedule = Schedule(self.plan.manifest.count, batches)
        return State.of(self.schedule, names)

    def read(self, name: str) -> Record:
        """:raises Damaged: altered, gone, or of another build; the record is withdrawn then"""
        path = f"done/{name}"
        data = self.storage.read(path)
        try:
            if data is None:
                raise Damaged(f"{self.storage.url}/{path}: gone")
            content = unseal(data, f"{self.storage.url}/{path}")
            if content.get("build") != self.plan.id or content.get("what") != name:
                raise Damaged(f"{self.storage.url}/{path}: of another build")
            return Record(
                checked_name(str(content["file"])),
                int(content["bytes"]),
                int(content["file_checksum"]),
                float(content["seconds"]),
                int(content["samples"]),
                dict(content.get("about", {})),
            )
        except (KeyError, TypeError, ValueError):
            error = Damaged(f"{self.storage.url}/{path}: altered")
            self.withdraw(name)
            raise error from None
        except Damaged:
            self.withdraw(name)
            raise

    def load(self, name: str, n: int, k: int, objects: int, id_type: type = np.int32) -> Graph:
        """The graph that the record's file holds, verified.

        :raises Damaged: altered or gone; record and file are withdrawn then
        """

        def read(path: str, record: Record) -> Graph:
            graph = new_graph(n, k, id_type)
            _native.load_rows(path, record.size, record.checksum, parts(graph, self.plan.metric), objects)
            return graph

        return self._read_file(name, read)

    def _read_file(self, name: str, read: Callable[[str, Record], T]) -> T:
        """What ``read`` makes of the record's file, which it verifies. :raises Damaged: as :meth:`load`"""
        record = self.read(name)
        for last in (False, True):  # what was altered on the way is read once more
            try:
                path = self.storage.fetch(record.file, record.size)
                self.moved += record.size
                return read(path, record)
            except OSError as error:
                # An error of a system call is the storage's, not the file's; the library tells it as "cannot".
                if not isinstance(error, Damaged) and (error.errno is not None or ": cannot " in str(error)):
                    raise
                self.storage.discard(record.file)
                if last:
                    self.withdraw(name, record)
                    raise Damaged(str(error)) from None
        raise AssertionError

    def load_lists(self, name: str, shard: int) -> Graph:
        """Those of a shard, or what the graph has of as many rows: see :meth:`load`."""
        return self.load(name, self.plan.rows(shard), self.plan.k, self.plan.n, self.plan.id_type)

    def check_lists(self, name: str, shard: int) -> None:
        """Reads them once more, as :meth:`load_lists`, and keeps nothing."""
        plan = self.plan
        about = plan.rows(shard), plan.k, plan.n, plan.manifest.id_bytes

        def read(path: str, record: Record) -> None:
            _native.check_rows(path, record.size, record.checksum, *about)

        self._read_file(name, read)

    def look(self, name: str) -> Record:
        """The record, whose file is there and has its size.

        :raises Damaged: it is not; record and file are withdrawn then
        """
        record = self.read(name)
        try:
            self.storage.read_range(record.file, record.size, 0, 1)
        except Damaged:
            self.withdraw(name, record)
            raise
        return record

    def note(self, name: str, of: Record, seconds: float) -> None:
        """Creates a record that has no file of its own, but tells of another one's."""
        note = replace(of, seconds=seconds, samples=0, about={})
        if self._create(name, note, durable=False) and self._is_too_late():
            self.withdraw(name)

    def noted(self, name: str, of: Record) -> Record:
        """What :meth:`note` has created.

        :raises Damaged: as :meth:`read`, or it tells of another file than the record does now, and is withdrawn
        """
        note = self.read(name)
        if (note.file, note.size, note.checksum) != (of.file, of.size, of.checksum):
            self.withdraw(name)
            raise Damaged(f"{self.storage.url}/done/{name}: of {note.file}, which is {of.file} now")
        return note

    def save(self, name: str, graph: Graph, objects: int, seconds: float, samples: int, **about: Any) -> bool:
        """Writes the graph to a file of its own and then the record. False where another has been faster."""

        def write(file: str) -> tuple[int, int]:
            path = self.storage.path_for(file)
            written = _native.save_rows(path, parts(graph, self.plan.metric), self.plan.dtype, objects)
            self.storage.publish(file)
            return written

        return self._put(name, ".gnnd", write, seconds, samples, about)

    def load_array(self, name: str, dtype: type, count: int | None = None) -> np.ndarray:
        """The elements that the record's file holds, verified.

        :param count: of them; None: as many as there are
        :raises Damaged: altered or gone; record and file are withdrawn then
        """
        record = self.read(name)
        for last in (False, True):  # what was altered on the way is read once more
            try:
                data = self.storage.read_range(record.file, record.size, 0, record.size)
                self.moved += record.size
                if _sum_of(data) == record.checksum and count in (None, len(data) // np.dtype(dtype).itemsize):
                    return np.frombuffer(data, dtype)
                raise Damaged(f"{self.storage.url}/{record.file}: altered")
            except Damaged:
                if last:
                    self.withdraw(name, record)
                    raise
        raise AssertionError

    def save_array(self, name: str, array: np.ndarray, seconds: float, **about: Any) -> bool:
        """Writes the elements as :meth:`save` does a graph."""

        def write(file: str) -> tuple[int, int]:
            data = array.tobytes()
            self.storage.replace(file, data)
            return len(data), _sum_of(data)

        return self._put(name, ".bin", write, seconds, 0, about)

    def _put(
        self,
        name: str,
        ending: str,
        write: Callable[[str], tuple[int, int]],
        seconds: float,
        samples: int,
        about: dict[str, Any],
    ) -> bool:
        """:param write: makes a file, and gives its size and checksum"""
        attempt = f"{name}-{new_attempt()}{ending}"
        try:
            size, checksum = write(attempt)
            self.moved += size
            created = self._create(name, Record(attempt, size, checksum, seconds, samples, about))
        except OSError:
            self._forget(attempt)
            raise
        if not created:
            self.storage.delete(attempt)
        elif self._is_too_late():
            self.withdraw(name)
            self.storage.delete(attempt)
        return created

    def _create(self, name: str, record: Record, durable: bool = True) -> bool:
        """False where there is another one."""
        content: dict[str, Any] = {
            "what": name,
            "build": self.plan.id,
            "file": record.file,
            "bytes": record.size,
            "file_checksum": record.checksum,
            "seconds": record.seconds,
            "samples": record.samples,
            "about": record.about,
            "worker": f"{socket.gethostname()} {os.getpid()}",
        }
        return self.storage.create(f"done/{name}", seal(content), durable)

    def _is_too_late(self) -> bool:
        """True where all was finished meanwhile, and cleaned up."""
        return self.storage.read(MANIFEST) is not None

    def withdraw(self, name: str, record: Record | None = None) -> None:
        """Takes back what is damaged, or not needed any more."""
        self.storage.delete(f"done/{name}")
        if record is not None:
            self.storage.delete(record.file)

    def drop(self, name: str) -> None:
        """Deletes what is not needed any more: its file last, so that no record tells of one that is gone."""
        try:
            record = self.read(name)
        except Damaged:
            return
        self.withdraw(name, record)

    def _forget(self, file: str) -> None:
        try:
            self.storage.delete(file)
        except OSError:
            return  # what failed before is told

# SPDX-License-Identifier: MIT
"""The place of a build in shards: a folder that its processes share, or the keys below a URL of an object store.

Both know whole objects only. One is created once, by one of those who try, whoever else tries at the same time; it
is there whole or not at all.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import uuid
from pathlib import Path
from typing import BinaryIO, Protocol

from .._paths import path_of
from ._changes import Changes

STORAGE_OPTIONS = ("storage_options", "staging", "staging_bytes")  # which folders do not need

# All names that a build uses: no separators but that of one folder, no parent folders, nothing hidden.
_NAME = re.compile(r"(?:[a-z]+/)?[a-z][A-Za-z0-9._-]{0,120}")


class Damaged(OSError):
    """An object of the build is altered, or gone: what it held is to be made anew."""


class Storage(Protocol):
    """Objects by name. What goes wrong, full disks among it, is an OSError."""

    url: str

    def read(self, name: str) -> bytes | None:
        """A small object; None where there is none."""

    def create(self, name: str, data: bytes, durable: bool = True) -> bool:
        """Creates a small object. True where it is there with these bytes, False where another one is.

        :param durable: False: a power cut may take it away, or what is in it
        """

    def replace(self, name: str, data: bytes) -> None:
        """Writes an object in one step, whatever was there."""

    def read_range(self, name: str, size: int, begin: int, count: int) -> bytes:
        """Bytes [begin, begin + count) of a large object.

        :raises Damaged: there is none of that size
        """

    def delete(self, name: str) -> None:
        """Deletes an object, if it is there."""

    def names(self, folder: str = "") -> set[str]:
        """The objects right below the folder, without its name."""

    def path_for(self, name: str) -> str:
        """The local file where a new object is to be written; :meth:`publish` then makes it one."""

    def publish(self, name: str) -> None:
        """Makes the object of what was written to :meth:`path_for`, durable when the call returns."""

    def fetch(self, name: str, size: int) -> str:
        """A local file with the content of a large object. It stays until others need its place.

        :raises Damaged: there is none of that size
        """

    def discard(self, name: str) -> None:
        """Forgets what :meth:`fetch` may have kept."""

    def wait(self, seconds: float) -> None:
        """Returns after so many seconds, or before where it is told that something is done. What was done since the
        last call is told, too."""

    def check(self) -> None:
        """:raises OSError: it cannot hold a build"""


def checked_name(name: str) -> str:
    """The name, provided that it is one of an object of a build.

    :raises Damaged: for others, such as lead out of the folder
    """
    if not _NAME.fullmatch(name) or ".." in name:
        raise Damaged(f"'{name}' is no name of an object of a build")
    return name


def new_attempt() -> str:
    """A string that no other attempt at the same task has in its names."""
    return uuid.uuid4().hex[:12]


class Folder:
    """A folder on a disk of this machine or on one that machines share: its file system must know hard links, and
    rename in one step, as NFS, Lustre, GPFS and local ones do."""

    def __init__(self, path: str | os.PathLike[str], create: bool = False) -> None:
        self.url = os.path.abspath(path_of(path))
        self._path = Path(self.url)
        self._changes: Changes | None = None
        if create:
            for folder in ("", "done", "leases"):
                (self._path / folder).mkdir(parents=True, exist_ok=True)
        if not self._path.is_dir():
            raise FileNotFoundError(errno.ENOENT, "No such folder", self.url)

    def read(self, name: str) -> bytes | None:
        try:
            return self._at(name).read_bytes()
        except FileNotFoundError:
            return None

    def create(self, name: str, data: bytes, durable: bool = True) -> bool:
        path = self._at(name)
        temporary = self._written(path, data, durable)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return self.read(name) == data  # None where it has been deleted since
        finally:
            temporary.unlink(missing_ok=True)
        if durable:
            _flush_folder(path.parent)
        return True

    def replace(self, name: str, data: bytes) -> None:
        path = self._at(name)
        temporary = self._written(path, data)
        try:
            os.replace(temporary, path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        _flush_folder(path.parent)

    def delete(self, name: str) -> None:
        self._at(name).unlink(missing_ok=True)

    def names(self, folder: str = "") -> set[str]:
        try:
            with os.scandir(self._path / folder) as entries:
                return {entry.name for entry in entries if entry.is_file()}
        except FileNotFoundError:
            return set()

    def path_for(self, name: str) -> str:
        return str(self._at(name))

    def publish(self, name: str) -> None:
        """The library has written it under a temporary name, flushed and renamed it."""

    def fetch(self, name: str, size: int) -> str:
        path = self._at(name)
        try:
            found = path.stat().st_size
        except FileNotFoundError:
            raise Damaged(errno.ENOENT, "It is gone", str(path)) from None
        if found != size:
            raise Damaged(f"{path}: altered: {found} bytes, {size} were written")
        return str(path)

    def read_range(self, name: str, size: int, begin: int, count: int) -> bytes:
        path = self.fetch(name, size)
        with open(path, "rb") as file:
            data = os.pread(file.fileno(), count, begin)
            while len(data) < count:  # one call gives 2 GiB at most
                more = os.pread(file.fileno(), count - len(data), begin + len(data))
                if not more:
                    raise Damaged(f"{path}: altered: it has become shorter")
                data += more
        return data

    def discard(self, name: str) -> None:
        """Nothing is kept."""

    def wait(self, seconds: float) -> None:
        if self._changes is None:  # whoever waits for the first time may have missed something before
            self._changes = Changes([self.url, str(self._path / "done")], _ends_waiting)
            return
        self._changes.wait(seconds)

    def check(self) -> None:
        """Finds nothing beforehand: a folder fails when it is asked for what it cannot do."""

    def _at(self, name: str) -> Path:
        return self._path / checked_name(name)

    def _written(self, path: Path, data: bytes, durable: bool = True) -> Path:
        temporary = path.with_name(f"{path.name}.tmp.{new_attempt()}")
        try:
            with self._new_file(temporary) as file:
                file.write(data)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        return temporary

    def _new_file(self, path: Path) -> BinaryIO:
        try:
            return open(path, "xb")
        except FileNotFoundError:  # whatever copied an unfinished build here may have left empty folders behind
            path.parent.mkdir(exist_ok=True)
            return open(path, "xb")


def _ends_waiting(name: str) -> bool:
    """True for a new name, of a folder or of ``done``, after which there may be a task, or none any more: no temporary
    one, and none of the graphs that records tell of."""
    return not name.endswith(".gnnd") and ".tmp." not in name


def _flush_folder(path: Path) -> None:
    """Flushes names, so that a power cut does not take one away that was seen. Not every file system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def is_url(work: str) -> bool:
    """True for what fsspec is to open."""
    return "://" in work


def place_of(work: str | os.PathLike[str]) -> str:
    """A folder's path, or a URL. That of a local file is its path: a folder knows how to create an object in one step,
    which fsspec does not do there.

    :raises ValueError: it is empty, which would be the present folder
    """
    name = path_of(work, "work")
    for scheme in ("file://", "local://"):
        name = name.removeprefix(scheme)
    if not name:
        raise ValueError("work is empty; it must name a folder")
    return name


def storage(work: str | os.PathLike[str], create: bool = False, **options: object) -> Storage:
    """The storage at a path or URL.

    :param create: make the folder where it is not there
    :param options: of :class:`gnnd.distributed._objects.Objects`, where it is a URL: ``staging``, ``staging_bytes``,
        ``storage_options``
    """
    name = place_of(work)
    if not is_url(name):
        unknown = sorted(options.keys() - set(STORAGE_OPTIONS))
        if unknown:
            raise TypeError(f"unknown parameter '{unknown[0]}'")
        return Folder(name, create)
    from ._objects import Objects

    return Objects(name, **options)  # type: ignore[arg-type]

# SPDX-License-Identifier: MIT
"""Object stores, through fsspec: requests that are tried again, reads in parallel ranges, copies on a local disk."""

from __future__ import annotations

import collections
import errno
import os
import random
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from ._storage import Damaged, checked_name, new_attempt

T = TypeVar("T")

BLOCK = 8 << 20  # bytes of a request that reads
_READERS = 8  # requests at the same time
_ATTEMPTS = 7  # of a request
PAUSE = 0.2  # seconds after the first of them; then twice as long each, and at random up to a half less


def file_system(url: str, storage_options: dict[str, Any] | None) -> tuple[Any, str]:
    """fsspec's file system for a URL, and the path in it."""
    try:
        import fsspec
    except ImportError:
        raise ImportError(f"{url}: URLs need fsspec and its part for them: pip install gnnd[s3]") from None
    options = {"use_listings_cache": False, **(storage_options or {})}
    try:
        return fsspec.core.url_to_fs(url, **options)  # type: ignore[no-any-return]
    except ImportError as error:
        raise ImportError(f"{url}: {error}; for s3: pip install gnnd[s3]") from None


def request(what: str, action: Callable[[], T]) -> T:
    """Returns the action's result, and tries it again with pauses: a store is busy, a reply is lost or cut.

    :raises FileNotFoundError, PermissionError: at once; OSError when the last attempt has failed
    """
    for attempt in range(_ATTEMPTS):
        try:
            return action()
        except (FileNotFoundError, PermissionError):
            raise
        except Exception as error:
            if attempt == _ATTEMPTS - 1:
                raise OSError(f"{what}: {type(error).__name__}: {error}, {_ATTEMPTS} times") from error
            time.sleep(PAUSE * 2**attempt * random.uniform(0.5, 1))
    raise AssertionError


def read_range(fs: Any, path: str, begin: int, count: int) -> bytes:
    """Bytes [begin, begin + count) of an object, all of them."""

    def read() -> bytes:
        data = fs.cat_file(path, start=begin, end=begin + count)
        if len(data) != count:
            raise OSError(f"{len(data)} bytes instead of {count}")
        return data  # type: ignore[no-any-return]

    return request(f"reading {path}", read)


def read_blocks(fs: Any, path: str, begin: int, count: int, take: Callable[[int, bytes], object]) -> None:
    """Calls take(offset from begin, bytes) for all blocks of a range, from several threads."""

    def read(offset: int) -> None:
        take(offset, read_range(fs, path, begin + offset, min(BLOCK, count - offset)))

    if count <= BLOCK:
        read(0)
        return
    with ThreadPoolExecutor(_READERS) as readers:
        collections.deque(readers.map(read, range(0, count, BLOCK)), 0)


def _into(data: bytearray) -> Callable[[int, bytes], None]:
    """What takes the blocks of a range, of :func:`read_blocks`, into memory."""

    def take(offset: int, block: bytes) -> None:
        data[offset : offset + len(block)] = block

    return take


class Reader:
    """An object that is read in ranges."""

    def __init__(self, url: str, storage_options: dict[str, Any] | None) -> None:
        self.url = url
        self._fs, self._path = file_system(url, storage_options)
        self.size = int(request(f"looking at {url}", lambda: self._fs.info(self._path))["size"])

    def read(self, begin: int, count: int) -> bytearray:
        """Bytes [begin, begin + count). :raises OSError: there are fewer, or the store fails"""
        data = bytearray(count)
        if count:
            read_blocks(self._fs, self._path, begin, count, _into(data))
        return data


class Objects:
    """The keys below a URL. The store must know conditional puts, as S3 and GCS do, and show what was written at once.

    :param storage_options: for fsspec: credentials, endpoint, ...
    :param staging: local folder for copies of objects; None: one of the system's temporary ones
    :param staging_bytes: how much they may take; 0: half of what is free there. A graph file must fit
    """

    def __init__(
        self,
        url: str,
        storage_options: dict[str, Any] | None = None,
        staging: str | None = None,
        staging_bytes: int = 0,
    ) -> None:
        self.url = url.rstrip("/")
        self._fs, self._path = file_system(self.url, storage_options)
        if staging is not None:
            os.makedirs(staging, exist_ok=True)
        self._staging = Path(tempfile.mkdtemp(prefix="gnnd-", dir=staging))
        weakref.finalize(self, shutil.rmtree, self._staging, ignore_errors=True)
        self._bound = staging_bytes or shutil.disk_usage(self._staging).free // 2
        self._staged: collections.OrderedDict[str, int] = collections.OrderedDict()  # sizes, last used last

    def check(self) -> None:
        """:raises OSError: the store does not know conditional puts"""
        name = f"probe.{new_attempt()}"
        if not self.create(name, b"first") or self.create(name, b"second"):
            raise OSError(f"{self.url}: the store does not create objects on the condition that they are not there")
        self.delete(name)

    def read(self, name: str) -> bytes | None:
        key = self._at(name)
        try:
            return bytes(request(f"reading {key}", lambda: self._fs.cat_file(key)))
        except FileNotFoundError:
            return None

    def create(self, name: str, data: bytes, durable: bool = True) -> bool:
        """Looks in the end: a put may have been done though its reply was lost, or not though it was told."""
        key = self._at(name)

        def attempt() -> bool:
            failed: Exception | None = None
            try:
                self._fs.pipe_file(key, data, mode="create")
            except Exception as error:
                failed = error
            try:
                return bool(self._fs.cat_file(key) == data)
            except FileNotFoundError:
                raise failed or OSError("it was lost") from None

        return request(f"creating {key}", attempt)

    def replace(self, name: str, data: bytes) -> None:
        key = self._at(name)
        request(f"writing {key}", lambda: self._fs.pipe_file(key, data))

    def delete(self, name: str) -> None:
        self.discard(name)
        key = self._at(name)

        def attempt() -> None:
            try:
                self._fs.rm_file(key)
            except FileNotFoundError:
                return

        request(f"deleting {key}", attempt)

    def names(self, folder: str = "") -> set[str]:
        path = f"{self._path}/{folder}".rstrip("/")

        def attempt() -> set[str]:
            self._fs.invalidate_cache()
            try:
                found = self._fs.ls(path, detail=True)
            except FileNotFoundError:
                return set()
            return {entry["name"].rpartition("/")[2] for entry in found if entry["type"] == "file"}

        return request(f"listing {path}", attempt)

    def path_for(self, name: str) -> str:
        return str(self._staging / checked_name(name))

    def publish(self, name: str) -> None:
        """In parts, where it is large."""
        key, path = self._at(name), self.path_for(name)
        size = os.path.getsize(path)
        self._make_room(size)
        self._staged[name] = size

        def attempt() -> None:
            self._fs.put_file(path, key)
            self._fs.invalidate_cache()
            if self._fs.info(key)["size"] != size:
                raise OSError("another size than was written")

        request(f"writing {key}", attempt)

    def read_range(self, name: str, size: int, begin: int, count: int) -> bytes:
        key = self._at(name)
        self._require_size(key, size)
        data = bytearray(count)
        try:
            read_blocks(self._fs, key, begin, count, _into(data))
        except FileNotFoundError:
            raise Damaged(errno.ENOENT, "It is gone", key) from None
        return bytes(data)

    def fetch(self, name: str, size: int) -> str:
        key, path = self._at(name), self.path_for(name)
        if self._staged.get(name) == size:
            self._staged.move_to_end(name)
            return path
        self.discard(name)
        self._make_room(size)
        self._require_size(key, size)
        with open(path, "wb") as file:
            file.truncate(size)
            read_blocks(self._fs, key, 0, size, lambda offset, data: os.pwrite(file.fileno(), data, offset))
        self._staged[name] = size
        return path

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def discard(self, name: str) -> None:
        if self._staged.pop(name, None) is not None:
            Path(self.path_for(name)).unlink(missing_ok=True)

    def _require_size(self, key: str, size: int) -> None:
        try:
            found = request(f"looking at {key}", lambda: self._fs.info(key))["size"]
        except FileNotFoundError:
            raise Damaged(errno.ENOENT, "It is gone", key) from None
        if found != size:
            raise Damaged(f"{key}: altered: {found} bytes, {size} were written")

    def _make_room(self, size: int) -> None:
        if size > self._bound:
            raise OSError(errno.ENOSPC, f"staging_bytes = {self._bound}, a file has {size}", str(self._staging))
        while sum(self._staged.values()) + size > self._bound:
            self.discard(next(iter(self._staged)))

    def _at(self, name: str) -> str:
        return f"{self._path}/{checked_name(name)}"

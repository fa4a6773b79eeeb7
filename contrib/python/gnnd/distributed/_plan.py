# SPDX-License-Identifier: MIT
"""The plan of several processes that build one graph: base, parameters, shards. One of them writes it, all others
read it."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import _native
from ._base import Base, Rows, numpy_type
from ._schedule import Schedule
from ._storage import Damaged, Folder, Storage

_FORMAT = "gnnd build by several processes"
_VERSION = 1
_LOCK_ATTEMPTS = 50
_GAP = 1 << 16  # bytes: what lies farther apart is not read between
_READERS = 16
BUILD, MANIFEST, SAMPLE = "build.json", "manifest.json", "sample.bin"


def seal(content: dict[str, Any]) -> bytes:
    """The content as JSON with a checksum."""
    text = json.dumps(content, indent=1, sort_keys=True)
    return json.dumps({**content, "checksum": _digest(text.encode())}, indent=1, sort_keys=True).encode() + b"\n"


def unseal(data: bytes, name: str) -> dict[str, Any]:
    """The same back. :raises Damaged: altered in any byte"""
    try:
        content = json.loads(data)
        del content["checksum"]
        whole = seal(content) == data
    except (ValueError, KeyError, TypeError, RecursionError):
        whole = False
    if not whole:
        raise Damaged(f"{name}: altered: it does not match its checksum")
    return content


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


@dataclass(frozen=True)
class Plan:
    """A build in shards, as ``build.json`` tells it."""

    manifest: _native.Manifest  # without files
    recall_objects: int  # on which the recall of the whole is measured; 0: it is not

    @functools.cached_property
    def id(self) -> str:
        """The name by which records of the same build know each other, wherever its base lies."""
        base = {name: self.manifest.base[name] for name in ("n", "d", "dtype", "checksum")}
        return _digest(json.dumps([base, self.manifest.params, self.manifest.count], sort_keys=True).encode())

    @functools.cached_property
    def schedule(self) -> Schedule:
        return Schedule(self.manifest.count)

    @property
    def n(self) -> int:
        return int(self.manifest.base["n"])

    @property
    def k(self) -> int:
        return int(self.manifest.params["k"])

    @property
    def metric(self) -> str:
        return str(self.manifest.params["metric"])

    def begin(self, shard: int) -> int:
        """Its first row; that of the shard behind the last is n."""
        return self.manifest.begin_of(shard)

    def rows(self, shard: int) -> int:
        return self.begin(shard + 1) - self.begin(shard)

    @functools.cached_property
    def task_bytes(self) -> int:
        """Host memory that a merge holds at least: of both shards vectors, local graphs, lists, these once more while
        they are written, and what it finds."""
        base, columns = self.manifest.base, self.manifest.local_columns + 3 * self.k
        row = int(base["d"]) * np.dtype(numpy_type(str(base["dtype"]))).itemsize + 8 * columns
        return min(2, self.manifest.count) * max(map(self.rows, range(self.manifest.count))) * row

    def objects(self) -> np.ndarray:
        """The objects on which the recall is measured, ascending."""
        return np.array(_native.sample_objects(self.n, self.recall_objects, self.manifest.params["seed"]), np.int32)

    def sample(self, storage: Storage, base: Base) -> Rows:
        """Their vectors: from the storage, or, where they are not there or altered, from the base, row by row."""
        dtype, d = str(self.manifest.base["dtype"]), int(self.manifest.base["d"])
        stored = storage.read(SAMPLE) or b""
        if stored[:16] == self._seal_of(stored[16:]):
            return Rows(np.frombuffer(stored, numpy_type(dtype), offset=16).reshape(-1, d), dtype)
        return self._sampled(base)

    def put_sample(self, storage: Storage, base: Base) -> None:
        """Stores the sample, so that each worker need not read the base in so many places."""
        if self.recall_objects:
            data = self._sampled(base).array.tobytes()
            storage.replace(SAMPLE, self._seal_of(data) + data)

    def _sampled(self, base: Base) -> Rows:
        """Those that lie near each other are read at once, and some places at a time."""
        objects = self.objects().astype(np.int64)
        row = base.read(0, 1).array.nbytes
        places = np.split(objects, np.flatnonzero(np.diff(objects) * row > _GAP) + 1)

        def read(wanted: np.ndarray) -> np.ndarray:
            begin = int(wanted[0])
            return base.read(begin, int(wanted[-1]) + 1 - begin).array[wanted - begin]

        with ThreadPoolExecutor(_READERS) as readers:
            array = np.concatenate(list(readers.map(read, places)))
        return Rows(array, str(self.manifest.base["dtype"]))

    def _seal_of(self, data: bytes) -> bytes:
        return hashlib.blake2b(data + self.id.encode(), digest_size=16).digest()

    def to_bytes(self) -> bytes:
        return seal(
            {
                "format": _FORMAT,
                "version": _VERSION,
                "manifest": self.manifest.text(),
                "recall_objects": self.recall_objects,
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes, name: str) -> Plan:
        """:raises Damaged: altered; OSError: of a version that is not known, or no plan"""
        content = unseal(data, name)
        if content.get("format") != _FORMAT:
            raise OSError(f"{name}: not a build by several processes")
        if content.get("version") != _VERSION:
            raise OSError(f"{name}: version {content.get('version')}, this library knows {_VERSION}")
        return cls(_native.Manifest.parse(content["manifest"], name), int(content["recall_objects"]))


def read_plan(storage: Storage) -> Plan | None:
    """None where the graph is finished.

    :raises FileNotFoundError: nobody has begun one; OSError as :meth:`Plan.from_bytes`
    """
    data = storage.read(BUILD)
    if data is not None:
        return Plan.from_bytes(data, f"{storage.url}/{BUILD}")
    if finished(storage) is None:
        raise FileNotFoundError(2, "No build was begun there", storage.url)
    return None


def finished(storage: Storage) -> _native.Manifest | None:
    """The manifest of a graph that is complete.

    :raises OSError: it is altered, or one process alone has built a part of a graph there
    """
    data = storage.read(MANIFEST)
    if data is None:
        return None
    name = f"{storage.url}/{MANIFEST}"
    try:
        manifest = _native.Manifest.parse(data.decode(), name)
    except UnicodeDecodeError:
        raise OSError(f"{name}: altered: no text") from None
    if not manifest.complete:
        raise OSError(
            f"{storage.url}: holds a part of a graph of gnnd.build_sharded(); resume it, or take another folder"
        )
    return manifest


def start(storage: Storage, base: Base, params: dict[str, Any], shards: int, recall_objects: int) -> Plan | None:
    """Begins a build, or joins the same one.

    :return: None where it is finished
    :raises OSError: another graph is there (what differs is told), or another process works there
    """
    wanted = Plan(
        _native.Manifest.begin(base.record, params, shards),
        recall_objects if 0 < float(params.get("recall", 0.99)) < 1 else 0,
    )
    with _folder_lock(storage):
        there = finished(storage)
        if there is not None:
            _require_same(storage, there, wanted)
            return None
        data = storage.read(BUILD)
        if data is None:
            storage.check()
        if data is None and storage.create(BUILD, wanted.to_bytes()):
            wanted.put_sample(storage, base)
            return wanted
        data = data or storage.read(BUILD) or b""
        try:
            plan = Plan.from_bytes(data, f"{storage.url}/{BUILD}")
        except Damaged:  # records tell whose they are
            storage.replace(BUILD, wanted.to_bytes())
            return wanted
    _require_same(storage, plan.manifest, wanted)
    return plan


def _require_same(storage: Storage, there: _native.Manifest, wanted: Plan) -> None:
    difference = there.difference(wanted.manifest)
    if difference:
        raise OSError(f"{storage.url}: holds another graph, or a part of one: {difference}; take another place")


@contextlib.contextmanager
def _folder_lock(storage: Storage) -> Iterator[None]:
    """Of folders, that which keeps gnnd.build_sharded() out; afterwards it stays out by seeing ``build.json``."""
    if not isinstance(storage, Folder):
        yield
        return
    descriptor = os.open(Path(storage.url) / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        for attempt in range(_LOCK_ATTEMPTS):  # other workers, that begin at the same time, hold it for moments
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if attempt == _LOCK_ATTEMPTS - 1:
                    raise OSError(f"{storage.url}: in use by another process") from None
                time.sleep(0.1)
            except OSError:  # a file system without locks: build_sharded() does not work there
                break
        yield
    finally:
        os.close(descriptor)

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import _native
from ._base import Base, Rows, numpy_type, scattered
from ._schedule import Schedule
from ._storage import Damaged, Folder, Storage

_FORMAT = "gnnd build by several processes"
_VERSIONS = (1, 2)  # the least that holds what is to be told: 2 for ordered bases and wide ids
_LOCK_ATTEMPTS = 50
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
        what = [base, self.manifest.params, self.manifest.count, *(["near"] if self.is_ordered else [])]
        what += [8] if self.id_type == np.int64 else []
        return _digest(json.dumps(what, sort_keys=True).encode())

    @property
    def is_ordered(self) -> bool:
        """True where shards are parts of the space, and not all pairs of them are merged."""
        return self.manifest.is_ordered

    @functools.cached_property
    def schedule(self) -> Schedule:
        """Of an ordered base, before the first merges are chosen."""
        return Schedule(self.manifest.count, () if self.is_ordered else None)

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

    @property
    def id_type(self) -> type:
        """Of ids in lists, of the whole set."""
        return np.int32 if self.manifest.id_bytes == 4 else np.int64

    @property
    def dtype(self) -> str:
        return str(self.manifest.base["dtype"])

    @property
    def d(self) -> int:
        return int(self.manifest.base["d"])

    @property
    def row_bytes(self) -> int:
        """Of a vector."""
        return self.d * np.dtype(numpy_type(self.dtype)).itemsize

    @functools.cached_property
    def task_bytes(self) -> int:
        """Host memory that a task holds at least. A merge: of both shards vectors, local graphs, lists, these once more
        while they are written, and what it finds; the way back to rows of the base: the order, and the result."""
        most, lists = max(map(self.rows, range(self.manifest.count))), self.k * (4 + self.manifest.id_bytes)
        graphs = 8 * (self.manifest.local_columns + self.k)
        merge = min(2, self.manifest.count) * most * (self.row_bytes + graphs + 2 * lists)
        return max(merge, self.manifest.id_bytes * self.n + most * lists) if self.is_ordered else merge

    def objects(self) -> np.ndarray:
        """The objects on which the recall is measured, ascending."""
        return np.array(_native.sample_objects(self.n, self.recall_objects, self.manifest.params["seed"]), np.int64)

    def sample(self, storage: Storage, base: Base) -> Rows:
        """Their vectors: from the storage, or, where they are not there or altered, from the base, row by row."""
        stored = storage.read(SAMPLE) or b""
        if stored[:16] == self._seal_of(stored[16:]):
            return Rows(np.frombuffer(stored, numpy_type(self.dtype), offset=16).reshape(-1, self.d), self.dtype)
        return scattered(base, self.objects())

    def put_sample(self, storage: Storage, base: Base) -> None:
        """Stores the sample, so that each worker need not read the base in so many places."""
        if self.recall_objects:
            data = scattered(base, self.objects()).array.tobytes()
            storage.replace(SAMPLE, self._seal_of(data) + data)

    def _seal_of(self, data: bytes) -> bytes:
        return hashlib.blake2b(data + self.id.encode(), digest_size=16).digest()

    def to_bytes(self) -> bytes:
        return seal(
            {
                "format": _FORMAT,
                "version": 2 if self.is_ordered or self.id_type == np.int64 else 1,
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
        if content.get("version") not in _VERSIONS:
            raise OSError(f"{name}: version {content.get('version')}, this library knows {_VERSIONS}")
        try:
            manifest, count = _native.Manifest.parse(content["manifest"], name), int(content["recall_objects"])
        except (KeyError, TypeError, ValueError):
            manifest, count = None, -1
        if manifest is None or count < 0:
            raise OSError(f"{name}: altered, or not the plan of a build by several processes")
        return cls(manifest, count)


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


def start(
    storage: Storage,
    base: Base,
    params: dict[str, Any],
    shards: int,
    recall_objects: int,
    plan: str = "all",
    id_bytes: int = 0,
) -> Plan | None:
    """Begins a build, or joins the same one.

    :return: None where it is finished
    :raises OSError: another graph is there (what differs is told), or another process works there; ValueError:
        parameters out of range
    """
    wanted = Plan(
        _native.Manifest.begin(base.record, params, shards, plan, id_bytes),
        recall_objects if 0 < float(params.get("recall", 0.99)) < 1 else 0,
    )
    if wanted.is_ordered and recall_objects == 0:
        raise ValueError("recall_objects = 0, by which plan = 'near' cannot tell when to end; 1 or more are allowed")
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
            begun = Plan.from_bytes(data, f"{storage.url}/{BUILD}")
        except Damaged:  # records tell whose they are
            storage.replace(BUILD, wanted.to_bytes())
            return wanted
    _require_same(storage, begun.manifest, wanted)
    return begun


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

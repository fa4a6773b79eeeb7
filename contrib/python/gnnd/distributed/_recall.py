# SPDX-License-Identifier: MIT
"""The recall of a graph in shards as a whole, from a sample of its objects: each shard's build tells their nearest in
it, and with every version of its lists the first columns of those objects that are in the shard."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from .. import _native
from ._base import Base, Rows
from ._cut import Cut
from ._plan import Plan
from ._records import Graph, Records, parts, view
from ._schedule import Schedule


class Recall:
    """As one worker measures it."""

    def __init__(self, plan: Plan, records: Records, cut: Cut, base: Base, params: dict[str, Any]) -> None:
        self._plan, self._records, self._cut, self._base, self._params = plan, records, cut, base, params
        self._at = min(plan.manifest.recall_at, plan.n - 1)  # neighbours that count

    def nearest(self, shard: int, vectors: Rows) -> Graph:
        """Of all objects of the sample the nearest in the shard, with its ids."""
        if not self._plan.recall_objects:
            return np.full((1, 1), -1, np.int32), np.full((1, 1), np.inf, np.float32)
        shards, numbers = self._cut.places()
        selves = np.where(shards == shard, numbers, -1).astype(np.int32)
        sample = self._plan.sample(self._records.storage, self._base)
        return _native.nearest(vectors.native, sample.native, view(selves[:, None], "i32"), self._at, self._params)

    def of_lists(self, shard: int, lists: Graph) -> str:
        """The first columns of the sample's objects, as a record tells them."""
        if not self._plan.recall_objects:
            return ""
        shards, numbers = self._cut.places()
        mine = numbers[shards == shard]
        return base64.b64encode(b"".join(part[mine, : self._at].tobytes() for part in lists)).decode()

    def truth(self) -> Graph:
        """The nearest in all shards, with the places of these as ids."""
        plan = self._plan
        truth = self._rows()
        for shard in range(plan.manifest.count):
            count = plan.rows(shard)
            nearest = self._records.load(f"nearest-{shard:05d}", len(truth[0]), self._at, count)
            threads = int(self._params["threads"])
            to = parts(truth, plan.metric)
            _native.fold(parts(nearest, plan.metric), 0, count, plan.begin(shard), to, threads)
        return truth

    def pairs(self, truth: Graph) -> np.ndarray:
        """How many objects and true neighbours are in each two shards, as the native functions take it."""
        count = self._plan.manifest.count
        begins = np.array([self._plan.begin(shard) for shard in range(count)])
        mine = np.broadcast_to(self._cut.places()[0][:, None], truth[0].shape)
        theirs = np.searchsorted(begins, truth[0], side="right") - 1
        pairs = np.zeros((count, count), np.int64)
        is_one = truth[0] >= 0
        first, second = np.minimum(mine, theirs)[is_one], np.maximum(mine, theirs)[is_one]
        np.add.at(pairs, (first, second), 1)
        return pairs.ravel()

    def measure(self, schedule: Schedule, truth: Graph) -> dict[str, Any]:
        """Of the lists, after the last merges that are known."""
        plan = self._plan
        rows, shards = self._rows(), self._cut.places()[0]
        for shard in range(plan.manifest.count):
            here = shards == shard
            found = self._found(shard, schedule.last_lists(shard), int(here.sum()))
            for to, source in zip(rows, found, strict=True):
                to[here] = source
        recall: Any = _native.recall_of_rows(plan.n, plan.d, parts(rows, plan.metric), parts(truth, plan.metric))
        return recall  # type: ignore[no-any-return]

    def of_all(self) -> dict[str, Any]:
        """Where all pairs of vectors are compared."""
        return {
            "recall": 1.0,
            "recall_low": 1.0,
            "recall_high": 1.0,
            "recall_at": self._at,
            "recall_objects": self._plan.n,
        }

    def _rows(self) -> Graph:
        shape = len(self._plan.objects()), self._at
        fill = -np.inf if _native.is_similarity(self._plan.metric) else np.inf
        return np.full(shape, -1, self._plan.id_type), np.full(shape, fill, np.float32)

    def _found(self, shard: int, name: str, count: int) -> Graph:
        """What its record tells; lists that were written by earlier versions are read for it."""
        told = self._records.read(name).about.get("sample")
        if told is None:
            told = self.of_lists(shard, self._records.load_lists(name, shard))
        data, shape, id_type = base64.b64decode(told), (count, self._at), self._plan.id_type
        ids = count * self._at * np.dtype(id_type).itemsize
        return np.frombuffer(data[:ids], id_type).reshape(shape), np.frombuffer(data[ids:], np.float32).reshape(shape)

# SPDX-License-Identifier: MIT
"""What the plan `near` has beside builds and merges: which pairs of shards are merged, and the way from their order
back to the rows of the base."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from .. import _native
from ._base import Base, scattered
from ._cut import Cut
from ._order import Order
from ._plan import Plan
from ._records import Records, new_graph, parts
from ._rules import AllPairs
from ._schedule import BORDERS, Schedule, Task


class Near(AllPairs):
    """Shards are parts of the space, and those are merged that share borders."""

    def __init__(self, plan: Plan, records: Records, base: Base, params: dict[str, Any]) -> None:
        self._order = Order(plan, records, base, int(params["threads"]))
        super().__init__(plan, records, base, params)
        self.tasks = {
            "partition": self._order.partition,
            "assign": self._order.assign,
            "divide": self._order.divide,
            "borders": self._borders,
            "choose": self._choose,
            "restore": self._restore,
        }

    @property
    def build_params(self) -> dict[str, Any]:
        return {**self._params, "recall": _native.recall_of_builds(self._params["recall"])}

    def merge_params(self, schedule: Schedule, task: Task) -> dict[str, Any]:
        """What may be missing in the end is shared by the merges of a batch."""
        recall = _native.recall_of_merges(self._params["recall"], schedule.chosen_with(task), schedule.shards)
        return {**self._params, "recall": recall}

    def recall_in_the_end(self, schedule: Schedule) -> dict[str, Any] | None:
        """As it was measured when no more merges were chosen."""
        return schedule.batches[-1].recall

    def _made_cut(self) -> Cut:
        return self._order

    def _borders(self, task: Task) -> None:
        """Estimates what shards share from the graph of a sample, which is another one than the recall's."""
        start = time.monotonic()
        manifest = self._plan.manifest
        sample = scattered(self._base, _native.border_sample(manifest))
        shards = self._order.shards_of_border_sample()
        counts = _native.count_borders(manifest, sample.native, shards, self._params)
        self._records.save_array(task.records[0], counts, time.monotonic() - start)

    def _choose(self, task: Task) -> None:
        """Measures the recall, and chooses the merges that are expected to bring it to what was asked for."""
        manifest, schedule = self._plan.manifest, self._records.state().schedule
        if task.round != len(schedule.batches) + 1:  # it was chosen, or one before it is gone, meanwhile
            return
        borders = self._records.load_array(BORDERS.records[0], np.int64, manifest.count**2)
        truth = self.recall.truth()
        recall = self.recall.measure(schedule, truth)
        merged = [merge.pair for merge in schedule.merges]
        merges = _native.next_merges(manifest, borders, self.recall.pairs(truth), merged, recall)
        self._records.batches.choose(task.round, merges, recall)

    def _restore(self, task: Task) -> None:
        """Makes the lists of a range of the base's rows."""
        start = time.monotonic()
        part, plan, schedule = task.first, self._plan, self._records.state().schedule
        order, rows = self._order.rows(), new_graph(plan.rows(part), plan.k, plan.id_type)

        def lists(shard: int) -> tuple[str, int, int]:
            record = self._records.read(schedule.last_lists(shard))
            self._records.moved += record.size // plan.manifest.count
            return self._records.storage.fetch(record.file, record.size), record.size, record.checksum

        try:
            _native.restore_rows(
                plan.manifest,
                order,
                part,
                lists,
                parts(rows, plan.metric),
                int(self._params["threads"]),
            )
        except OSError:
            for shard in range(plan.manifest.count):  # whichever of them is altered is withdrawn
                self._records.check_lists(schedule.last_lists(shard), shard)
            raise
        self._records.save(task.records[0], rows, plan.n, time.monotonic() - start, 0)

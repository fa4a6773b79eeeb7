# SPDX-License-Identifier: MIT
"""What differs between plans: how the base is cut, the recall that builds and merges are held to, and the tasks that
there are beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._base import Base
from ._cut import ByRows, Cut
from ._plan import Plan
from ._recall import Recall
from ._records import Records
from ._schedule import Schedule, Task


class AllPairs:
    """Shards are ranges of rows, every pair of which is merged."""

    def __init__(self, plan: Plan, records: Records, base: Base, params: dict[str, Any]) -> None:
        """:param params: of builds, with the worker's device and threads"""
        self._plan, self._records, self._base, self._params = plan, records, base, params
        self.cut: Cut = self._made_cut()
        self.recall = Recall(plan, records, self.cut, base, params)
        self.tasks: dict[str, Callable[[Task], None]] = {}  # by their kinds

    @property
    def build_params(self) -> dict[str, Any]:
        return self._params

    def merge_params(self, schedule: Schedule, task: Task) -> dict[str, Any]:
        return self._params

    def recall_in_the_end(self, schedule: Schedule) -> dict[str, Any] | None:
        """None where it was not to be measured."""
        if self._plan.manifest.params["recall"] == 1:
            return self.recall.of_all()
        return self.recall.measure(schedule, self.recall.truth()) if self._plan.recall_objects else None

    def _made_cut(self) -> Cut:
        return ByRows(self._plan, self._base, int(self._params["threads"]))

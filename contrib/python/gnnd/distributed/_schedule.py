# SPDX-License-Identifier: MIT
"""The tasks that make a graph in shards, and those that can be done now: a function of the number of shards and of the
names of what is done."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Task:
    """A build of shard ``first``, a merge of the pair in a round, or the end."""

    kind: str  # "build", "merge" or "finish"
    first: int = -1
    second: int = -1
    round: int = 0  # of a merge; from 1 on

    @property
    def shards(self) -> tuple[int, ...]:
        return {"build": (self.first,), "merge": (self.first, self.second)}.get(self.kind, ())

    @property
    def name(self) -> str:
        return "-".join([self.kind, *(f"{shard:05d}" for shard in self.shards)])

    def __str__(self) -> str:
        return " ".join([self.kind, *map(str, self.shards)])


FINISH = Task("finish")


class Schedule:
    """Every shard is built, and every pair of shards merged once, in rounds in which no shard is in two pairs: a
    tournament by the circle method, in which one shard stays, and the others move on by one place after each round.
    Where their number is odd one has nothing to do in a round. A merge waits for both shards' merges before, not for
    the round."""

    def __init__(self, shards: int) -> None:
        self.shards = shards
        places = shards + shards % 2
        moving = places - 1
        self.rounds = moving if shards > 1 else 0
        self._opponents: list[dict[int, int]] = [{} for _ in range(self.rounds + 1)]
        for turn in range(1, self.rounds + 1):
            for place in range(places // 2):
                a = (turn + place) % moving
                b = moving if place == 0 else (turn - place) % moving
                if max(a, b) < shards:
                    self._opponents[turn].update({a: b, b: a})
        self.merges = [
            Task("merge", a, b, turn)
            for turn in range(1, self.rounds + 1)
            for a, b in self._opponents[turn].items()
            if a < b
        ]
        self.builds = [Task("build", shard) for shard in range(shards)]
        self._before = {task: tuple(self._previous(shard, task.round) for shard in task.shards) for task in self.merges}
        self._last = [self._previous(shard, self.rounds + 1) for shard in range(shards)]
        self._next = {
            (shard, version): task
            for task, versions in self._before.items()
            for shard, version in zip(task.shards, versions, strict=True)
        }
        self.table = np.array([(*task.shards, task.round) for task in self.merges], np.int32).reshape(-1, 3).T

    def __len__(self) -> int:
        return len(self.builds) + len(self.merges) + 1

    def before(self, task: Task) -> tuple[int, int]:
        """The versions of both shards' lists that a merge goes on from: their rounds before."""
        return self._before[task]

    def next(self, shard: int, version: int) -> Task | None:
        """The merge that goes on from a version of its lists; None: there is none after it."""
        return self._next.get((shard, version))

    def last(self, shard: int) -> int:
        """The version of its finished lists."""
        return self._last[shard]

    def _previous(self, shard: int, turn: int) -> int:
        return next((before for before in range(turn - 1, 0, -1) if shard in self._opponents[before]), 0)


_DONE = re.compile(r"(?:(local|nearest)-(\d{5})|lists-(\d{5})\.(\d{4}))")


@dataclass
class State:
    """The tasks that are done, by the names of the records: the versions of lists, and whose local graphs are there."""

    schedule: Schedule
    versions: dict[int, set[int]] = field(default_factory=dict)
    local: set[int] = field(default_factory=set)
    nearest: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, schedule: Schedule, names: Iterable[str]) -> State:
        """Names of other kinds, or of shards and rounds that are none, do not count."""
        state = cls(schedule)
        for name in names:
            parts = _DONE.fullmatch(name)
            if parts is None or int(parts[2] or parts[3]) >= schedule.shards:
                continue
            if parts[1] is not None:
                (state.local if parts[1] == "local" else state.nearest).add(int(parts[2]))
            elif int(parts[4]) <= schedule.rounds:
                state.versions.setdefault(int(parts[3]), set()).add(int(parts[4]))
        return state

    def at(self, shard: int) -> int:
        """The newest version of its lists; -1: none."""
        return max(self.versions.get(shard, ()), default=-1)

    def sides(self, task: Task) -> list[int]:
        """The shards whose lists a merge has not been taken into yet."""
        return [shard for shard in task.shards if self.at(shard) < task.round]

    def is_done(self, task: Task) -> bool:
        if task.kind == "merge":
            return not self.sides(task)
        shard = task.first
        return self.at(shard) >= 0 and shard in self.nearest and (shard in self.local or self._is_merged)

    @functools.cached_property
    def _is_merged(self) -> bool:
        """True where no local graph is needed any more."""
        return all(self.at(shard) == self.schedule.last(shard) for shard in range(self.schedule.shards))

    def done(self) -> int:
        """Tasks, the end not among them."""
        first, second, turn = self.schedule.table
        at = np.array([self.at(shard) for shard in range(self.schedule.shards)])
        return sum(map(self.is_done, self.schedule.builds)) + int(((at[first] >= turn) & (at[second] >= turn)).sum())

    def is_ready(self, task: Task) -> bool:
        """True where a task is not done and what it needs is there."""
        if task.kind == "finish":
            return self.done() == len(self.schedule) - 1
        if self.is_done(task):
            return False
        if task.kind == "build":
            return True
        before = dict(zip(task.shards, self.schedule.before(task), strict=True))
        return self.local.issuperset(task.shards) and all(self.at(side) == before[side] for side in self.sides(task))

    def ready(self, held: Iterable[int] = (), by_others: Iterable[int] = ()) -> list[Task]:
        """Tasks that can be done now: first those of shards that the worker holds, then those of shards that no other
        does, by their rounds. Of merges only those can be that a shard is to have next: there are many more."""
        following = (self.schedule.next(shard, self.at(shard)) for shard in range(self.schedule.shards))
        merges = dict.fromkeys(task for task in following if task is not None)
        tasks = [task for task in [*self.schedule.builds, *merges] if self.is_ready(task)]
        if not tasks and self.is_ready(FINISH):
            return [FINISH]
        mine, others = set(held), set(by_others)
        return sorted(
            tasks,
            key=lambda task: (-len(mine.intersection(task.shards)), len(others.intersection(task.shards)), task.round),
        )

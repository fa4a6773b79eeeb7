# SPDX-License-Identifier: MIT
"""The tasks that make a graph in shards, and those that can be done now: a function of the number of shards, of what
was decided on the way, and of the names of what is done."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Pair = tuple[int, int]

# What is there when a task is done, of those that make nothing but that.
_RECORDS = {
    "partition": ("planes",),
    "assign": ("cells-{:05d}",),
    "divide": ("rows-{:05d}", "parts-{:05d}"),
    "borders": ("borders",),
    "restore": ("result-{:05d}",),
    "check": ("checked-{:05d}",),
}


@dataclass(frozen=True)
class Task:
    """A build of shard ``first``, a merge of the pair in a round, a check of what is stored of the graph in the end, or
    the end; and where the base is put into an order by its parts (``near``): how the space is parted, the cells of a
    range of rows, their division among the shards, the borders of the shards, the choice of the next batch of merges,
    and the way back to the rows of a range."""

    kind: str  # "build", "merge", "check", "finish"; "partition", "assign", "divide", "borders", "choose", "restore"
    first: int = -1  # the shard, or the range of rows
    second: int = -1
    round: int = 0  # of a merge, from 1 on; the number of a batch, from 1 on

    @property
    def shards(self) -> tuple[int, ...]:
        return {"build": (self.first,), "merge": self.pair}.get(self.kind, ())

    @property
    def pair(self) -> Pair:
        """Of a merge."""
        return self.first, self.second

    @property
    def _numbers(self) -> tuple[int, ...]:
        if self.kind == "choose":
            return (self.round,)
        return self.shards or ((self.first,) if self.first >= 0 else ())

    @property
    def records(self) -> tuple[str, ...]:
        """The names of what it makes, of tasks that make nothing but that."""
        return tuple(name.format(self.first) for name in _RECORDS.get(self.kind, ()))

    @property
    def name(self) -> str:
        return "-".join([self.kind, *(f"{number:05d}" for number in self._numbers)])

    def __str__(self) -> str:
        return " ".join([self.kind, *map(str, self._numbers)])


PARTITION, BORDERS, FINISH = Task("partition"), Task("borders"), Task("finish")


@dataclass(frozen=True)
class Batch:
    """Merges that were chosen at once."""

    merges: tuple[Pair, ...]  # none: it is enough
    chain: str  # the name of this choice and all before it
    recall: dict[str, Any]  # that the graph had when they were chosen


def all_pairs(shards: int) -> list[list[Pair]]:
    """Every pair once, in rounds in which no shard is in two pairs: a tournament by the circle method, in which one
    shard stays, and the others move on by one place after each round. Where their number is odd one has nothing to do
    in a round."""
    places = shards + shards % 2
    moving = places - 1
    rounds: list[list[Pair]] = []
    for turn in range(1, moving + 1 if shards > 1 else 1):
        facing = [
            ((turn + place) % moving, moving if place == 0 else (turn - place) % moving) for place in range(places // 2)
        ]
        rounds.append([(min(pair), max(pair)) for pair in facing if max(pair) < shards])
    return rounds


def in_rounds(merges: Iterable[Pair]) -> list[list[Pair]]:
    """The merges, each in the first round in which both shards have nothing to do."""
    rounds: list[list[Pair]] = []
    busy: list[set[int]] = []
    for pair in merges:
        turn = next((turn for turn, shards in enumerate(busy) if shards.isdisjoint(pair)), len(rounds))
        if turn == len(rounds):
            rounds.append([])
            busy.append(set())
        rounds[turn].append(pair)
        busy[turn].update(pair)
    return rounds


class Schedule:
    """The tasks in stages, each of which begins when all of the one before are done. In one of them every shard is
    built, and pairs of shards are merged once: all, or of an ordered base those that were chosen so far. A merge waits
    for both shards' merges before, not for the round; where all pairs are merged a check waits for its shard's last."""

    def __init__(self, shards: int, batches: Sequence[Batch] | None = None) -> None:
        """:param batches: of an ordered base, as far as they are decided; None: all pairs are merged"""
        self.shards = shards
        self.batches = tuple(batches or ())
        self.over = batches is None or any(not batch.merges for batch in batches)  # no merges will be added
        self._chosen: list[tuple[list[Pair], Batch | None]] = (
            [(pairs, None) for pairs in all_pairs(shards)]
            if batches is None
            else [(pairs, batch) for batch in batches for pairs in in_rounds(batch.merges)]
        )
        self.rounds = len(self._chosen)
        self.builds = [Task("build", shard) for shard in range(shards)]
        self.checks = [Task("check", shard) for shard in range(shards)]
        self.merges: list[Task] = []
        self._before: dict[Task, tuple[int, int]] = {}
        self._next: dict[tuple[int, int], Task] = {}
        self._last = [0] * shards
        for turn, (pairs, _) in enumerate(self._chosen, 1):
            for a, b in pairs:
                task = Task("merge", a, b, turn)
                self.merges.append(task)
                self._before[task] = self._last[a], self._last[b]
                self._next[a, self._last[a]] = self._next[b, self._last[b]] = task
                self._last[a] = self._last[b] = turn
        self.table = np.array([(*task.shards, task.round) for task in self.merges], np.int32).reshape(-1, 3).T
        if batches is None:
            self.stages = [[*self.builds, *self.checks], [FINISH]]
        else:
            choices = len(self.batches) + (0 if self.over else 1)
            self.stages = [
                [PARTITION],
                [Task("assign", part) for part in range(shards)],
                [Task("divide", part) for part in range(shards)],
                [BORDERS, *self.builds, *(Task("choose", round=1 + choice) for choice in range(choices))],
                [Task("restore", part) for part in range(shards)],
                self.checks,
                [FINISH],
            ]
        self.stage_of = {task.kind: number for number, stage in enumerate(self.stages) for task in stage}
        self.stage_of["merge"] = self.stage_of["build"]

    def __len__(self) -> int:
        return sum(map(len, self.stages)) + len(self.merges)

    def knows(self, task: Task) -> bool:
        return task.kind != "merge" or task in self._before

    def before(self, task: Task) -> tuple[int, int]:
        """The versions of both shards' lists that a merge goes on from: their rounds before."""
        return self._before[task]

    def next(self, shard: int, version: int) -> Task | None:
        """The merge that goes on from a version of its lists; None: there is none after it, so far."""
        return self._next.get((shard, version))

    def last(self, shard: int) -> int:
        """The version of its finished lists."""
        return self._last[shard]

    def chosen_with(self, task: Task) -> int:
        """How many merges were chosen at once with this one, itself included."""
        batch = self._chosen[task.round - 1][1]
        return len(batch.merges) if batch else len(self.merges)

    def lists_name(self, shard: int, version: int) -> str:
        """Of the record of a version of its lists. Lists that follow another choice have another name."""
        batch = self._chosen[version - 1][1] if version else None
        return f"lists-{shard:05d}.{version:04d}" + (f"-{batch.chain}" if batch else "")

    def last_lists(self, shard: int) -> str:
        """Of the record of its finished lists."""
        return self.lists_name(shard, self.last(shard))

    def result(self, shard: int) -> str:
        """Of the record of what the graph has in the end."""
        return next(iter(Task("restore", shard).records)) if "restore" in self.stage_of else self.last_lists(shard)


_DONE = re.compile(r"(?:(local|nearest)-(\d{5})|lists-(\d{5})\.(\d{4})(?:-[0-9a-f]+)?)")


@dataclass
class State:
    """The tasks that are done, by the names of the records: the versions of lists, and whose local graphs are there."""

    schedule: Schedule
    versions: dict[int, set[int]] = field(default_factory=dict)
    local: set[int] = field(default_factory=set)
    nearest: set[int] = field(default_factory=set)
    names: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, schedule: Schedule, names: Iterable[str]) -> State:
        """Names of other kinds, or of shards and rounds that are none, do not count."""
        state = cls(schedule, names=set(names))
        for name in state.names:
            parts = _DONE.fullmatch(name)
            if parts is None or int(parts[2] or parts[3]) >= schedule.shards:
                continue
            if parts[1] is not None:
                (state.local if parts[1] == "local" else state.nearest).add(int(parts[2]))
                continue
            shard, version = int(parts[3]), int(parts[4])
            if version <= schedule.rounds and schedule.lists_name(shard, version) == name:
                state.versions.setdefault(shard, set()).add(version)
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
        if task.kind == "choose":
            return task.round <= len(self.schedule.batches)
        if task.kind == "check" and not self._is_there(task.first):  # what was checked is lost
            return False
        if task.kind != "build":
            return task != FINISH and self.names.issuperset(task.records)
        shard = task.first
        return self.at(shard) >= 0 and shard in self.nearest and (shard in self.local or self._is_merged)

    def _is_there(self, shard: int) -> bool:
        """True where what the graph has in the end is there."""
        return self.schedule.result(shard) in self.names

    @functools.cached_property
    def _is_merged(self) -> bool:
        """True where no local graph is needed any more."""
        return self.schedule.over and all(
            self.at(shard) == self.schedule.last(shard) for shard in range(self.schedule.shards)
        )

    @functools.cached_property
    def _merges_done(self) -> int:
        first, second, turn = self.schedule.table
        at = np.array([self.at(shard) for shard in range(self.schedule.shards)])
        return int(((at[first] >= turn) & (at[second] >= turn)).sum())

    @functools.cached_property
    def stage(self) -> int:
        """The first one of which something is to be done."""
        merging = self.schedule.stage_of["merge"]
        for number, tasks in enumerate(self.schedule.stages):
            if not all(map(self.is_done, tasks)):
                return number
            if number == merging and self._merges_done < len(self.schedule.merges):
                return number
        raise AssertionError  # the end is never done

    def done(self) -> int:
        """Tasks, the end not among them."""
        return sum(map(self.is_done, (task for stage in self.schedule.stages for task in stage))) + self._merges_done

    def is_ready(self, task: Task) -> bool:
        """True where a task is not done and what it needs is there."""
        schedule = self.schedule
        if not schedule.knows(task) or self.is_done(task) or schedule.stage_of.get(task.kind) != self.stage:
            return False
        if task.kind == "choose":  # the last that there is to do in its stage
            others = [BORDERS, *schedule.builds]
            return self._merges_done == len(schedule.merges) and all(map(self.is_done, others))
        if task.kind == "check":
            return self._is_there(task.first)
        if task.kind != "merge":
            return True
        before = dict(zip(task.shards, schedule.before(task), strict=True))
        return self.local.issuperset(task.shards) and all(self.at(side) == before[side] for side in self.sides(task))

    def ready(self, held: Iterable[int] = (), by_others: Iterable[int] = ()) -> list[Task]:
        """Tasks that can be done now: first those of shards that the worker holds, then those of shards that no other
        does, by their rounds; checks last, which nothing but the end waits for. Of merges only those can be that a
        shard is to have next: there are many more."""
        following = (self.schedule.next(shard, self.at(shard)) for shard in range(self.schedule.shards))
        merges = dict.fromkeys(task for task in following if task is not None)
        tasks = [task for task in [*self.schedule.stages[self.stage], *merges] if self.is_ready(task)]
        mine, others = set(held), set(by_others)

        def order(task: Task) -> tuple[int, ...]:
            held_here, held_there = (len(shards.intersection(task.shards)) for shards in (mine, others))
            return task.kind == "check", -held_here, held_there, task.round

        return sorted(tasks, key=order)

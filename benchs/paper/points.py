# SPDX-License-Identifier: MIT
"""The points of experiments: each is one thing measured by one tool on one set of vectors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from datasets import Dataset, Library


@dataclass(frozen=True)
class Point:
    """One measurement, before it is made."""

    series: str  # the curve that it belongs to
    data: Dataset
    tool: str  # a name of drivers.TOOLS
    configuration: str = ""  # as the tool takes it
    k: int = 64
    repeat: int = 3
    threads: int = 0  # 0: all
    queries: int = 5000  # objects or queries that the recall is measured on
    options: tuple[str, ...] = ()  # more of the command line
    about: dict = field(default_factory=dict, compare=False)  # what figures need to know, as {"step": 3}
    why_not: str = ""  # said instead of measuring: there is no switch, or the machine lacks something

    @property
    def key(self) -> str:
        """The same for the same point whenever and wherever it is run, whatever is known about its set."""
        what = asdict(self)
        for unimportant in ("about", "why_not"):
            del what[unimportant]
        for known in ("stated", "hard"):
            del what["data"][known]
        kind, colon, rest = self.data.source.partition(":")
        if kind in ("file", "mix"):  # the same rows may lie in another folder
            what["data"]["source"] = kind + colon + rest.rsplit("/", 1)[-1]
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def group(self) -> tuple:
        """Points of one group are measured by one command, round by round."""
        return (self.tool, self.data, self.k, self.repeat, self.threads, self.queries, self.options)


@dataclass(frozen=True)
class Experiment:
    """An experiment, as experiments/NAME.py declares it."""

    name: str
    title: str
    claim: str  # what the paper shows
    points: Callable[[Context], list[Point]]


@dataclass
class Context:
    """The run, as experiments are told of it."""

    library: Library
    gpu: bool
    quick: bool
    rows: int  # stands for the paper's million

    def size(self, full: int, quick: int) -> int:
        """Rows of a set that has `full` where the million is a million."""
        return quick if self.quick else max(2000, round(full * self.rows / 1_000_000))

    def either(self, full, quick):
        """One of two settings."""
        return quick if self.quick else full

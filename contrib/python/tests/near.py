# SPDX-License-Identifier: MIT
"""Builds of the plan `near` by several processes, for the tests."""

from __future__ import annotations

import json
from pathlib import Path

import gnnd
import gnnd.distributed
from gnnd.distributed._tasks import Carrier
from shards import K, check_finished, make_flat_base

SHARDS = 8
PAIRS = SHARDS * (SHARDS - 1) // 2


def begin(folder: Path, shards: int = SHARDS, n: int = 2400, **params: object) -> tuple[Path, Path]:
    base, work = make_flat_base(folder, n), folder / "work"
    gnnd.distributed.start(base, work, K, shards=shards, plan="near", **params)
    return base, work


def do_until(hands: Carrier, kind: str, tasks: int = 0) -> None:
    """Does tasks until one of that kind is to be done, and some more."""
    while hands.records.state().ready()[0].kind != kind:
        hands.do(hands.records.state().ready()[0])
    for _ in range(tasks):
        hands.do(hands.records.state().ready()[0])


def merges_of(work: Path) -> int:
    shards = json.loads((work / "manifest.json").read_bytes())["shards"]
    return sum(len(shard["merged"]) for shard in shards) // 2


def check_near(work: Path, base: Path, metric: str = "l2") -> gnnd.ShardedGraph:
    graph = check_finished(work, base, metric, 0.98)
    assert graph.recall >= 0.98  # what was measured and ended merges is one of a sample
    assert SHARDS - 1 <= merges_of(work) < 0.75 * PAIRS
    return graph

# SPDX-License-Identifier: MIT
"""Graphs of the plan `near` that several processes build."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest

import gnnd
import gnnd.distributed
from gnnd import _native
from gnnd.distributed._schedule import FINISH, Batch, Schedule, State, in_rounds
from near import PAIRS, SHARDS, begin, check_near, do_until, merges_of
from shards import PATIENCE, K, carrier, check_finished, make_flat_base, worker


def test_merges_of_a_round_have_no_shard_in_common():
    chance = random.Random(1)
    merges = [(a, b) for b in range(12) for a in range(b) if chance.random() < 0.5]
    rounds = in_rounds(merges)
    assert sorted(pair for pairs in rounds for pair in pairs) == sorted(merges)
    for pairs in rounds:
        busy = [shard for pair in pairs for shard in pair]
        assert len(busy) == len(set(busy))
    most = max(sum(shard in pair for pair in merges) for shard in range(12))
    assert most <= len(rounds) < 2 * most


def test_tasks_come_when_what_they_need_is_there():
    """One after the other, taken from those that are ready, whatever their order: each stage follows the one before,
    and a batch is chosen when all merges before it are done."""
    chance, names, done = np.random.default_rng(0), set(), []
    left = [Batch((), "c3", {}), Batch(((0, 2),), "c2", {}), Batch(((0, 1), (1, 2), (3, 4)), "c1", {})]
    batches: list[Batch] = []
    while True:
        schedule = Schedule(5, batches)
        ready = State.of(schedule, names).ready()
        task = ready[chance.integers(len(ready))]
        if task == FINISH:
            break
        assert task not in done
        done.append(task)
        if task.kind == "choose":
            assert {one.shards for one in done if one.kind == "merge"} == {
                pair for batch in batches for pair in batch.merges
            }
            batches.append(left.pop())
        elif task.kind == "build":
            names |= {f"local-{task.first:05d}", f"nearest-{task.first:05d}", schedule.lists_name(task.first, 0)}
        elif task.kind == "merge":
            names |= {schedule.lists_name(shard, task.round) for shard in task.shards}
        else:
            names |= set(task.records)
    order = {"partition": 0, "assign": 1, "divide": 2, "restore": 4, "check": 5}
    stages = [order.get(task.kind, 3) for task in done]
    assert stages == sorted(stages) and [stages.count(stage) for stage in range(6)] == [1, 5, 5, 1 + 5 + 4 + 3, 5, 5]
    assert len(done) == len(schedule) - 1 == State.of(schedule, names).done()
    # What followed another choice does not count.
    other = Schedule(5, [Batch(batches[0].merges, "d1", {})])
    assert {State.of(other, names).at(shard) for shard in range(5)} == {0}


@pytest.mark.parametrize("metric", ["l2", "ip", "cosine"])
def test_one_worker(tmp_path, metric):
    records = []
    base, work = begin(tmp_path, metric=metric)
    tasks = gnnd.distributed.work(work, threads=1, progress=records.append)
    graph = check_finished(work, base, metric, 0.98)
    assert graph.recall >= 0.98 and merges_of(work) < PAIRS
    assert tasks == records[-1]["tasks"] == records[-1]["tasks_done"] == len(records)
    assert gnnd.distributed.work(work) == 0
    assert not gnnd.distributed.start(base, work, K, metric, shards=SHARDS, plan="near")
    # One process goes on with it, and writes the same about its own.
    assert gnnd.build_sharded(base, work, K, metric, shards=SHARDS, plan="near", resume=True).n == 2400
    alone = tmp_path / "alone"
    gnnd.build_sharded(base, alone, K, metric, shards=SHARDS, plan="near", device="cpu", threads=1)
    here, there = (json.loads((one / "manifest.json").read_bytes()) for one in (work, alone))
    same = ("base", "params", "plan", "vectors", "order", "version", "state", "local_columns")
    assert here.keys() == there.keys() and all(here[name] == there[name] for name in same)
    assert [shard.keys() for shard in here["shards"]] == [shard.keys() for shard in there["shards"]]
    assert abs(merges_of(work) - merges_of(alone)) <= 3


def test_other_types_of_vectors(tmp_path):
    x = np.random.default_rng(0).integers(0, 250, size=(900, 3)).astype(np.uint8)
    np.save(tmp_path / "base.npy", x)
    gnnd.distributed.start(tmp_path / "base.npy", tmp_path / "work", 6, shards=4, plan="near")
    gnnd.distributed.work(tmp_path / "work")
    exact = gnnd.build_exact(x, 6)
    assert (gnnd.load(tmp_path / "work").to_graph().distances == exact.distances).mean() > 0.98


def test_one_shard_has_no_order(tmp_path):
    base, work = begin(tmp_path, shards=1, n=600)
    assert gnnd.distributed.work(work) == 3
    check_finished(work, base)


def test_several_processes(tmp_path):
    """All of them are started with the same words, and share every kind of task."""
    base, work = make_flat_base(tmp_path, 6000), tmp_path / "new" / "work"
    words = ("--base", base, "-k", K, "--shards", SHARDS, "--plan", "near")
    workers = [worker(work, *words) for _ in range(3)]
    told = [one.communicate(timeout=PATIENCE)[1] for one in workers]
    assert [one.returncode for one in workers] == [0, 0, 0], told
    for kind, count in {"partition": 1, "assign": SHARDS, "divide": SHARDS, "build": SHARDS, "restore": SHARDS}.items():
        assert sum(text.count(f"gnnd worker: {kind}") for text in told) >= count
    check_near(work, base)


def test_what_cannot_be_begun(tmp_path):
    base, work = make_flat_base(tmp_path, 600), tmp_path / "work"
    for params, text in (
        ({"plan": "nearest"}, "all, near"),
        ({"plan": "near", "recall": 1}, "plan = near"),
        ({"plan": "near", "recall": 0}, "plan = near"),
        ({"plan": "near", "recall_objects": 0}, "recall_objects = 0"),
    ):
        with pytest.raises(ValueError, match=text):
            gnnd.distributed.start(base, work, K, shards=4, **params)
    command = [sys.executable, "-m", "gnnd", "worker", work, "--base", base, "--shards", "4", "--plan", "x"]
    failed = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert failed.returncode == 1 and "all, near" in failed.stderr
    gnnd.distributed.start(base, work, K, shards=4)
    with pytest.raises(OSError, match="the plan is all, asked for is near"):
        gnnd.distributed.start(base, work, K, shards=4, plan="near")
    near = tmp_path / "near"
    gnnd.distributed.start(base, near, K, shards=4, plan="near")
    with pytest.raises(OSError, match="the plan is near, asked for is all"):
        gnnd.distributed.start(base, near, K, shards=4)
    gnnd.distributed.work(near)
    with pytest.raises(OSError, match="the plan is near, asked for is all"):
        gnnd.distributed.start(base, near, K, shards=4)


def test_vectors_that_are_none(tmp_path):
    """The error has their number in the base, though they would be elsewhere in its order."""
    base, work = begin(tmp_path, shards=3, n=1500)
    x = np.load(base)
    x[700, 3] = np.nan
    np.save(base, x)
    shutil.rmtree(work)
    gnnd.distributed.start(base, work, K, shards=3, plan="near")
    with pytest.raises(ValueError, match="700"):
        gnnd.distributed.work(work)


def test_the_recall_s_sample_is_told_by_lists(tmp_path):
    """What is measured from records is what is measured from the lists themselves."""
    base, work = begin(tmp_path)
    hands = carrier(base, work)
    do_until(hands, "restore")
    schedule, recall = hands.records.state().schedule, hands._rules.recall
    told = recall.measure(schedule, recall.truth())
    assert told == schedule.batches[-1].recall and told["recall_objects"] == 1024
    real = hands.records.read

    def without(name):
        record = real(name)
        record.about.pop("sample", None)
        return record

    hands.records.read = without  # type: ignore[method-assign]
    assert recall.measure(schedule, recall.truth()) == told


def test_shards_are_parts_of_the_space(tmp_path):
    """Every row of the base is in one shard, with its own vector, and the shards are those of one process."""
    base, work = begin(tmp_path)
    hands, x = carrier(base, work), np.load(base)
    do_until(hands, "build")
    order = hands._rules.cut.rows()
    assert (np.sort(order) == np.arange(len(x))).all()
    plan = hands.plan
    for shard in range(SHARDS):
        mine = order[plan.begin(shard) : plan.begin(shard + 1)]
        assert (np.diff(mine) > 0).all()
        np.testing.assert_array_equal(hands._rules.cut.vectors(shard).array, x[mine])
    shards, numbers = hands._rules.cut.places()
    begins = np.array([plan.begin(shard) for shard in range(SHARDS)])
    np.testing.assert_array_equal(order[begins[shards] + numbers], plan.objects())
    sample = _native.border_sample(plan.manifest)
    found = hands._rules.cut.shards_of_border_sample()
    assert all(sample[i] in order[plan.begin(s) : plan.begin(s + 1)] for i, s in list(enumerate(found))[::50])


def test_all_pairs_when_nothing_less_is_enough(tmp_path):
    """Of vectors without any structure."""
    base, work = tmp_path / "base.npy", tmp_path / "work"
    np.save(base, np.random.default_rng(0).normal(size=(900, 30)).astype(np.float32))
    gnnd.distributed.start(base, work, K, shards=4, plan="near")
    gnnd.distributed.work(work)
    check_finished(work, base)
    assert merges_of(work) == 6


def test_batches_go_on_from_those_before(tmp_path, monkeypatch):
    """Many small ones: no pair is chosen twice, and they end as soon as it is enough."""
    base, work = begin(tmp_path, shards=5, n=1500)
    real, recalls, chosen = _native.next_merges, [], []

    def first_two(manifest, borders, truth, merged, recall):
        recalls.append(recall)
        assert sorted(merged) == sorted(chosen)
        now = real(manifest, borders, truth, merged, recall)[:2]
        assert not set(now) & set(chosen)
        chosen.extend(now)
        return now

    monkeypatch.setattr(_native, "next_merges", first_two)
    gnnd.distributed.work(work, threads=1)
    check_finished(work, base, at_least=0.98)
    found = [recall["recall"] for recall in recalls]
    assert len(found) >= 4 and found == sorted(found)
    assert merges_of(work) == len(set(chosen)) == len(chosen)
    assert recalls[-2]["recall_low"] < 0.99 <= found[-1] or len(chosen) == 10

# SPDX-License-Identifier: MIT
"""Builds of the plan `near` by several processes that are disturbed: killed workers, altered objects, late results.
GNND_TEST_KILLS=50 kills more of them."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

import gnnd
import gnnd.distributed
from gnnd.distributed import _worker
from gnnd.distributed._schedule import Task
from gnnd.distributed._storage import Folder
from near import SHARDS, begin, check_near, do_until
from shards import K, carrier, check_finished, finish_with_kills, flip_a_bit_in_each, make_flat_base

KILLS = int(os.environ.get("GNND_TEST_KILLS", "4"))


def test_a_base_that_changes_between_its_two_readings(tmp_path, monkeypatch):
    base, work = begin(tmp_path, shards=3, n=1500)
    monkeypatch.setattr(_worker, "PAUSE", 0.001)
    do_until(carrier(base, work), "divide")
    x = np.load(base, mmap_mode="r+")
    x[700:720] += 1
    x.flush()
    with pytest.raises(OSError, match="the vectors from 500 on change"):
        do_until(carrier(base, work), "build")


def test_workers_that_are_killed(tmp_path):
    """At random moments, in as many builds as that takes; each is finished by those who come after."""
    base, chance, killed = make_flat_base(tmp_path, 6000), random.Random(KILLS), 0
    for build in range(KILLS):
        work = tmp_path / f"work{build}"
        gnnd.distributed.start(base, work, K, shards=SHARDS, plan="near")
        killed += finish_with_kills(work, chance, KILLS - killed)
        check_near(work, base)
        if killed == KILLS:
            return


@pytest.mark.parametrize("kind", ["partition", "assign", "divide", "borders", "choose", "restore", "check", "finish"])
def test_a_worker_that_is_lost_in_a_task(tmp_path, monkeypatch, kind):
    """Ended before it has recorded anything; another does the task."""
    base, work = begin(tmp_path, shards=4, n=1200)
    hands = carrier(base, work)
    do_until(hands, kind)

    def end(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Folder, "create", end)
    monkeypatch.setattr(Folder, "replace", end)
    with pytest.raises(KeyboardInterrupt):
        do_until(hands, kind, 1)
    monkeypatch.undo()
    gnnd.distributed.work(work)
    check_finished(work, base)


@pytest.mark.parametrize("kind, tasks", [("assign", 2), ("build", 1), ("merge", 2), ("restore", 3)])
def test_a_flipped_byte_in_any_object(tmp_path, kind, tasks):
    """In each object that there is; all of them are altered before the build goes on."""
    base, work = begin(tmp_path, shards=5, n=1500)
    do_until(carrier(base, work), kind, tasks)
    assert flip_a_bit_in_each(work, random.Random(tasks)) > 4
    gnnd.distributed.work(work)
    check_finished(work, base)


@pytest.mark.parametrize("harm", ["file gone", "file cut", "file altered", "record gone", "record altered"])
@pytest.mark.parametrize(
    "name, until",
    [
        ("planes", "assign"),
        ("cells-00001", "divide"),
        ("rows-00001", "restore"),
        ("parts-00001", "build"),
        ("parts-00001", "merge"),
        ("borders", "choose"),
        ("lists-00001", "restore"),
        ("result-00001", "check"),
    ],
)
def test_an_object_that_is_lost(tmp_path, caplog, name, until, harm):
    base, work = begin(tmp_path, shards=4, n=1200)
    do_until(carrier(base, work), until)
    record = max((work / "done").glob(f"{name}*"))
    (file,) = (path for path in work.glob(f"{record.name}-*") if path.suffix in (".bin", ".gnnd"))
    match harm:
        case "file gone":
            file.unlink()
        case "file cut":
            file.write_bytes(file.read_bytes()[:-9])
        case "file altered":
            data = bytearray(file.read_bytes())
            data[len(data) // 2] ^= 4
            file.write_bytes(data)
        case "record gone":
            record.unlink()
        case "record altered":
            record.write_bytes(record.read_bytes().replace(b"seconds", b"sekonds", 1))
    gnnd.distributed.work(work)
    assert harm == "record gone" or "made anew" in caplog.text
    check_finished(work, base)


def test_a_choice_is_kept_twice(tmp_path):
    """Either one is enough, and is written once more; merges that follow it go on."""
    base, work = begin(tmp_path)
    hands = carrier(base, work)
    do_until(hands, "merge", 2)
    chain = hands.records.schedule.batches[0].chain
    names = "batch-00001", f"batch-00001.{chain}"
    for harmed in names:
        for data in (None, b"", (work / "done" / harmed).read_bytes()[:-3]):
            path = work / "done" / harmed
            path.unlink()
            if data is not None:
                path.write_bytes(data)
            state = carrier(base, work).records.state()
            assert [batch.chain for batch in state.schedule.batches] == [chain]
            assert len({(work / "done" / name).read_bytes() for name in names}) == 1
            assert max(state.at(shard) for shard in range(SHARDS)) >= 1
    # A worker that knows it writes what is gone, too.
    (work / "done" / names[0]).unlink()
    hands.records.state()
    assert (work / "done" / names[0]).exists()
    gnnd.distributed.work(work)
    check_near(work, base)


def test_a_choice_that_another_is_writing(tmp_path):
    """Its file has a temporary name until it is whole: who looks meanwhile leaves it alone."""
    base, work = begin(tmp_path)
    hands = carrier(base, work)
    do_until(hands, "merge")
    chain = hands.records.schedule.batches[0].chain
    written = [work / "done" / f"{name}.tmp.0123456789ab" for name in ("batch-00001", f"batch-00001.{chain}")]
    for path in written:
        path.write_bytes(b"half of it")
    assert [batch.chain for batch in carrier(base, work).records.state().schedule.batches] == [chain]
    assert all(path.exists() for path in written)
    gnnd.distributed.work(work)
    check_near(work, base)
    assert not any(path.exists() for path in written)


def test_another_choice_does_not_go_on_from_lists_of_the_first(tmp_path):
    """Both copies are gone, and somebody chooses otherwise: what was merged before does not count."""
    base, work = begin(tmp_path)
    hands = carrier(base, work)
    do_until(hands, "merge", 4)
    before = hands.records.schedule
    for path in (work / "done").glob("batch-*"):
        path.unlink()
    other = carrier(base, work)
    recall = before.batches[0].recall
    chosen = [pair for pair in ((0, 5), (2, 7)) if pair not in before.batches[0].merges] + [(0, 1)]
    other.records.batches.choose(1, chosen, recall)
    state = other.records.state()
    assert state.schedule.batches[0].merges == tuple(chosen)
    assert all(state.at(shard) <= 0 for shard in range(SHARDS))
    assert hands.records.state().schedule.batches == state.schedule.batches  # whoever knew the first one follows
    gnnd.distributed.work(work)
    graph = check_finished(work, base, at_least=0.98)
    assert graph.recall >= 0.98


def test_two_choose_at_once(tmp_path):
    """The first counts; the other follows it, whatever it would have chosen."""
    base, work = begin(tmp_path)
    first, second = carrier(base, work), carrier(base, work)
    do_until(first, "choose")
    second.records.state()
    first.do(Task("choose", round=1))
    chosen = first.records.state().schedule.batches
    second.records.batches.choose(1, [(0, 1)], chosen[0].recall)
    assert second.records.state().schedule.batches == chosen
    gnnd.distributed.work(work)
    check_near(work, base)


def test_a_result_that_comes_after_the_end(tmp_path):
    """Workers that hung until all was finished and cleaned up leave nothing behind."""
    base, work = begin(tmp_path, shards=4, n=1200)
    late, seen = carrier(base, work), {}
    for kind, task in {
        "partition": Task("partition"),
        "assign": Task("assign", 1),
        "divide": Task("divide", 2),
        "borders": Task("borders"),
        "restore": Task("restore", 3),
        "check": Task("check", 3),
    }.items():
        do_until(late, kind)
        seen[task] = late.records.state()
    last = seen[task]
    before = {path: path.read_bytes() for path in work.rglob("*") if path.is_file() and path.name != "lock"}
    gnnd.distributed.work(work)
    kept = {path for path in work.rglob("*") if path.is_file()}
    for path, data in before.items():
        path.write_bytes(data)
    late.records.state = lambda: last  # type: ignore[method-assign]
    for task in seen:
        late.do(task)
    late.records.batches.choose(len(last.schedule.batches) + 1, [(0, 1)], {})
    for path in before.keys() - kept:
        path.unlink(missing_ok=True)
    check_finished(work, base)

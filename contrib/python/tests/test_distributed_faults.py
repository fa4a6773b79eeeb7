# SPDX-License-Identifier: MIT
"""Builds by several processes that are disturbed: killed and hung workers, altered objects, full storage.
GNND_TEST_KILLS=50 kills more of them."""

from __future__ import annotations

import errno
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import gnnd
import gnnd.distributed
from gnnd import _native
from gnnd.distributed import _tasks, _worker
from gnnd.distributed._base import open_base
from gnnd.distributed._leases import Leases
from gnnd.distributed._plan import read_plan
from gnnd.distributed._schedule import FINISH, Schedule, Task
from gnnd.distributed._storage import Damaged, Folder
from gnnd.distributed._tasks import Carrier
from shards import LEASE, K, carrier, check_finished, finish_with_kills, flip_a_bit_in_each, make_base, worker

KILLS = int(os.environ.get("GNND_TEST_KILLS", "4"))
UNCHECKED = 4 + 6  # tasks of four shards, until what is there in the end is to be checked


def begin(folder: Path, shards: int = 4, n: int = 600) -> tuple[Path, Path]:
    base, work = make_base(folder, n), folder / "work"
    gnnd.distributed.start(base, work, K, shards=shards)
    return base, work


def do_some(hands: Carrier, tasks: int) -> None:
    for _ in range(tasks):
        hands.do(hands.records.state().ready()[0])


def test_workers_that_are_killed(tmp_path):
    """At random moments, in as many builds as that takes; each is finished by those who come after."""
    base, chance, killed = make_base(tmp_path, 3000), random.Random(KILLS), 0
    undisturbed = gnnd.build_sharded(base, tmp_path / "undisturbed", K, shards=10, device="cpu").recall
    for build in range(KILLS):
        work = tmp_path / f"work{build}"
        gnnd.distributed.start(base, work, K, shards=10)
        killed += finish_with_kills(work, chance, KILLS - killed, 60)
        graph = check_finished(work, base)
        assert graph.recall == pytest.approx(undisturbed, abs=0.005)
        if killed == KILLS:
            return


def test_a_worker_that_hangs_and_comes_back(tmp_path):
    """Stopped in the middle of a task, it finds it done by another when it goes on; both end well."""
    base, work = begin(tmp_path, shards=6, n=4000)
    hung = worker(work)
    while not list((work / "leases").iterdir()):
        time.sleep(0.005)
    hung.send_signal(signal.SIGSTOP)
    other = worker(work)
    assert "finished" in other.communicate(timeout=60)[1] and other.returncode == 0
    hung.send_signal(signal.SIGCONT)
    told = hung.communicate(timeout=60)[1]
    assert hung.returncode == 0, told
    check_finished(work, base)


def test_leases_do_not_look_at_clocks(tmp_path):
    """A silent worker loses the task, whatever its clock shows; one that is heard of keeps it."""
    place, task = Folder(tmp_path, create=True), Task("build", 3)
    mine, others = Leases(place, 0.4), Leases(place, 0.4)
    with mine.held(task) as held:
        assert held
        (lease,) = (tmp_path / "leases").iterdir()
        until = time.monotonic() + 1
        while time.monotonic() < until:
            for minutes in (-10, 10):
                with others.held(task) as taken:
                    assert not taken
                now = time.time() + 60 * minutes
                os.utime(lease, (now, now))
            time.sleep(0.05)
    assert not list((tmp_path / "leases").iterdir())
    lease.write_bytes(b"of a worker that was killed")
    waited = time.monotonic()
    while True:
        with others.held(task) as taken:
            if taken:
                break
        assert time.monotonic() - waited < 5
        time.sleep(0.02)
    assert time.monotonic() - waited >= 0.4
    (tmp_path / "leases" / "build-00003.1x").write_bytes(b"no lease")
    with mine.held(task) as held:
        assert held


def test_leases_of_the_lost_are_freed(tmp_path):
    """Of those by name, and no others; one that is alive after all takes nothing back."""
    place, task, other = Folder(tmp_path, create=True), Task("build", 3), Task("merge", 1, 2, 1)
    lost, living = Leases(place, 100, "tcp://a:1"), Leases(place, 100, "tcp://a:12")
    taker = Leases(place, 100)
    with lost.held(task), living.held(other):
        assert taker.free({"tcp://a:1"}) == ["build-00003.0"]
        with taker.held(other) as held:
            assert not held
        with taker.held(task) as held:
            assert held
            lost._storage.replace("leases/build-00003.0", lost._content(1))
            with Leases(place, 100).held(task) as again:
                assert not again
        assert taker.free({"tcp://b:1"}) == []
    assert {path.name for path in (tmp_path / "leases").iterdir()} <= {"build-00003.0"}


def test_one_of_several_gets_a_lease(tmp_path):
    place = Folder(tmp_path, create=True)
    got, all_there = [], threading.Barrier(8)

    def try_it() -> None:
        leases = Leases(place, 5)
        all_there.wait()
        with leases.held(FINISH) as held:
            got.append(held)
            all_there.wait()

    threads = [threading.Thread(target=try_it) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(got) == [False] * 7 + [True]


def test_two_finish_one_task(tmp_path):
    """Both have begun when nobody was through. The first record counts, and nothing of the other is left."""
    base, work = begin(tmp_path, shards=2)
    first, second = carrier(base, work), carrier(base, work)
    do_some(first, 2)
    (merge,) = first.plan.schedule.merges
    before = first.records.state()
    second.records.state = lambda: before  # type: ignore[method-assign]
    first.do(merge)
    files = {path.name: path.read_bytes() for path in work.rglob("*") if path.is_file()}
    second.do(merge)
    assert {path.name: path.read_bytes() for path in work.rglob("*") if path.is_file()} == files
    third = carrier(base, work)
    do_some(first, 3)
    with pytest.raises(OSError):  # too late: all that it needs is cleaned away
        third.do(FINISH)
    check_finished(work, base)


def test_an_end_that_is_ended(tmp_path, monkeypatch):
    """Killed when the graph was finished, and not all deleted that is not part of it: whoever comes next does that."""
    base, work = begin(tmp_path)

    def end(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_tasks, "clean", end)
    with pytest.raises(KeyboardInterrupt):
        gnnd.distributed.work(work)
    monkeypatch.undo()
    assert (work / "build.json").exists() and len(list((work / "done").iterdir())) > 10
    assert gnnd.build_sharded(base, work, K, shards=4, resume=True).n == 600
    assert not gnnd.distributed.start(base, work, K, shards=4)
    assert gnnd.distributed.work(work) == 0
    check_finished(work, base)


def test_a_result_that_comes_after_the_end(tmp_path):
    """A worker that hung until all was finished and cleaned up leaves nothing behind."""
    base, work = begin(tmp_path, shards=2)
    late = carrier(base, work)
    before = late.records.state()
    late.records.state = lambda: before  # type: ignore[method-assign]
    gnnd.distributed.work(work)
    graph = gnnd.load(work).to_graph().ids
    late.do(Task("build", 1))
    check_finished(work, base)
    assert (gnnd.load(work).to_graph().ids == graph).all()


@pytest.mark.parametrize("tasks", [1, 6, 9])
def test_a_flipped_byte_in_any_object(tmp_path, tasks):
    """In each object that there is after so many tasks; all of them are altered before the build goes on."""
    base, work = begin(tmp_path)
    do_some(carrier(base, work), tasks)
    assert flip_a_bit_in_each(work, random.Random(tasks)) > 6
    (work / "build.json").write_bytes((work / "build.json").read_bytes().replace(b"gnnd", b"gnnb", 1))
    with pytest.raises(OSError, match="build.json: altered"):
        gnnd.distributed.work(work)
    gnnd.distributed.start(base, work, K, shards=4)
    gnnd.distributed.work(work)
    check_finished(work, base)


@pytest.mark.parametrize("kind", ["local-00001", "lists-00003.0002", "lists-00003.0003"])
@pytest.mark.parametrize("harm", ["file gone", "file cut", "file of another shard", "record gone"])
def test_an_object_that_is_lost(tmp_path, kind, harm):
    base, work = begin(tmp_path)
    do_some(carrier(base, work), UNCHECKED)
    (file,) = work.glob(f"{kind}-*.gnnd")
    other = next(path for path in sorted(work.glob(f"{kind.partition('-')[0]}-*.gnnd")) if path != file)
    match harm:
        case "file gone":
            file.unlink()
        case "file cut":
            file.write_bytes(file.read_bytes()[:-9])
        case "file of another shard":
            file.write_bytes(other.read_bytes())
        case "record gone":
            (work / "done" / kind).unlink()
    gnnd.distributed.work(work)
    check_finished(work, base)


def flip_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def test_a_check_finds_a_flipped_byte(tmp_path):
    """What it read is withdrawn, and merged and checked once more; other shards are not."""
    base, work = begin(tmp_path)
    hands = carrier(base, work)
    do_some(hands, UNCHECKED)
    assert hands.records.state().ready() == hands.plan.schedule.checks
    (file,) = work.glob("lists-00002.0003-*.gnnd")
    flip_a_byte(file)
    with pytest.raises(Damaged, match="altered"):
        hands.do(Task("check", 2))
    assert not file.exists() and not (work / "done" / "lists-00002.0003").exists()
    do_some(hands, 1)
    assert list(work.glob("lists-00002.0003-*.gnnd")) not in ([], [file])
    assert hands.records.state().ready() == hands.plan.schedule.checks
    assert gnnd.distributed.work(work) == 4 + 1
    check_finished(work, base)


def test_a_check_of_what_is_withdrawn_does_not_count(tmp_path):
    """Lists that were lost after they were checked, and made anew, are checked anew."""
    base, work = begin(tmp_path)
    hands = carrier(base, work)
    do_some(hands, UNCHECKED + 4)
    assert hands.records.state().ready() == [FINISH]
    hands.records.withdraw("lists-00002.0003", hands.records.read("lists-00002.0003"))
    (merge,) = hands.records.state().ready()
    assert merge.kind == "merge" and hands.records.state().done() == UNCHECKED + 4 - 2
    hands.do(merge)
    (file,) = work.glob("lists-00002.0003-*.gnnd")
    with pytest.raises(Damaged, match=f"which is {file.name} now"):
        hands.do(FINISH)
    assert hands.records.state().ready() == [Task("check", 2)]
    flip_a_byte(file)
    gnnd.distributed.work(work)
    check_finished(work, base)


@pytest.mark.parametrize("harm", ["gone", "cut"])
def test_a_file_that_is_lost_after_its_check(tmp_path, harm):
    base, work = begin(tmp_path)
    do_some(carrier(base, work), UNCHECKED + 4)
    (file,) = work.glob("lists-00002.0003-*.gnnd")
    if harm == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-9])
    gnnd.distributed.work(work)
    check_finished(work, base)


def test_a_worker_that_is_killed_in_a_check(tmp_path):
    base, work = begin(tmp_path)
    do_some(carrier(base, work), UNCHECKED)
    program = """
import sys, time, gnnd.distributed
from gnnd.distributed._records import Records
Records.load_lists = lambda *_: time.sleep(100)
gnnd.distributed.work(sys.argv[1])
"""
    killed = subprocess.Popen([sys.executable, "-c", program, work])
    while not (work / "leases" / "check-00000.0").exists():
        assert killed.poll() is None
        time.sleep(0.005)
    killed.kill()
    killed.wait()
    assert not list((work / "done").glob("checked-*"))
    assert gnnd.distributed.work(work, lease_seconds=LEASE) == 4 + 1
    check_finished(work, base)


@pytest.mark.parametrize("where", ["link", "replace", "save_rows"])
def test_storage_that_is_full_for_a_while(tmp_path, monkeypatch, caplog, where):
    """Some writes fail: the worker tries again; nothing half is left."""
    base, work = begin(tmp_path)
    monkeypatch.setattr(_worker, "PAUSE", 0.001)
    owner = _native if where == "save_rows" else os
    real, calls = getattr(owner, where), itertools.count()

    def full(*arguments):
        if next(calls) % 7 == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments)

    monkeypatch.setattr(owner, where, full)
    gnnd.distributed.work(work)
    monkeypatch.undo()
    assert "No space left" in caplog.text
    check_finished(work, base)


def test_reads_that_fail_for_a_while(tmp_path, monkeypatch, caplog):
    """A file that cannot be read is not damaged: it is tried again, and nothing is made anew."""
    base, work = begin(tmp_path)
    monkeypatch.setattr(_worker, "PAUSE", 0.001)
    real, calls = _native.load_rows, itertools.count()

    def fails(*arguments):
        if next(calls) % 11 == 3:
            raise OSError(f"{arguments[0]}: cannot read: Input/output error")
        return real(*arguments)

    monkeypatch.setattr(_native, "load_rows", fails)
    assert gnnd.distributed.work(work) == len(Schedule(4))
    assert "Input/output error; tried again" in caplog.text and "made anew" not in caplog.text
    check_finished(work, base)


def test_storage_that_stays_full(tmp_path, monkeypatch):
    """The worker gives up; what was done until then is there for the next."""
    base, work = begin(tmp_path)
    do_some(carrier(base, work), 5)
    done = {path.name for path in (work / "done").iterdir()}
    monkeypatch.setattr(_worker, "PAUSE", 0.001)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(OSError, match="No space left"):
        gnnd.distributed.work(work)
    monkeypatch.undo()
    assert {path.name for path in (work / "done").iterdir()} == done
    assert gnnd.distributed.work(work) == len(Schedule(4)) - 5
    check_finished(work, base)


def test_a_base_that_changes_from_reading_to_reading(tmp_path):
    base, work = begin(tmp_path)
    hands = carrier(base, work)
    do_some(hands, 4)
    hands._kept.clear()
    reads = iter(range(100))
    real = hands._cut._reading._base.read

    class Changing:
        def read(self, begin, count, threads):
            rows = real(begin, count, threads)
            rows.array[0, 0] += next(reads)
            return rows

    hands._cut._reading._base = Changing()
    hands._cut._reading._sums.clear()
    with pytest.raises(OSError, match="change from reading"):
        do_some(hands, 3)


def test_a_worker_takes_no_more_threads_than_it_is_given(monkeypatch, tmp_path):
    """To write and to verify files, too; the calling thread has as many as before afterwards."""
    base, work = begin(tmp_path, shards=2)
    place, plan, seen = Folder(work), read_plan(Folder(work)), []
    assert plan is not None

    def looking(real: Any) -> Any:
        def look(*given: Any) -> Any:
            seen.append(_native.limit_threads(0))
            return real(*given)

        return look

    for name in ("save_rows", "load_rows"):
        monkeypatch.setattr(_native, name, looking(getattr(_native, name)))
    own = _native.limit_threads(2)
    try:
        hands = Carrier(place, plan, open_base(base), "cpu", 3)
        do_some(hands, len(Schedule(2)))
        assert set(seen) == {3} and _native.limit_threads(0) == 2
    finally:
        _native.limit_threads(own)

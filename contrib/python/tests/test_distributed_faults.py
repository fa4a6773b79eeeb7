# SPDX-License-Identifier: MIT
"""Builds by several processes whose workers are disturbed: killed, hung and too late ones, and leases.
GNND_TEST_KILLS=50 kills more of them. What is stored is altered in test_distributed_storage_faults.py."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
import types
from typing import Any

import pytest

import gnnd
import gnnd.distributed
from gnnd import _native
from gnnd.distributed import _leases, _tasks
from gnnd.distributed._base import open_base
from gnnd.distributed._leases import Leases, Waiting
from gnnd.distributed._plan import read_plan
from gnnd.distributed._schedule import FINISH, Schedule, Task
from gnnd.distributed._storage import Folder
from gnnd.distributed._tasks import Carrier
from gnnd.distributed._worker import Worker
from shards import PATIENCE, K, begin, carrier, check_finished, do_some, finish_with_kills, make_base, worker

KILLS = int(os.environ.get("GNND_TEST_KILLS", "4"))


def test_workers_that_are_killed(tmp_path):
    """At random moments, in as many builds as that takes; each is finished by those who come after."""
    base, chance, killed = make_base(tmp_path, 3000), random.Random(KILLS), 0
    undisturbed = gnnd.build_sharded(base, tmp_path / "undisturbed", K, shards=10, device="cpu").recall
    for build in range(KILLS):
        work = tmp_path / f"work{build}"
        gnnd.distributed.start(base, work, K, shards=10)
        killed += finish_with_kills(work, chance, KILLS - killed)
        graph = check_finished(work, base)
        assert graph.recall == pytest.approx(undisturbed, abs=0.005)
        if killed == KILLS:
            return


def test_a_worker_that_hangs_and_comes_back(tmp_path):
    """Stopped in the middle of a task, it finds it done by another when it goes on; both end well."""
    base, work = begin(tmp_path, shards=6, n=4000)
    hung = worker(work)
    while not list((work / "leases").iterdir()):
        assert hung.poll() is None
        time.sleep(0.005)
    hung.send_signal(signal.SIGSTOP)
    other = worker(work)
    assert "finished" in other.communicate(timeout=PATIENCE)[1] and other.returncode == 0
    hung.send_signal(signal.SIGCONT)
    told = hung.communicate(timeout=PATIENCE)[1]
    assert hung.returncode == 0, told
    check_finished(work, base)


def test_a_task_that_was_done_since_somebody_looked(tmp_path, monkeypatch):
    """Its lease is free again; who takes it finds it done, and does it not once more."""
    base, work = begin(tmp_path, shards=2)
    place = Folder(work)
    late = Worker(place, read_plan(place), base, "cpu", 1, PATIENCE)
    looks, look = [late.records.state()], late.records.state
    for shard in range(2):
        carrier(base, work).do(Task("build", shard))
    done: list[Task] = []
    monkeypatch.setattr(late.records, "state", lambda: looks.pop() if looks else look())
    monkeypatch.setattr(late, "_do", lambda task: done.append(task) or True)
    assert late.step() is None and not done and not list((work / "leases").iterdir())
    assert late.step() == Task("merge", 0, 1, 1) and done


def test_leases_do_not_look_at_clocks(tmp_path, monkeypatch):
    """A silent worker loses the task, whatever its clock shows; one that is heard of keeps it. How long the others wait
    is by a clock that the test moves, for a heart may beat late on a machine that is busy."""
    clock = [0.0]
    monkeypatch.setattr(_leases, "time", types.SimpleNamespace(monotonic=lambda: clock[0]))
    place, task = Folder(tmp_path, create=True), Task("build", 3)
    mine, others = Leases(place, 0.4), Leases(place, 0.4)
    lease = tmp_path / "leases" / "build-00003.0"

    def is_taken() -> bool:
        with others.held(task) as taken:
            return taken

    with mine.held(task) as held:
        assert held
        for turn in range(10):
            heard = lease.read_bytes()
            assert not is_taken()
            now = time.time() + 600 * (-1) ** turn
            os.utime(lease, (now, now))
            clock[0] += 0.3
            while lease.read_bytes() == heard:
                time.sleep(0.005)
    assert not list((tmp_path / "leases").iterdir())
    lease.write_bytes(b"of a worker that was killed")
    assert not is_taken()
    clock[0] += 0.39
    assert not is_taken()
    clock[0] += 0.02
    assert is_taken()
    (tmp_path / "leases" / "build-00003.1x").write_bytes(b"no lease")
    with mine.held(task) as held:
        assert held


def test_an_old_look_takes_no_task_from_another(tmp_path):
    place, task = Folder(tmp_path, create=True), Task("build", 3)
    mine, others = Leases(place, 100), Leases(place, 100)
    before = others.there()
    with mine.held(task) as held, others.held(task, before) as taken:
        assert held and not taken
    with others.held(task, before) as taken:
        assert taken


def test_who_finds_no_task_looks_ever_more_seldom(monkeypatch):
    clock, pauses = [0.0], []

    class Place:
        def wait(self, seconds: float) -> None:
            assert seconds <= max(0.02, clock[0] / 2), "no more than half of what was waited"
            pauses.append(seconds)
            clock[0] += seconds

    here = types.SimpleNamespace(monotonic=lambda: clock[0], thread_time=float, sleep=float)
    monkeypatch.setattr(_leases, "time", here)
    for lease_seconds, most in ((60, 1.0), (0.8, 0.1)):
        clock[0] = 0.0
        pauses.clear()
        waiting = Waiting(Place(), lease_seconds)  # type: ignore[arg-type]
        for _ in range(60):
            waiting.pause()
        assert pauses[0] >= 0.01 and all(most / 2 <= pause <= most for pause in pauses[-9:])


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


def test_what_somebody_creates_and_deletes_meanwhile_is_his(tmp_path, monkeypatch):
    """A lease may be given back between the attempt to create it and the look at whose it is."""

    def lost(*_):
        raise FileExistsError

    place = Folder(tmp_path, create=True)
    with monkeypatch.context() as patch:
        patch.setattr(os, "link", lost)
        assert not place.create("leases/build-00003.0", b"mine")
    assert place.names("leases") == set() and place.create("leases/build-00003.0", b"mine")


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


def test_a_base_that_changes_from_reading_to_reading(tmp_path, monkeypatch):
    monkeypatch.setattr(_tasks, "_ROOM_OF_FOLDERS", 0)  # vectors of small shards are kept, and read once
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

    for name in ("save_rows", "load_rows", "check_rows"):
        monkeypatch.setattr(_native, name, looking(getattr(_native, name)))
    own = _native.limit_threads(2)
    try:
        hands = Carrier(place, plan, open_base(base), "cpu", 3)
        do_some(hands, len(Schedule(2)))
        assert set(seen) == {3} and _native.limit_threads(0) == 2
    finally:
        _native.limit_threads(own)

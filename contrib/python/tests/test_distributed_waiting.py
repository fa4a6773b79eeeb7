# SPDX-License-Identifier: MIT
"""What keeps workers waiting: news of a folder, flushes, and memory that they hold for nothing."""

from __future__ import annotations

import os
import threading
import time
import types

import pytest

import gnnd.distributed
from gnnd.distributed import _changes, _leases, _tasks
from gnnd.distributed._changes import Changes
from gnnd.distributed._leases import Leases, Waiting
from gnnd.distributed._schedule import Task
from gnnd.distributed._storage import Folder
from shards import K, carrier, check_finished, make_base

LONG = 60.0  # seconds


def waiting(place: Folder) -> Folder:
    """It has looked already."""
    began = time.monotonic()
    place.wait(LONG)
    assert time.monotonic() - began < LONG / 2, "before it heard of anything it may have missed something"
    return place


def waits_for(place: Folder, seconds: float) -> float:
    began = time.monotonic()
    place.wait(seconds)
    return time.monotonic() - began


@pytest.mark.parametrize("what", ["create", "replace"])
@pytest.mark.parametrize("name", ["done/lists-00000.0001", "manifest.json"])
def test_what_others_do_ends_the_waiting(tmp_path, what, name):
    place = waiting(Folder(tmp_path, create=True))
    other = threading.Timer(0.3, lambda: getattr(Folder(tmp_path), what)(name, b"x"))
    other.start()
    assert waits_for(place, LONG) < LONG / 2
    other.join()


def test_what_was_done_since_the_last_look_counts(tmp_path):
    place = waiting(Folder(tmp_path, create=True))
    Folder(tmp_path).create("done/local-00000", b"x")
    assert waits_for(place, LONG) < LONG / 2
    assert waits_for(place, 0.2) >= 0.2, "told once"


def test_what_makes_no_task_ready_does_not_count(tmp_path):
    place = waiting(Folder(tmp_path, create=True))
    other = Folder(tmp_path)
    other.create("leases/build-00003.0", b"x")
    other.delete("leases/build-00003.0")
    other.replace("lists-00000.0001-0123456789ab.gnnd", b"x")
    (tmp_path / "done" / "local-00000.tmp.0123456789ab").write_bytes(b"x")
    assert waits_for(place, 0.2) >= 0.2


def test_looks_take_little_of_a_processor_however_much_is_told(monkeypatch):
    class Place:
        def wait(self, seconds: float) -> None:
            """It is told of something at once."""

    clock, slept = [0.0], []
    here = types.SimpleNamespace(monotonic=lambda: 0.0, thread_time=lambda: clock[0], sleep=slept.append)
    monkeypatch.setattr(_leases, "time", here)
    pauses = Waiting(Place(), 60)  # type: ignore[arg-type]
    for look in (0.001, 0.02, 5.0, 0.0):
        clock[0] += look
        pauses.pause()
    assert slept == pytest.approx([0.009, 0.18, 1.0, 0.0])


def test_more_news_than_the_system_keeps(tmp_path, monkeypatch):
    data = _changes._EVENT.pack(-1, _changes._OVERFLOW, 0, 0)
    assert list(_changes._names(data)) == [""]
    name = b"lists-00000.0001".ljust(32, b"\0")
    assert list(_changes._names(_changes._EVENT.pack(1, 0x100, 0, 32) + name + data)) == ["lists-00000.0001", ""]


@pytest.mark.parametrize("error", [OSError, AttributeError])
def test_where_the_system_tells_nothing_it_is_waited(tmp_path, monkeypatch, error):
    """No such call, or as many who listen as a user may have."""

    def refuse(*_):
        raise error

    monkeypatch.setattr(_changes, "_watching", refuse)
    changes = Changes([str(tmp_path)], bool)
    (tmp_path / "x").write_bytes(b"")
    began = time.monotonic()
    changes.wait(0.2)
    assert time.monotonic() - began >= 0.2


def test_a_folder_that_is_not_there_keeps_no_descriptor(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        Changes([str(tmp_path / "none")], bool)
        Changes([str(tmp_path)], bool)
    assert len(os.listdir("/proc/self/fd")) == before


def test_leases_wait_for_no_disk(tmp_path, monkeypatch):
    place, flushed = Folder(tmp_path, create=True), []
    monkeypatch.setattr(os, "fsync", flushed.append)
    with Leases(place, 100).held(Task("build", 3)) as held:
        assert held
    assert not flushed
    assert place.create("done/local-00003", b"x")
    assert len(flushed) == 2, "a record, and the folder that names it"


def test_what_is_kept_of_other_shards_is_little(tmp_path, monkeypatch):
    """In a folder, whose files the system keeps in memory: the next task's get the memory of the last one's, before
    they are read."""
    monkeypatch.setattr(_tasks, "_ROOM_OF_FOLDERS", 0)
    base, work = make_base(tmp_path), tmp_path / "work"
    gnnd.distributed.start(base, work, K, shards=4)
    hands = carrier(base, work)
    for shard in range(4):
        hands.do(Task("build", shard))
    assert hands.held == {3}
    real, kept = hands._cut.vectors, []

    def vectors(shard: int):
        kept.append({number for _, number in hands._kept})
        return real(shard)

    monkeypatch.setattr(hands._cut, "vectors", vectors)
    merge = next(task for task in hands.records.state().ready() if 3 not in task.shards)
    hands.do(merge)
    assert kept[0] <= set(merge.shards) == hands.held
    gnnd.distributed.work(work)
    check_finished(work, base)

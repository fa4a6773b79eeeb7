# SPDX-License-Identifier: MIT
"""Builds by several processes whose storage is disturbed: altered, lost and cut objects, one that is full or that
cannot be read for a while."""

from __future__ import annotations

import errno
import itertools
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gnnd
import gnnd.distributed
from gnnd import _native
from gnnd.distributed import _worker
from gnnd.distributed._schedule import FINISH, Schedule, Task
from gnnd.distributed._storage import Damaged
from shards import LEASE, K, begin, carrier, check_finished, do_some, flip_a_bit_in_each

UNCHECKED = 4 + 6  # tasks of four shards, until what is there in the end is to be checked


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
Records.check_lists = lambda *_: time.sleep(100)
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
    calls = itertools.count()

    def failing(real):
        def fails(*arguments):
            if next(calls) % 11 == 3:
                raise OSError(f"{arguments[0]}: cannot read: Input/output error")
            return real(*arguments)

        return fails

    for name in ("load_rows", "check_rows"):
        monkeypatch.setattr(_native, name, failing(getattr(_native, name)))
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
